"""Sums of augmented scores, which combine a propensity score with regressions of the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self, get_args

from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.features import check_estimand, largest_weight, single_feature
from dpcausal.queries.models import EXTREME, MODERATE, Modelled, check_limits
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.scores import (
    FACTOR_TICKS,
    by_arm,
    looked_up,
    overlap_table,
    predictor,
    unit_weight,
)
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, Clip, Constant, Number, Shift, deficit, indicator, sign

AugmentedEstimand = Literal["ATE", "ATT", "ATO"]


@dataclass(frozen=True)
class AugmentedScores(Modelled, SummingQuery):
    """Sums of augmented scores: each unit's own estimate of the effect, from models that are public already.

    A unit's score is the effect that the outcome regressions predict, plus the residual of its outcome times the weight
    that its propensity gives it. ATT uses the regression of the control arm alone; ATO multiplies everything by
    e (1 - e), e the propensity. Scores are clipped to `limit` half ranges of the outcome. With scores f as shares of
    that limit and targets g (1 for ATE, 1 for treated units for ATT, e (1 - e) for ATO) as shares of the largest
    target, the answer holds the sums of f (score), g (target_sum), 1 - f² (deficit), f g (product) and
    g² (target_square_sum), and the number of clipped scores (clipped). Noise is in proportion to the scores that the
    models can give, which is the limit at most.

    Attributes:
        clip: The propensity is clipped to clip and 1 - clip.
        limit: The largest score, in half ranges of the outcome.
    """

    name: ClassVar[str] = "augmented_scores"
    weights: ClassVar[dict[str, int]] = {
        "score": 1,
        "target_sum": 8,
        "deficit": 16,
        "product": 16,
        "target_square_sum": 16,
        "clipped": 4,
    }

    estimand: AugmentedEstimand
    clip: float
    limit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_estimand(self.estimand, get_args(AugmentedEstimand))
        check_limits(self.clip, self.limit)

    @property
    def largest_target(self) -> float:
        """The largest target there can be."""
        return 0.25 if self.estimand == "ATO" else 1.0

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        self.check_models(schema)
        score, target = self.score(schema)
        kept, bits = Clip(score, -GRID, GRID), GRID.bit_length() - 1
        numbers = {
            "score": kept,
            "target_sum": target,
            "deficit": deficit(kept),
            "product": Shift(kept * target, bits),
            "target_square_sum": Shift(target * target, bits),
            "clipped": 1 - indicator(Between(score, -GRID, GRID)),
        }
        ranges = {"score": 2 * GRID, "product": 2 * GRID, "clipped": 1}
        weights = {name: Fraction(ranges.get(name, GRID) * weight) for name, weight in self.weights.items()}
        return (Sums({TREATMENT: 2}, {}, numbers, weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        score, target = self.limit * outcome_tick(schema), self.largest_target
        return {
            "score": score,
            "target_sum": target / GRID,
            "deficit": score**2 * GRID,
            "product": score * target,
            "target_square_sum": target**2 / GRID,
        }

    def score(self, schema: Schema) -> tuple[Number, Number]:
        """Return a unit's score before the limit, in ticks of which GRID make the limit, and its target."""
        bits, of_factor = GRID.bit_length() - 1, FACTOR_TICKS.bit_length() - 1
        exponent, means = predictor(self.propensity, self.covariates, schema), self.means(schema)
        weight = unit_weight(exponent, -exponent, self.estimand, self.clip)
        missed = OUTCOME - (means[0] if self.estimand == "ATT" else by_arm(*means))
        largest = largest_weight(self.estimand, self.clip)
        factor = round(largest / self.limit * FACTOR_TICKS)
        residual = Shift(sign(TREATMENT) * Shift(weight * missed, bits) * factor, of_factor)
        if self.estimand == "ATT":
            return residual, GRID * TREATMENT
        overlap = looked_up(overlap_table(self.clip), exponent) if self.estimand == "ATO" else Constant(GRID)
        effect = Shift((means[1] - means[0]) * overlap, bits)
        factor = round(self.largest_target / self.limit * FACTOR_TICKS)
        return residual + Shift(effect * factor, of_factor), overlap

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(
            cls(covariates, *models, estimand, 0.1, limit)
            for covariates in single_feature(schema)
            for estimand in get_args(AugmentedEstimand)
            for limit, models in ((0.5, EXTREME), (5.0, MODERATE))
        )
