"""Sums of augmented scores, which combine a propensity score with regressions of the outcome."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self, get_args

from dpcausal.queries.features import check_estimand, single_feature
from dpcausal.queries.models import EXTREME, MODERATE, Modelled, check_limits
from dpcausal.queries.query import GRID, Coordinate, Norm, Sensitivity, outcome_tick
from dpcausal.schema import Protects, Schema

AugmentedEstimand = Literal["ATE", "ATT", "ATO"]


@dataclass(frozen=True)
class AugmentedScores(Modelled):
    """Sums of augmented scores: each unit's own estimate of the effect, from models that are public already.

    A unit's score is the effect that the outcome regressions predict, plus the residual of its outcome times the weight
    that its propensity gives it. ATT uses the regression of the control arm alone; ATO multiplies everything by
    e (1 - e), e the propensity. Scores are clipped to `limit` half ranges of the outcome. With scores f as shares of
    that limit and targets g (1 for ATE, 1 for treated units for ATT, e (1 - e) for ATO) as shares of the largest
    target, the answer holds the sums of f (score), g (target_sum), 1 - f² (deficit), f g (product) and
    g² (target_square_sum), and the number of clipped scores (clipped). Proof: docs/proofs/augmented_scores.md.

    Attributes:
        estimand: Whose effect the scores are for.
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

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """Return the answer's coordinates and how far one unit can move them."""
        self.check_models(schema)
        score, target = self.limit * outcome_tick(schema), self.largest_target
        moves = {
            "score": (score, 2 * GRID),
            "target_sum": (target / GRID, GRID),
            "deficit": (score**2 * GRID, GRID),
            "product": (score * target, 2 * GRID),
            "target_square_sum": (target**2 / GRID, GRID),
            "clipped": (1.0, 1),
        }
        coordinates = tuple(
            Coordinate(name, tick, Fraction(move * self.weights[name])) for name, (tick, move) in moves.items()
        )
        power = {"l1": 1, "l2": 2}[norm]
        total = sum((Fraction(1, weight) ** power for weight in self.weights.values()), Fraction(0))
        # The root of a number is at most half of one more than it.
        return Sensitivity(norm, coordinates, total if norm == "l1" else (1 + total) / 2)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(
            cls(covariates, *models, estimand, 0.1, limit)
            for covariates in single_feature(schema)
            for estimand in get_args(AugmentedEstimand)
            for limit, models in ((0.5, EXTREME), (5.0, MODERATE))
        )
