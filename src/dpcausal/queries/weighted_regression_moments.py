"""Sums of products of outcome, covariates and arm, each unit with a weight that bounds its influence."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from dpcausal.queries.coerced import OUTCOME, design, rounded
from dpcausal.queries.features import covariates_named, design_names, name_tuple, numbers_among, one_and_all
from dpcausal.queries.query import Coordinate, Norm, Query, Sensitivity, compared
from dpcausal.queries.regression_moments import CONSTANT, FINE, Moment, all_moments
from dpcausal.queries.regression_moments import OUTCOME as OUTCOME_PLACE
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.numbers import Constant, Number
from dpcausal.sums.roots import root_above

WHOLE = 2**10
"""Ticks of a weight of 1."""

USUAL = round(FINE**2 / REACH**2)
"""The square of a number with a scale, in ticks², as it is on average."""

SIGNED = Fraction(1, 2)
"""How much signed sums count beside plain ones, which slopes need most."""

MEANS = Fraction(1, 4)
"""What the sums of features without weights add to the squared bound, as a share of it."""

_OFF_DIAGONAL = Fraction(7072, 10000)
"""At least √(1/2)."""


@dataclass(frozen=True)
class WeightedRegressionMoments(Query):
    """Sums of products for linear regressions of the outcome, with weights that bound the influence of each unit.

    A unit's numbers are a constant 1, its outcome, z, and its features, x, all from -1 to 1, as in `RegressionMoments`.
    Each has a public size. A unit's weight is 1 where the squared length of its sized numbers, with z² as 1, is at most
    a public number, and in inverse proportion to it beyond. It depends on covariates alone, so that weighted least
    squares is right where outcomes are linear in them. The answer holds the weighted sums of all products of two
    numbers, without and with the arm's sign; and without weights the sums of features and of what squares of numeric
    covariates lack to 1, and the number of units where they may leave the comparison. Proof:
    docs/proofs/weighted_regression_moments.md.

    They are for slopes, and not for the arms' means: sums with the arm's sign have more noise than those without.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "weighted_regression_moments"
    adds_up: ClassVar[bool] = True
    most_units: ClassVar[int] = 2**31
    interaction: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def lines(self, schema: Schema) -> list[Number]:
        """Return a unit's numbers, in ticks of which FINE make 1."""
        return [Constant(FINE), rounded(OUTCOME, FINE), *design(self.covariates, schema, FINE)]

    def sizes(self, schema: Schema) -> tuple[int, ...]:
        """Return the largest square of each sized number, in ticks²: numbers have size 1, other features are usual.

        Those of the constant and of the outcome are that of all features together.
        """
        features = [
            FINE**2 if isinstance(column, Real) else USUAL
            for column in covariates_named(self.covariates, schema)
            for _ in range(1 if isinstance(column, Real) else len(column.values) - 1)
        ]
        together = len(features) * USUAL
        return together, together, *features

    def most(self, schema: Schema) -> int:
        """Return the largest squared length of a unit's sized numbers with the root of its weight, in ticks²."""
        constant, outcome, *features = self.sizes(schema)
        return constant + outcome + len(features) * USUAL

    def moments(self, schema: Schema) -> tuple[Moment, ...]:
        """Return the weighted sums, in the order of the coordinates; the first is that of the weights."""
        return all_moments(len(self.sizes(schema)), interaction=True, counted=True)

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the weighted sums."""
        return tuple(weighted_name(each, design_names(self.covariates, schema)) for each in self.moments(schema))

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        return _sensitivity(self, schema, norm)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return schema.treatment, *covariates_named(self.covariates, schema), schema.outcome

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(map(cls, one_and_all(schema)))


def weighted_name(moment: Moment, features: Sequence[str]) -> str:
    """Return the name of a weighted sum, given the names of features."""
    numbers = ("", "outcome", *features)
    factors = [numbers[place] for place in (moment.first, moment.second) if place != CONSTANT]
    return " * ".join([*(["arm"] if moment.signed else []), *factors]) or "weight"


def sum_name(feature: str) -> str:
    """Return the name of the sum of a feature over units without weights."""
    return f"sum of {feature}"


def deficit_name(number: str) -> str:
    """Return the name of the sum of what the squares of a numeric covariate lack to 1, without weights."""
    return f"sum of deficit of {number}"


@lru_cache(1_000)
def _sensitivity(query: WeightedRegressionMoments, schema: Schema, norm: Norm) -> Sensitivity:
    low, high = schema.outcome_bounds
    sizes, most, names = query.sizes(schema), query.most(schema), query.names(schema)
    features = design_names(query.covariates, schema)
    half, signed = (high - low) / 2, SIGNED
    coordinates = []
    for name, moment in zip(names, query.moments(schema), strict=True):
        places = (moment.first, moment.second)
        ends = [Fraction(sizes[place], FINE**2) for place in places]
        # A product of two different numbers counts twice in the length of all products.
        weight = root_above((WHOLE * most) ** 2 / (ends[0] * ends[1] * (1 if places[0] == places[1] else 2)))
        tick = half ** places.count(OUTCOME_PLACE) / FINE**2 / WHOLE
        coordinates.append(Coordinate(name, tick, weight / signed if moment.signed else weight))
    own, moved = 1 + signed**2, _moved(query, schema)
    mean = root_above(moved / (2 * own * MEANS))
    coordinates += [Coordinate(sum_name(name), 1 / FINE, mean * FINE) for name in features]
    numbers = numbers_among(query.covariates, schema)
    deficit = mean * _OFF_DIAGONAL * FINE**2
    coordinates += [Coordinate(deficit_name(name), 1 / FINE**2, deficit) for name in numbers]
    coordinates += compared(schema, Fraction(1))
    leaves, others = int(schema.units_may_leave(schema.protects)), len(features) - len(numbers)
    if norm == "l2":
        stays, left = 2 * own + moved / mean**2, own + (2 * len(numbers) + others) / mean**2 + leaves
        return Sensitivity(norm, tuple(coordinates), root_above(max(stays, left)))
    one = (1 + signed) * (len(sizes) * _OFF_DIAGONAL + 1 - _OFF_DIAGONAL)
    # A number and its deficit move by 2.6 in all at most, and leave with 1.6.
    stays = 2 * one + (moved / 2 + Fraction(6, 10) * len(numbers)) / mean
    left = one + (Fraction(16, 10) * len(numbers) + others) / mean + leaves
    return Sensitivity(norm, tuple(coordinates), max(stays, left))


def _moved(query: WeightedRegressionMoments, schema: Schema) -> Fraction:
    """Return how far a unit can move its features, squared: of a category at most two change, each by 2."""
    columns = covariates_named(query.covariates, schema)
    return Fraction(4 * sum(1 if isinstance(each, Real) else min(len(each.values) - 1, 2) for each in columns))
