"""Sums of the outcome, of covariates and of their products: how covariates spread and predict the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.columns import Binary
from dpcausal.queries.coerced import OUTCOME, everyone_compared, features
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
)
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Number, Shift, deficit
from dpcausal.treatment import TableColumn

_SHIFT = GRID.bit_length() - 1


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

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        lines = dict(zip(self.features(schema), features(self.covariates, schema), strict=True))
        half = GRID // 2
        numbers: dict[str, Number] = {"outcome": OUTCOME}
        numbers |= {f"total of {name}": line for name, line in lines.items()}
        numbers |= {f"outcome * {name}": Shift(OUTCOME * line + half, _SHIFT) for name, line in lines.items()}
        numbers |= {f"deficit of {name}": deficit(lines[name]) for name in self.numbers(schema)}
        return (Sums({}, numbers | everyone_compared(schema)),)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment, *covariates_named(self.covariates, schema), schema.outcome

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(covariates) for covariates in one_and_all(schema))
