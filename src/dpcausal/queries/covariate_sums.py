"""Sums of covariates by arm, plain or weighted by a public propensity score: balance."""

from collections.abc import Sequence
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
    covariates_named,
    largest_weight,
    name_tuple,
    numbers_among,
    one_and_all,
    score_columns,
    single_feature,
    summed_features,
)
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, compared, root_above
from dpcausal.queries.scores import predictor, unit_weight
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Number, Shift, deficit
from dpcausal.treatment import TableColumn


@dataclass(frozen=True)
class CovariateSums(Query):
    """In each arm, the sums of all covariates, and what the squares of those that are numbers lack.

    A number x is measured from the middle of its range in half ranges, one of two values is -1 or 1, one of more values
    is 1 in that value's place and 0 elsewhere; the deficit is the sum of 1 - x². The size of the treated arm comes with
    it where arms are private, and that of both where units may leave the comparison. However many values a covariate
    has, it costs as much as a number. Proof: docs/proofs/covariate_sums.md.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "covariate_sums"
    adds_up: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def features(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the features that are summed."""
        return summed_features(self.covariates, schema)

    def numbers(self, schema: Schema) -> tuple[str, ...]:
        """Return those features that are numbers, whose squares have a deficit."""
        return numbers_among(self.covariates, schema)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        one = Fraction(1)
        sizes = (Coordinate("size_1", 1.0, one), *compared(schema, one)) if protects == "record" else ()
        bound = _bound(len(self.covariates), protects, norm, extra=Fraction(1))
        return Sensitivity(norm, (*sizes, *self._sums(schema, norm, 1.0)), bound)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        lines = dict(zip(self.features(schema), features(self.covariates, schema), strict=True))
        numbers = {f"total{{}} of {name}": line for name, line in lines.items()}
        numbers |= {f"deficit{{}} of {name}": deficit(lines[name]) for name in self.numbers(schema)}
        return (Sums({TREATMENT: 2}, numbers, arm_sizes(schema, protects)),)

    def _sums(self, schema: Schema, norm: Norm, largest: float) -> tuple[Coordinate, ...]:
        parts = [(f"total_{arm} of {name}", 1) for arm in (0, 1) for name in self.features(schema)]
        # A deficit moves fully only where the total does not move at all: with this weight it never adds to it.
        deficit = {"l1": 2, "l2": 1}[norm]
        parts += [(f"deficit_{arm} of {name}", deficit) for arm in (0, 1) for name in self.numbers(schema)]
        return tuple(Coordinate(name, largest / GRID, Fraction(GRID * weight)) for name, weight in parts)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment, *covariates_named(self.covariates, schema)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(covariates) for covariates in one_and_all(schema))


@dataclass(frozen=True)
class WeightedCovariates(CovariateSums):
    """The same sums weighted by a propensity score that is public already; with sums of weights and of their squares.

    Weights are those of `WeightedArms`. Proof: docs/proofs/covariate_sums.md.

    Attributes:
        score: The covariates of the score.
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
        estimand: Whose effect the weights are for.
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

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        check_coefficients(self.coefficients, self.score, schema)
        weights = tuple(
            Coordinate(f"{part}_{arm}", self.largest**power / GRID, Fraction(GRID * weight))
            for part, power, weight in (("weight_sum", 1, 2), ("weight_square_sum", 2, 4))
            for arm in (0, 1)
        )
        bound = _bound(len(self.covariates), protects, norm, extra=Fraction(3, 2))
        return Sensitivity(norm, (*weights, *self._sums(schema, norm, self.largest)), bound)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        exponent = predictor(self.coefficients, self.score, schema)
        weight = unit_weight(exponent, -exponent, self.estimand, self.clip)
        lines = dict(zip(self.features(schema), features(self.covariates, schema), strict=True))
        bits = GRID.bit_length() - 1
        numbers: dict[str, Number] = {"weight_sum": weight, "weight_square_sum": Shift(weight * weight, bits)}
        for name, line in lines.items():
            numbers[f"total{{}} of {name}"] = Shift(weight * line + GRID // 2, bits)
        for name in self.numbers(schema):
            numbers[f"deficit{{}} of {name}"] = Shift(weight * deficit(lines[name]), bits)
        return (Sums({TREATMENT: 2}, numbers),)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return tuple(dict.fromkeys((*super().reads(schema), *score_columns(self.score, schema))))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        every = tuple(column.name for column in schema.covariates)
        made = []
        for score in single_feature(schema):
            made += [cls(covariates, score, [0.0, 20.0], "ATE", 0.1) for covariates in dict.fromkeys((score, every))]
            made += [
                cls(every, score, [1.0, -1.0], "ATT", 0.1),
                cls(every, score, [5.0, -20.0], "ATO", 0.1),
            ]
        return tuple(made)


def _bound(covariates: int, protects: Protects, norm: Norm, extra: Fraction) -> Fraction:
    """Return the bound: each covariate moves by at most 2, sizes of arms only where the arm changes; and rounding."""
    rounding = Fraction(5 * covariates + 1, GRID)
    if norm == "l2":
        return root_above(Fraction(4 * covariates)) + rounding
    return 2 * covariates + (extra if protects == "record" else 0) + rounding
