"""Sums over arms weighted by a public score, in exact integers. Proof: docs/proofs/weighted_arms.md."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, WeightedArms
from dpcausal.queries.features import Estimand
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.features import EXPONENTS, PREDICTOR_TICKS, Features, lookup

Int64s = NDArray[np.int64]


def weighted_arms(query: WeightedArms, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The six sums and the number of units. Every row's part is made of integers from that row alone."""
    features = Features(query.covariates, schema)
    tables = [weight_table(query.estimand, query.clip, query.largest, treated=treated) for treated in (False, True)]

    def kernel(batch: Batch) -> Int64s:
        weights = np.where(
            batch["treatment"] == 1,
            tables[1][_exponent(query, features, batch, -1)],
            tables[0][_exponent(query, features, batch, 1)],
        )
        each = parts(weights, batch["treatment"], batch["outcome"])
        return np.array([*(part.sum() for part in each), len(weights)])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    return Answer({name: int(value) for name, value in zip((*query.weights, "compared"), sums, strict=True)})


def parts(weights: Int64s, arms: Int64s, outcomes: Int64s) -> tuple[Int64s, ...]:
    """What each row adds to the six sums; all within -GRID and GRID."""
    sign = 2 * arms - 1
    product = (weights * outcomes + GRID // 2) // GRID
    deficit = (GRID * GRID - outcomes * outcomes) // GRID
    return sign * product, product, sign * weights, weights, weights * deficit // GRID, weights * weights // GRID


def _exponent(query: WeightedArms, features: Features, batch: Batch, sign: int) -> Int64s:
    """Where in the table of weights a row looks: the predictor with its sign, less the shrinkage, in ticks."""
    ticks = features.ticks(batch)
    length = np.zeros(ticks.shape[1], dtype=np.int64)
    for line in ticks:
        length += line * line // GRID
    shrink = round(query.shrink / features.root**2 * PREDICTOR_TICKS / GRID)
    return lookup(sign * features.predictor(query.coefficients, ticks) - shrink * length)


@lru_cache(maxsize=8)
def weight_table(estimand: Estimand, clip: float, largest: float, *, treated: bool) -> Int64s:
    """Weights for every exponent, as shares of the largest in ticks of which GRID make 1.

    The exponent is minus the predictor for treated and plus the predictor for control units: the log odds of the arm
    that the unit is not in.
    """
    odds = np.exp(EXPONENTS)
    clipped = np.clip(odds, clip / (1 - clip), (1 - clip) / clip)
    if estimand == "ATE":
        weights = 1 + clipped
    elif estimand == "ATO":
        weights = clipped / (1 + clipped)
    elif (estimand == "ATT") == treated:
        weights = np.ones_like(odds)
    else:
        weights = clipped
    return np.clip(np.rint(weights / largest * GRID), 0, GRID).astype(np.int64)
