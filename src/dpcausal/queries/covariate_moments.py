"""Sums of the outcome, of covariates and of their products: how covariates spread and predict the outcome."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.columns import Binary
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.queries.features import covariates_named, name_tuple, numbers_among, one_and_all, summed_features
from dpcausal.queries.query import (
    GRID,
    Coordinate,
    Norm,
    Query,
    Sensitivity,
    compared,
    outcome_tick,
    root_above,
    value_names,
)
from dpcausal.real import Real
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn


def explained(schema: Schema, centre: float) -> float:
    """Return the share of the outcome's variance that covariates are expected to explain.

    It is a quarter; for an event, the variance of the event, as for a predictor with a standard deviation of one logit.

    Args:
        schema: What is public about the table.
        centre: The mean outcome, in half ranges from the middle of its range.
    """
    return (1 - min(abs(centre), 0.99) ** 2) / 4 if isinstance(schema.outcome, Binary) else 0.25


@dataclass(frozen=True)
class CovariateMoments(Query):
    """Sums of the outcome, of all covariates, of their products with the outcome, and of what squares lack.

    A number is measured from the middle of its range in half ranges, one of two values is -1 or 1, one of more values
    is 1 in that value's place and 0 elsewhere: the features of a score. The deficit of a number x is the sum of 1 - x².
    Arms play no part, but for the number of units where these may leave the comparison. However many values a covariate
    has, it costs as much as a number. Proof: docs/proofs/covariate_moments.md.

    Attributes:
        covariates: The covariates.
    """

    name: ClassVar[str] = "covariate_moments"
    adds_up: ClassVar[bool] = True

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    def features(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the features."""
        return summed_features(self.covariates, schema)

    def numbers(self, schema: Schema) -> tuple[str, ...]:
        """Return those features that are numbers, whose squares have a deficit."""
        return numbers_among(self.covariates, schema)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002
        """Return the answer's coordinates and how far one unit can move them."""
        one, outcome = Fraction(GRID), outcome_tick(schema)
        names = self.features(schema)
        coordinates = (
            Coordinate("outcome", outcome, 2 * one),
            *(Coordinate(f"total of {name}", 1 / GRID, one) for name in names),
            *(Coordinate(f"outcome * {name}", outcome, one) for name in names),
            *(Coordinate(f"deficit of {name}", 1 / GRID, one) for name in self.numbers(schema)),
            *compared(schema, Fraction(1)),
        )
        count = len(self.covariates)
        bound = Fraction(4 * count + 1) if norm == "l1" else root_above(Fraction(8 * count + 1))
        return Sensitivity(norm, coordinates, bound + Fraction(4 * count, GRID))  # and what rounding to ticks adds

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment, *covariates_named(self.covariates, schema), schema.outcome

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:  # noqa: ARG002
        """Return the expected answer without noise: covariates explain the share `explained` of the outcome's variance.

        Each covariate has an equal part in it and is independent of the others. Listed values are equally frequent.
        """
        schema, n = expectations.schema, float(expectations.compared)
        low, high = schema.outcome_bounds
        mean = expectations.mean - (low + high) / 2
        slope = expectations.sd * math.sqrt(explained(schema, mean / (high - low) * 2) / len(self.covariates))
        values = {"outcome": n * mean, "compared": n}
        for column in covariates_named(self.covariates, schema):
            if isinstance(column, Real) or len(column.values) == 2:
                sd = expectations.covariate_spread(column)
                values |= {f"total of {column.name}": 0.0, f"outcome * {column.name}": n * slope * sd}
                values |= {f"deficit of {column.name}": n * (1 - sd**2)}
                continue
            share = 1 / len(column.values)
            for place, name in enumerate(value_names(column)):  # the first two values differ from the rest
                apart = (1, -1)[place] * slope * math.sqrt(share / 2) if place < 2 else 0.0
                values |= {f"total of {name}": n * share, f"outcome * {name}": n * (share * mean + apart)}
        return values

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(covariates) for covariates in one_and_all(schema))
