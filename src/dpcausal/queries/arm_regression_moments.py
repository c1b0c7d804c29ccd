"""Sums of products of outcome and covariates in every declared arm, for a linear regression in each."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME as OUTCOME_TICKS
from dpcausal.queries.coerced import design, every_arm, rounded
from dpcausal.queries.features import design_names, one_and_all
from dpcausal.queries.query import Norm
from dpcausal.queries.regression_moments import CONSTANT, FINE, FIRST_FEATURE, OUTCOME
from dpcausal.queries.summing import CovariateQuery, by_norm
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Constant, Number

MOST_FEATURES = 30
"""Noise grows with the number of features, with delta 0 with its square; beyond these it would hide everything."""

WEIGHTS: dict[tuple[int, int], int] = {(1, 0): 1, (0, 1): 2, (1, 1): 2, (0, 2): 4, (2, 0): 2}
"""How large a sum's noise is to be, in proportion: by how many factors are the outcome and how many are features. An
adjusted mean depends most on the arm's total. Deficits have at least twice the weight of the number itself."""

_FIXED = Fraction(1, 4)
"""The weight of a sum that no neighbour moves. Any weight would do; with this one its noise is about one unit."""

Product = tuple[int, int]
"""Which two of a unit's numbers are multiplied; a number with itself stands for the deficit, 1 less its square."""


@dataclass(frozen=True)
class ArmRegressionMoments(CovariateQuery):
    """In every declared arm, the sums that a linear regression of the outcome on covariates needs.

    A unit's numbers are its outcome, z, and its features, x, all from -1 to 1, as in `RegressionMoments`. The answer
    holds for each arm the number of units, the sums of z, x, zx and xx', and of what z² and x² lack to 1. One unit is
    in one arm: it leaves one and enters another, so noise does not grow with the number of arms. Units whose arm is
    not declared are in none.
    """

    name: ClassVar[str] = "arm_regression_moments"

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
        return tuple(name.replace("{}", f"_{arm}", 1) for name in self._templates(schema).values())

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        lines = [Constant(FINE), rounded(OUTCOME_TICKS, FINE), *design(self.covariates, schema, FINE)]
        numbers: dict[str, Number] = {}
        weights: dict[str, Fraction] = {}
        for (first, second), name in self._templates(schema).items():
            if first == second == CONSTANT:
                numbers[name], weights[name] = ONE, by_norm(norm, 2, 1) if protects == "record" else _FIXED
                continue
            product = lines[first] * lines[second]
            numbers[name] = FINE**2 - product if first == second else product
            weights[name] = _weight((first, second), protects) * FINE**2
        return (Sums({every_arm(schema): len(schema.treatment.arms)}, numbers, {}, weights, everyone=True),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        low, high = schema.outcome_bounds
        templates = list(self._templates(schema).items())[1:]
        return {name: ((high - low) / 2) ** product.count(OUTCOME) / FINE**2 for product, name in templates}

    def _templates(self, schema: Schema) -> dict[Product, str]:
        """Return what each sum is called, with {} for the arm."""
        numbers = ["", "outcome", *self.features(schema)]
        names = {}
        for first, second in self.products(schema):
            factors = [numbers[place] for place in (first, second) if place != CONSTANT]
            deficit = first == second != CONSTANT
            names[first, second] = " * ".join(["arm{}", *([f"deficit of {numbers[first]}"] if deficit else factors)])
        return names

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(covariates) for covariates in one_and_all(schema))


@lru_cache
def _products(last: int) -> tuple[Product, ...]:
    return tuple((first, second) for first in range(last) for second in range(first, last))


def _weight(product: Product, protects: Protects) -> Fraction:
    """Return the weight of a sum of products, in units of FINE²."""
    outcomes, features = product.count(OUTCOME), sum(each >= FIRST_FEATURE for each in product)
    moves = outcomes or (features and protects != "outcome")
    return Fraction(WEIGHTS[outcomes, features]) if moves else _FIXED
