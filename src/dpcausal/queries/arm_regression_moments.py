"""Sums of products of outcome and covariates in every declared arm, for a linear regression in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME as OUTCOME_TICKS
from dpcausal.queries.coerced import design, every_arm, rounded
from dpcausal.queries.features import covariates_named, design_names, name_tuple, one_and_all
from dpcausal.queries.query import Coordinate, Norm, Query, Sensitivity, root_above
from dpcausal.queries.regression_moments import CONSTANT, FINE, FIRST_FEATURE, OUTCOME
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Constant, Number
from dpcausal.treatment import TableColumn

MOST_FEATURES = 30
"""Noise grows with the number of features, with delta 0 with its square; beyond these it would hide everything."""

WEIGHTS: dict[tuple[int, int], int] = {(1, 0): 1, (0, 1): 2, (1, 1): 2, (0, 2): 4, (2, 0): 2}
"""How large a sum's noise is to be, in proportion: by how many factors are the outcome and how many are features. An
adjusted mean depends most on the arm's total. Deficits have at least twice the weight of the number itself."""

_SIZE_WEIGHTS: dict[Norm, int] = {"l1": 2, "l2": 1}

_FIXED = Fraction(1, 4)
"""The weight of a sum that no neighbour moves. Any weight would do; with this one its noise is about one unit."""

Product = tuple[int, int]
"""Which two of a unit's numbers are multiplied; a number with itself stands for the deficit, 1 less its square."""


@dataclass(frozen=True)
class ArmRegressionMoments(Query):
    """In every declared arm, the sums that a linear regression of the outcome on covariates needs.

    A unit's numbers are its outcome, z, and its features, x, all from -1 to 1, as in `RegressionMoments`. The answer
    holds for each arm the number of units, the sums of z, x, zx and xx', and of what z² and x² lack to 1. One unit is
    in one arm: it leaves one and enters another, so noise does not grow with the number of arms. Units whose arm is
    not declared are in none. Proof: docs/proofs/arm_regression_moments.md.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "arm_regression_moments"
    adds_up: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def features(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the features.

        Raises:
            QueryError: If they are too many.
        """
        names = design_names(self.covariates, schema)
        if len(names) > MOST_FEATURES:
            raise QueryError(
                expected=f"covariates that make at most {MOST_FEATURES} features",
                got=f"{len(names)}",
                hint="use fewer covariates: noise grows with their number.",
            )
        return names

    def products(self, schema: Schema) -> tuple[Product, ...]:
        """Return the sums of one arm, in the order of the coordinates; the first is the number of units."""
        return _products(FIRST_FEATURE + len(self.features(schema)))

    def names(self, schema: Schema, arm: int) -> tuple[str, ...]:
        """Return the names of the sums of the arm at this place."""
        numbers = ["", "outcome", *self.features(schema)]
        return tuple(
            " * ".join(
                [f"arm_{arm}", f"deficit of {numbers[first]}"]
                if first == second != CONSTANT
                else [f"arm_{arm}", *(numbers[place] for place in (first, second) if place != CONSTANT)]
            )
            for first, second in self.products(schema)
        )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        low, high = schema.outcome_bounds
        products = self.products(schema)
        sizes = [1.0, (high - low) / 2, *(1.0 for _ in self.features(schema))]
        parts = [
            (1.0, weight) if first == second == CONSTANT else (sizes[first] * sizes[second] / FINE**2, weight * FINE**2)
            for (first, second), weight in zip(products, _weights(products, protects, norm), strict=True)
        ]
        coordinates = tuple(
            Coordinate(name, tick, weight)
            for arm in range(len(schema.treatment.arms))
            for name, (tick, weight) in zip(self.names(schema, arm), parts, strict=True)
        )
        return Sensitivity(norm, coordinates, _bound(products, protects, norm))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        lines = [Constant(FINE), rounded(OUTCOME_TICKS, FINE), *design(self.covariates, schema, FINE)]
        numbers: dict[str, Number] = {}
        names = [name.removeprefix("arm_0") for name in self.names(schema, 0)]
        for name, (first, second) in zip(names, self.products(schema), strict=True):
            product = lines[first] * lines[second]
            numbers[f"arm{{}}{name}"] = FINE**2 - product if first == second else product
        numbers["arm{}"] = ONE
        return (Sums({every_arm(schema): len(schema.treatment.arms)}, numbers, everyone=True),)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment.every_arm, *covariates_named(self.covariates, schema), schema.outcome

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(covariates) for covariates in one_and_all(schema))


@lru_cache
def _products(last: int) -> tuple[Product, ...]:
    return tuple((first, second) for first in range(last) for second in range(first, last))


def _factors(product: Product) -> tuple[int, int]:
    """Return how many factors are the outcome, and how many are features."""
    return product.count(OUTCOME), sum(each >= FIRST_FEATURE for each in product)


def _weights(products: Sequence[Product], protects: Protects, norm: Norm) -> list[Fraction]:
    """Return the weight of each sum of an arm."""

    def weight(outcomes: int, features: int) -> Fraction:
        if outcomes + features == 0:
            return Fraction(_SIZE_WEIGHTS[norm]) if protects == "record" else _FIXED
        return _FIXED if protects == "outcome" and not outcomes else Fraction(WEIGHTS[outcomes, features])

    return [weight(*_factors(product)) for product in products]


def _bound(products: Sequence[Product], protects: Protects, norm: Norm) -> Fraction:
    """Return the largest move: of a unit that stays in its arm, or of one that leaves it for another."""
    power = {"l1": 1, "l2": 2}[norm]
    features = max(second for _, second in products) - FIRST_FEATURE + 1
    share = {kind: Fraction(1, weight) ** power for kind, weight in WEIGHTS.items()}

    def turned(outcome: bool, count: int) -> Fraction:
        """Return the move of all products where the outcome and so many features change sign."""
        kept = features - count
        odd = outcome * share[1, 0] + count * share[0, 1] + (kept if outcome else count) * share[1, 1]
        return int(2**power) * (odd + count * kept * share[0, 2])

    changed = range(features + 1) if protects != "outcome" else (0,)
    stays = max(turned(outcome, count) for outcome in (False, True) for count in changed) + share[2, 0]
    if protects != "outcome":
        stays += features * share[0, 2]
    moves = Fraction(0)
    if protects == "record":  # deficits move only as far as the number itself does not
        moves = Fraction(1, _SIZE_WEIGHTS[norm]) ** power + share[1, 0] + features * (share[0, 1] + share[1, 1])
        moves = 2 * (moves + features * (features - 1) // 2 * share[0, 2])
    return max(stays, moves) if norm == "l1" else root_above(max(stays, moves))
