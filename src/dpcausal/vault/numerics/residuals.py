"""What a unit tells of its effect, given models that are public: regressors and a regressand, in exact integers."""

from functools import cache

import numpy as np

from dpcausal.queries import GRID, AugmentedScores, EffectMoments, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.scores import EXPONENTS, looked_up, predictor
from dpcausal.schema.schema import Schema
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import Number, Shift
from dpcausal.sums.table import IntegerTable
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features


class Residuals:
    """Reads rows as regressors and regressand of a regression of effects."""

    def __init__(self, query: EffectMoments | EffectWeights, schema: Schema) -> None:
        self._query, self._schema = query, schema
        names = [column.name for column in query.basis.reads(schema)]
        self._functions = Features(names, schema)
        models = Features(query.covariates, schema)
        self.columns = tuple(dict.fromkeys(("treatment", "outcome", *models.columns, *self._functions.columns)))

    def functions(self, batch: Batch) -> Int64s:
        """Return the basis functions of rows, in ticks of which LENGTH make 1."""
        return self._query.basis.ticks(self._functions.codes(batch), self._schema)

    def residual(self, batch: Batch) -> Int64s:
        """Return the distance of arms from propensities, and of outcomes from predictions; GRID ticks make 1."""
        return evaluate(self._distances(), batch)

    def _distances(self) -> tuple[Number, Number]:
        query = self._query
        control, treated = query.means(self._schema)
        exponent = predictor(query.propensity, query.covariates, self._schema)
        propensity = looked_up(_propensities(query.clip), exponent)
        predicted = Shift(propensity * treated + (GRID - propensity) * control, GRID.bit_length() - 1)
        return GRID * TREATMENT - propensity, OUTCOME - predicted

    def augmented(self, batch: Batch, limit: float) -> Int64s:
        """Return augmented scores before the limit, GRID ticks of which make the limit."""
        query = self._query
        models = (query.covariates, query.propensity, query.control, query.treated)
        score, _ = AugmentedScores(*models, "ATE", query.clip, limit).score(self._schema)
        return evaluate([score], batch).ravel()


@cache
def _propensities(clip: float) -> IntegerTable:
    """Return the propensity for every exponent, in ticks of which GRID make 1."""
    return IntegerTable(np.rint(np.clip(1 / (1 + np.exp(-EXPONENTS)), clip, 1 - clip) * GRID).astype(np.int64).tolist())


def times(distance: Int64s, functions: Int64s) -> Int64s:
    """Return functions times the distance of an arm from its propensity, to the nearest tick."""
    return (distance * functions + GRID // 2) // GRID


def within(numbers: Int64s, limit: float) -> tuple[Int64s, Int64s]:
    """Return numbers in GRID ticks to a half range as LENGTH ticks to the limit, and which the limit cut off."""
    ticks = (numbers * round(LENGTH / limit * 2**10) + GRID * 2**9) // (GRID * 2**10)
    kept = np.clip(ticks, -LENGTH, LENGTH)
    return kept, (kept != ticks).astype(np.int64)
