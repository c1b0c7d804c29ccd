"""Sums of covariates by arm, plain or weighted by a public propensity score: balance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, get_args

from dpcausal.queries.coerced import TREATMENT, arm_sizes, features
from dpcausal.queries.features import (
    Estimand,
    check_clip,
    check_coefficients,
    check_estimand,
    clipped_coefficients,
    largest_weight,
    name_tuple,
    single_feature,
)
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.scores import predictor, unit_weight
from dpcausal.queries.summing import CovariateSumsQuery, by_norm
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Shift, deficit

_BITS = GRID.bit_length() - 1


@dataclass(frozen=True)
class CovariateSums(CovariateSumsQuery):
    """In each arm, the sums of all covariates, and what the squares of those that are numbers lack.

    A number x is measured from the middle of its range in half ranges, one of two values is -1 or 1, one of more values
    is 1 in that value's place and 0 elsewhere; the deficit is the sum of 1 - x². The size of the treated arm comes with
    it where arms are private, and that of both where units may leave the comparison. A covariate costs no more than a
    number, however many values it has.
    """

    name: ClassVar[str] = "covariate_sums"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        lines = dict(zip(self.features(schema), features(self.covariates, schema), strict=True))
        totals = {f"total{{}} of {name}": line for name, line in lines.items()}
        deficits = {f"deficit{{}} of {name}": deficit(lines[name]) for name in self.numbers(schema)}
        sizes = arm_sizes(schema, protects)
        weights = _weights(totals, deficits, norm) | dict.fromkeys(sizes, Fraction(1))
        return (Sums({TREATMENT: 2}, totals | deficits, sizes, weights),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        totals = {f"total{{}} of {name}": 1 / GRID for name in self.features(schema)}
        return totals | {f"deficit{{}} of {name}": 1 / GRID for name in self.numbers(schema)}


@dataclass(frozen=True)
class WeightedCovariates(CovariateSums):
    """The same sums weighted by a propensity score that is public already; with sums of weights and of their squares.

    Weights are those of `WeightedArms`.

    Attributes:
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
        clip: The score is clipped to clip and 1 - clip.
    """

    name: ClassVar[str] = "weighted_covariates"

    score: Sequence[str]
    coefficients: Sequence[float]
    estimand: Estimand
    clip: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "score", name_tuple(self.score))
        object.__setattr__(self, "coefficients", clipped_coefficients(self.coefficients))
        check_estimand(self.estimand, get_args(Estimand))
        check_clip(self.clip)

    @property
    def largest(self) -> float:
        """The largest weight there can be."""
        return largest_weight(self.estimand, self.clip)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        check_coefficients(self.coefficients, self.score, schema)
        exponent = predictor(self.coefficients, self.score, schema)
        weight = unit_weight(exponent, -exponent, self.estimand, self.clip)
        lines, bits = dict(zip(self.features(schema), features(self.covariates, schema), strict=True)), _BITS
        own = {"weight_sum": weight, "weight_square_sum": Shift(weight * weight, bits)}
        totals = {f"total{{}} of {name}": Shift(weight * line + GRID // 2, bits) for name, line in lines.items()}
        deficits = {
            f"deficit{{}} of {name}": Shift(weight * deficit(lines[name]), bits) for name in self.numbers(schema)
        }
        weights = {"weight_sum": Fraction(2 * GRID), "weight_square_sum": Fraction(4 * GRID)}
        return (Sums({TREATMENT: 2}, own | totals | deficits, weights=weights | _weights(totals, deficits, norm)),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        weighted = {name: self.largest * tick for name, tick in super().ticks(schema).items()}
        return weighted | {"weight_sum": self.largest / GRID, "weight_square_sum": self.largest**2 / GRID}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        every = tuple(column.name for column in schema.covariates)
        made = []
        for score in single_feature(schema):
            made += [cls(covariates, score, [0.0, 20.0], "ATE", 0.1) for covariates in dict.fromkeys((score, every))]
            made += [
                cls(every, score, [1.0, -1.0], "ATT", 0.1),
                cls(every, score, [5.0, -20.0], "ATO", 0.1),
            ]
        return tuple(made)


def _weights(totals: Iterable[str], deficits: Iterable[str], norm: Norm) -> dict[str, Fraction]:
    """Return the weights of totals and deficits."""
    # A deficit moves fully only where the total does not move at all: with this weight it never adds to it.
    return dict.fromkeys(totals, Fraction(GRID)) | dict.fromkeys(deficits, by_norm(norm, 2 * GRID, GRID))
