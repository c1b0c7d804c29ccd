"""Sums of products of a unit's numbers, in exact integers. Proof: docs/proofs/regression_moments.md."""

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, RegressionMoments
from dpcausal.queries.regression import CONSTANT, FINE
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.features import Features


def regression_moments(query: RegressionMoments, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """All products in one pass, without and with the sign of the arm."""
    features = Features(query.of, schema)

    def kernel(batch: Batch) -> NDArray[np.int64]:
        return products(batch["outcome"], features.design(batch), batch["treatment"])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    steps = {}
    names = (at.name for at in query.sensitivity(schema, "record", "l1").coordinates)
    for name, moment in zip(names, query.moments(schema), strict=True):
        table = sums[int(moment.signed)]
        total = int(table[moment.first, moment.second])
        steps[name] = int(table[CONSTANT, CONSTANT]) - total if moment.deficit else total
    return Answer(steps)


def products(outcomes: NDArray[np.int64], design: NDArray[np.int64], arms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over some rows of all products of two of their numbers, without and with the arm's sign.

    Numbers are rounded to FINE steps first. Sums of their products are whole numbers below 2^53, which floating point
    adds up without error in any order.
    """
    coarse = GRID // FINE
    numbers = np.vstack([np.full(len(outcomes), GRID), outcomes, design])
    rounded = ((numbers + coarse // 2) // coarse).astype(np.float64)
    return np.array([rounded @ rounded.T, (rounded * (2 * arms - 1)) @ rounded.T]).astype(np.int64)
