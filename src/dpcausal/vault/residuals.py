"""What a unit tells of its effect, given models that are public: regressors and a regressand, in exact integers."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpcausal.queries import GRID, AugmentedScores, EffectMoments, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.schema import Schema
from dpcausal.vault.answers.augmented_scores import regression_mean, scored
from dpcausal.vault.engines import Batch
from dpcausal.vault.features import EXPONENTS, Features, lookup

Integers = NDArray[np.int64]


class Residuals:
    """Reads rows as regressors and regressand of a regression of effects."""

    def __init__(self, query: EffectMoments | EffectWeights, schema: Schema) -> None:
        self._query, self._schema = query, schema
        self._features = Features(query.covariates, schema)
        names = [column.name for column in query.basis.reads(schema)]
        self._functions = Features(names, schema)
        self.columns = tuple(dict.fromkeys(("treatment", "outcome", *self._features.columns, *self._functions.columns)))

    def _means(self, steps: Integers) -> tuple[Integers, Integers]:
        control, treated = (
            regression_mean(self._features, coefficients, steps)
            for coefficients in (self._query.control, self._query.treated)
        )
        return control, treated

    def functions(self, batch: Batch) -> Integers:
        """The basis functions of rows, in steps of which LENGTH make 1."""
        return self._query.basis.steps(self._functions.codes(batch), self._schema)

    def residual(self, batch: Batch) -> tuple[Integers, Integers]:
        """The distance of arms from propensities, and of outcomes from what is foretold; GRID steps make 1."""
        steps = self._features.steps(batch)
        control, treated = self._means(steps)
        propensity = _propensities(self._query.clip)[lookup(self._features.predictor(self._query.propensity, steps))]
        foretold = (propensity * treated + (GRID - propensity) * control) // GRID
        return batch["treatment"] * GRID - propensity, batch["outcome"] - foretold

    def augmented(self, batch: Batch, limit: float) -> Integers:
        """Augmented scores before the limit, GRID steps of which make the limit."""
        steps = self._features.steps(batch)
        control, treated = self._means(steps)
        query = self._query
        models = (query.covariates, query.propensity, query.control, query.treated)
        predictor = self._features.predictor(query.propensity, steps)
        asked = AugmentedScores(*models, "ATE", query.clip, limit)
        return scored(asked, predictor, control, treated, batch["treatment"], batch["outcome"])[0]


@cache
def _propensities(clip: float) -> Integers:
    """The propensity for every exponent, in steps of which GRID make 1."""
    return np.rint(np.clip(1 / (1 + np.exp(-EXPONENTS)), clip, 1 - clip) * GRID).astype(np.int64)


def times(distance: Integers, functions: Integers) -> Integers:
    """Functions times the distance of an arm from its propensity, to the nearest step."""
    return (distance * functions + GRID // 2) // GRID


def within(numbers: Integers, limit: float) -> tuple[Integers, Integers]:
    """Numbers in GRID steps to a half range, as LENGTH steps to the limit; and which of them the limit cut off."""
    steps = (numbers * round(LENGTH / limit * 2**10) + GRID * 2**9) // (GRID * 2**10)
    kept = np.clip(steps, -LENGTH, LENGTH)
    return kept, (kept != steps).astype(np.int64)
