"""Sums of weighted residuals of units with an outcome, from models of all units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.features import check_coefficients, clipped_coefficients, single_feature
from dpcausal.queries.models import EXTREME, MODERATE, Modelled, check_limits
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.scores import (
    EXPONENTS,
    FACTOR_TICKS,
    PREDICTOR_TICKS,
    by_arm,
    looked_up,
    predictor,
    unit_weight,
)
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, Clip, Number, Shift, indicator, sign
from dpcausal.sums.table import IntegerTable

_FARTHEST = 4
"""How far a regression may predict an outcome from the middle of its range, in half ranges."""

_BITS = GRID.bit_length() - 1


@dataclass(frozen=True)
class ObservedScores(Modelled, SummingQuery):
    """Sums of weighted residuals of units with an outcome: what weighting adds to regressions averaged over all units.

    A unit's score is the residual of its outcome from the regression of its arm, over its probability to be in that arm
    and over its probability to have an outcome, with a minus in the control arm. Models are public already. Both
    probabilities are clipped, and scores are clipped to `limit` half ranges of the outcome. With scores f as shares of
    that limit, the answer holds the sums of f (score) and f² (square), and the number of clipped scores (clipped).

    Attributes:
        observed_control: The coefficients of the probability to have an outcome in the control arm, in the order of
            `feature_names`, as `ObservedLogistic` released them.
        observed_treated: The same in the treated arm.
        clip: The propensity is clipped to clip and 1 - clip, and the probability to have an outcome to at least clip.
        limit: The largest score, in half ranges of the outcome.
    """

    name: ClassVar[str] = "observed_scores"
    weights: ClassVar[dict[str, int]] = {"score": 2, "square": 4, "clipped": 4}

    observed_control: Sequence[float]
    observed_treated: Sequence[float]
    clip: float
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        for model in ("observed_control", "observed_treated"):
            object.__setattr__(self, model, clipped_coefficients(getattr(self, model)))
        check_limits(self.clip, self.limit)

    def check_models(self, schema: Schema) -> None:
        super().check_models(schema)
        for model in (self.observed_control, self.observed_treated):
            check_coefficients(model, self.covariates, schema)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        self.check_models(schema)
        score = self.score(schema)
        kept = Clip(score, -GRID, GRID)
        numbers = {
            "score": kept,
            "square": Shift(kept * kept, _BITS),
            "clipped": 1 - indicator(Between(score, -GRID, GRID)),
        }
        ranges = {"clipped": 1}
        weights = {name: Fraction(ranges.get(name, GRID) * weight) for name, weight in self.weights.items()}
        return (Sums({TREATMENT: 2}, {}, numbers, weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        score = self.limit * outcome_tick(schema)
        return {"score": score, "square": score**2 * GRID}

    def score(self, schema: Schema) -> Number:
        """Return a unit's score before the limit, in ticks of which GRID make the limit."""
        of_factor, against = FACTOR_TICKS.bit_length() - 1, predictor(self.propensity, self.covariates, schema)
        models = (self.observed_control, self.observed_treated)
        chances = [predictor(model, self.covariates, schema) for model in models]
        of_arm = unit_weight(against, -against, "ATE", self.clip)
        of_outcome = by_arm(*(looked_up(_inverse_table(self.clip), -chance) for chance in chances))
        missed = OUTCOME - by_arm(*self._farther_means(schema))
        # Both weights are shares of 1 / clip, so that their product is a share of its square.
        factor = round(1 / self.clip**2 / self.limit * FACTOR_TICKS)
        weighted = Shift(Shift(of_arm * of_outcome, _BITS) * missed, _BITS)
        return Shift(sign(TREATMENT) * weighted * factor, of_factor)

    def _farther_means(self, schema: Schema) -> tuple[Number, Number]:
        """Return what the regressions predict, also beyond the range of outcomes: averages over all units have that."""
        bits = (PREDICTOR_TICKS // GRID).bit_length() - 1
        control, treated = (
            Clip(Shift(predictor(model, self.covariates, schema), bits), -_FARTHEST * GRID, _FARTHEST * GRID)
            for model in (self.control, self.treated)
        )
        return control, treated

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        observed = ([0.0, -20.0], [0.0, 20.0])
        return tuple(
            cls(covariates, *models, *observed, 0.1, limit)
            for covariates in single_feature(schema)
            for limit, models in ((0.5, EXTREME), (5.0, MODERATE))
        )


@lru_cache(maxsize=8)
def _inverse_table(clip: float) -> IntegerTable:
    """Return 1 over probabilities of at least clip, as shares of 1 / clip, for every exponent of the odds against."""
    inverse = np.minimum(1 + np.exp(EXPONENTS), 1 / clip)
    return IntegerTable(np.rint(inverse * clip * GRID).astype(np.int64).tolist())
