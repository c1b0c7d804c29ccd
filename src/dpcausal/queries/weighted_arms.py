"""Sums over arms, weighted by a public propensity score."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, get_args

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, TREATMENT, everyone_compared, features
from dpcausal.queries.features import (
    Estimand,
    single_feature,
)
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.scores import PREDICTOR_TICKS, WeightedQuery, unit_weight
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Clip, Constant, Number, Shift, added, deficit, sign
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class WeightedArms(WeightedQuery):
    """Sums over both arms of outcomes weighted by a propensity score that is public already.

    Weights w are shares of the largest possible one. Outcomes z are measured from the centre, in shares of the most
    that they can be away from it. With + for treated and - for control units the answer holds the sums of +-w z
    (weighted_difference), w z (weighted_sum), +-w (weight_difference), w (weight_sum), w (1 - z²) (deficit) and w²
    (weight_square_sum); and the number of units where they may leave the comparison. Both weighted means follow from
    these, at hardly more noise than the weighted difference alone would need.

    Attributes:
        shrink: What is taken off a weight's exponent for each unit of squared length of the features, to undo the
            upward bias of noisy coefficients (exactly for Gaussian noise, nearly for little Laplace noise); 0 for none.
        centre: What outcomes are measured from, in half ranges from the middle of their range, from -1 to 1. Near the
            mean outcome, a mean needs hardly any noise for the sum of weights.
    """

    name: ClassVar[str] = "weighted_arms"
    weights: ClassVar[dict[str, int]] = {
        "weighted_difference": 2,
        "weighted_sum": 8,
        "weight_difference": 8,
        "weight_sum": 4,
        "deficit": 8,
        "weight_square_sum": 16,
    }

    shrink: float = 0.0
    centre: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = is_number(self.shrink) and is_number(self.centre)
        if not (numbers and 0 <= self.shrink <= 2**20 and -1 <= self.centre <= 1):
            raise QueryError(
                expected=f"a centre from -1 to 1, and a shrinkage from 0 to {2**20:,}",
                got=f"centre={self.centre!r}, shrink={self.shrink!r}",
                hint="0 is for neither.",
            )

    @property
    def smallest(self) -> float:
        """The smallest weight there can be."""
        return {"ATE": 1 / (1 - self.clip), "ATO": self.clip}.get(self.estimand, self.clip / (1 - self.clip))

    @property
    def centre_ticks(self) -> int:
        """The centre in ticks of an outcome."""
        return round(self.centre * GRID)

    @property
    def reach(self) -> float:
        """How far an outcome can be from the centre, in half ranges."""
        return 1 + abs(self.centre_ticks) / GRID

    @property
    def share(self) -> int:
        """A half range as a share of the reach, in ticks of which GRID make 1."""
        return round(GRID / self.reach)

    def centre_of(self, schema: Schema) -> float:
        """Return what outcomes are measured from, in the outcome's units."""
        return sum(schema.outcome_bounds) / 2 + self.centre_ticks * outcome_tick(schema)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        exponent, bits = self.exponent(schema), GRID.bit_length() - 1
        lines = [Constant(GRID), *features(self.covariates, schema)]
        length = added([Shift(line * line, bits) for line in lines])
        root = math.sqrt(len(self.covariates) + 1)
        shrunk = round(self.shrink / root**2 * PREDICTOR_TICKS / GRID) * length
        weight = unit_weight(exponent - shrunk, -exponent - shrunk, self.estimand, self.clip)
        outcome = OUTCOME if self.centre_ticks == 0 else self._centred()
        product = Shift(weight * outcome + GRID // 2, bits)
        numbers = {
            "weighted_difference": sign(TREATMENT) * product,
            "weighted_sum": product,
            "weight_difference": sign(TREATMENT) * weight,
            "weight_sum": weight,
            "deficit": Shift(weight * deficit(outcome), bits),
            "weight_square_sum": Shift(weight * weight, bits),
        }
        weights = {name: Fraction(GRID * each) for name, each in self.weights.items()}
        compared = everyone_compared(schema)
        return (Sums({TREATMENT: 2}, {}, numbers | compared, weights | dict.fromkeys(compared, Fraction(8))),)

    def _centred(self) -> Number:
        """Return an outcome measured from the centre, as a share of the most that it can be away from it."""
        scaled = Shift((OUTCOME - self.centre_ticks) * self.share + GRID // 2, GRID.bit_length() - 1)
        return Clip(scaled, -GRID, GRID)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        weight, outcome = self.largest / GRID, outcome_tick(schema) * self.reach
        return {
            "weighted_difference": self.largest * outcome,
            "weighted_sum": self.largest * outcome,
            "weight_difference": weight,
            "weight_sum": weight,
            "deficit": self.largest * outcome**2 * GRID,
            "weight_square_sum": self.largest * weight,
        }

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        made: list[Self] = []
        for covariates in single_feature(schema):
            for estimand in get_args(Estimand):
                made += [cls(covariates, extreme, estimand, 0.1) for extreme in ([0.0, 20.0], [5.0, -20.0])]
            made += [cls(covariates, [1.0, -1.0], "ATE", 0.1, 0.5), cls(covariates, [0.0, 0.0], "ATO", 0.1)]
            made += [cls(covariates, [0.0, 20.0], "ATE", 0.1, centre=centre) for centre in (-1.0, 0.3)]
        return tuple(made)
