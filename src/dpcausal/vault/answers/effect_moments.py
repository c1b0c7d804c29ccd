"""Sums of products for a regression of effects, in exact integers. Proof: docs/proofs/effect_moments.md."""

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import EffectMoments
from dpcausal.queries.basis import LENGTH
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.residuals import Residuals, times, within


def effect_moments(query: EffectMoments, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """All sums in one pass. Every row's part is made of integers from that row alone."""
    residuals = Residuals(query, schema)

    def kernel(batch: Batch) -> NDArray[np.int64]:
        functions = residuals.functions(batch)
        if query.learner == "residual":
            distance, missed = residuals.residual(batch)
            regressors, (kept, cut) = times(distance, functions), within(missed, query.limit)
        else:
            regressors, (kept, cut) = functions, within(residuals.augmented(batch, query.limit), 1.0)
        return sums(regressors, kept, cut)

    total = engine.fold(residuals.columns, kernel)
    names = (at.name for at in query.sensitivity(schema, "record", "l1").coordinates)
    count = len(query.basis.names(schema))
    gram = [total[i, j] for i, j in query.pairs(schema)]
    ticks = [*gram, *total[count], total[count + 1, 0], total[count + 2, 0]]
    return Answer({name: int(value) for name, value in zip(names, ticks, strict=True)})


def sums(regressors: NDArray[np.int64], kept: NDArray[np.int64], cut: NDArray[np.int64]) -> NDArray[np.int64]:
    """Over some rows: products of two regressors; below, products with the regressand; below, deficits and cut off.

    Sums of products are whole numbers below 2^53, which floating point adds up without error in any order.
    """
    exact = regressors.astype(np.float64)
    rest = np.zeros((2, len(regressors)))
    rest[0, 0], rest[1, 0] = float((LENGTH * LENGTH - kept * kept).sum()), float(cut.sum())
    return np.vstack([exact @ exact.T, exact @ kept.astype(np.float64), rest]).astype(np.int64)
