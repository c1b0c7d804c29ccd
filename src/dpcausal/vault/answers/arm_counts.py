"""Numbers of units in each arm of each bin. Proof: docs/proofs/arm_counts.md."""

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import ScoreCounts, StratumCounts
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.features import EXPONENTS, Features, lookup

Int64s = NDArray[np.int64]


def stratum_counts(query: StratumCounts, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """Both arms' sizes in each stratum of the public list, rows or no rows."""
    sizes = strata(query.cells.by, schema, engine)
    return Answer(
        {
            f"size_{arm} of {name}": size
            for name, arms in zip(query.bins(schema), sizes, strict=True)
            for arm, (size, *_) in enumerate(arms)
        }
    )


def score_counts(query: ScoreCounts, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """Both arms' sizes in each bin of the score. A row's bin is looked up from integers of that row alone."""
    features, names = Features(query.covariates, schema), query.bins()
    table = np.searchsorted(query.edges, 1 / (1 + np.exp(-EXPONENTS)), side="right")

    def kernel(batch: Batch) -> Int64s:
        bins = table[lookup(features.predictor(query.coefficients, features.ticks(batch)))]
        return np.bincount(2 * bins + batch["treatment"], minlength=2 * len(names))

    sizes = engine.fold(("treatment", *features.columns), kernel).reshape(-1, 2)
    return Answer(
        {f"size_{arm} of {name}": int(sizes[place, arm]) for place, name in enumerate(names) for arm in (0, 1)}
    )
