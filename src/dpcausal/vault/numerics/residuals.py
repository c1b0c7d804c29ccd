"""What a unit tells of its effect, given models that are public: regressors and a regressand, in exact integers."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, AugmentedScores, EffectMoments, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.features import largest_weight
from dpcausal.queries.scores import EXPONENTS, FACTOR_TICKS, PREDICTOR_TICKS, overlaps, weight_table
from dpcausal.schema import Schema
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features, lookup


def regression_mean(features: Features, coefficients: Sequence[float], ticks: Int64s) -> Int64s:
    """Return what a regression says about rows' outcomes, within their range."""
    return np.clip(features.predictor(coefficients, ticks) // (PREDICTOR_TICKS // GRID), -GRID, GRID)


def scored(  # noqa: PLR0913, PLR0917
    query: AugmentedScores,
    predictor: Int64s,
    control: Int64s,
    treated: Int64s,
    arms: Int64s,
    outcomes: Int64s,
) -> tuple[Int64s, Int64s]:
    """Return rows' scores before the limit, in ticks of which GRID make the limit, and their targets."""
    largest = largest_weight(query.estimand, query.clip)
    weights = np.where(
        arms == 1,
        weight_table(query.estimand, query.clip, largest, treated=True)[lookup(-predictor)],
        weight_table(query.estimand, query.clip, largest, treated=False)[lookup(predictor)],
    )
    missed = np.where((arms == 1) & (query.estimand != "ATT"), outcomes - treated, outcomes - control)
    scores = (2 * arms - 1) * (weights * missed // GRID) * round(largest / query.limit * FACTOR_TICKS) // FACTOR_TICKS
    if query.estimand == "ATT":
        return scores, arms * GRID
    overlap = overlaps(query.clip)[lookup(predictor)] if query.estimand == "ATO" else np.full_like(arms, GRID)
    effects = (treated - control) * overlap // GRID
    factor = round(query.largest_target / query.limit * FACTOR_TICKS)
    return scores + effects * factor // FACTOR_TICKS, overlap


class Residuals:
    """Reads rows as regressors and regressand of a regression of effects."""

    def __init__(self, query: EffectMoments | EffectWeights, schema: Schema) -> None:
        self._query, self._schema = query, schema
        self._features = Features(query.covariates, schema)
        names = [column.name for column in query.basis.reads(schema)]
        self._functions = Features(names, schema)
        self.columns = tuple(dict.fromkeys(("treatment", "outcome", *self._features.columns, *self._functions.columns)))

    def _means(self, ticks: Int64s) -> tuple[Int64s, Int64s]:
        control, treated = (
            regression_mean(self._features, coefficients, ticks)
            for coefficients in (self._query.control, self._query.treated)
        )
        return control, treated

    def functions(self, batch: Batch) -> Int64s:
        """Return the basis functions of rows, in ticks of which LENGTH make 1."""
        return self._query.basis.ticks(self._functions.codes(batch), self._schema)

    def residual(self, batch: Batch) -> tuple[Int64s, Int64s]:
        """Return the distance of arms from propensities, and of outcomes from predictions; GRID ticks make 1."""
        ticks = self._features.ticks(batch)
        control, treated = self._means(ticks)
        propensity = _propensities(self._query.clip)[lookup(self._features.predictor(self._query.propensity, ticks))]
        predicted = (propensity * treated + (GRID - propensity) * control) // GRID
        return batch["treatment"] * GRID - propensity, batch["outcome"] - predicted

    def augmented(self, batch: Batch, limit: float) -> Int64s:
        """Return augmented scores before the limit, GRID ticks of which make the limit."""
        ticks = self._features.ticks(batch)
        control, treated = self._means(ticks)
        query = self._query
        models = (query.covariates, query.propensity, query.control, query.treated)
        predictor = self._features.predictor(query.propensity, ticks)
        asked = AugmentedScores(*models, "ATE", query.clip, limit)
        return scored(asked, predictor, control, treated, batch["treatment"], batch["outcome"])[0]


@cache
def _propensities(clip: float) -> Int64s:
    """Return the propensity for every exponent, in ticks of which GRID make 1."""
    return np.rint(np.clip(1 / (1 + np.exp(-EXPONENTS)), clip, 1 - clip) * GRID).astype(np.int64)


def times(distance: Int64s, functions: Int64s) -> Int64s:
    """Return functions times the distance of an arm from its propensity, to the nearest tick."""
    return (distance * functions + GRID // 2) // GRID


def within(numbers: Int64s, limit: float) -> tuple[Int64s, Int64s]:
    """Return numbers in GRID ticks to a half range as LENGTH ticks to the limit, and which the limit cut off."""
    ticks = (numbers * round(LENGTH / limit * 2**10) + GRID * 2**9) // (GRID * 2**10)
    kept = np.clip(ticks, -LENGTH, LENGTH)
    return kept, (kept != ticks).astype(np.int64)
