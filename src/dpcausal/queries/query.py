"""The protocol of queries, and the sensitivity of their answers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums import numbers
from dpcausal.utils.validation import is_number

GRID = numbers.GRID
"""Ticks from the middle of a column's range to its bounds. Values are rounded to these ticks before anything else."""

Norm = Literal["l1", "l2"]

Draw = Literal["laplace", "randomised_response", "cube", "ball"]
"""What an answer may draw from the vault's sampler."""

NoiseKind = Literal["either", "laplace", "smooth"]
"""`either`: Laplace where delta is 0, Gaussian where it is positive. `laplace`: delta must be 0. `smooth`: Laplace in
proportion to a smooth sensitivity of the table, and delta must be positive."""


@dataclass(frozen=True)
class Coordinate:
    """One number of an answer.

    The answer is an integer count of ticks. Its size in the schema's own terms is ticks times `tick`.

    Attributes:
        tick: The size of one tick, for instance in dollars.
        weight: The coordinate's share of the sensitivity, in ticks; its noise is in proportion to it. None where the
            size of the noise is decided by the table itself and is as private as the table.
    """

    name: str
    tick: float
    weight: Fraction | None


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move an answer.

    For neighbouring tables the vector of (change / weight) has a norm of at most `bound`.
    """

    norm: Norm
    coordinates: tuple[Coordinate, ...]
    bound: Fraction

    def __post_init__(self) -> None:
        names = [at.name for at in self.coordinates]
        if len(set(names)) != len(names):
            raise QueryError(
                expected="a name of its own for each number of an answer",
                got=", ".join(names),
                hint="rename covariates: none may be called intercept, or like a value of a category (ward=a).",
            )


class Query(Protocol):
    """A query that may be asked of a table."""

    name: ClassVar[str]
    public_values: ClassVar[tuple[str, ...]] = ()
    """Numbers that come with the answer without noise, because they are made of nothing private."""

    draws: ClassVar[tuple[Draw, ...]] = ()
    """What is drawn inside the answer, before the door adds noise; the proof covers it."""

    adds_up: ClassVar[bool] = False
    """Whether answers of several tables, added up, are the answer of all their units in one table. (Of strata: in one
    table in which each table's strata are apart.) Some round a sum to a tick, which each table does by itself."""

    counts_missing: ClassVar[bool] = False
    """Whether its outcome is whether the outcome is missing, which is never missing itself."""

    prepaid: ClassVar[bool] = False
    """Whether it is one look of a schedule whose looks are paid for once, all together: its number is `look`, and its
    sensitivity is that of all looks."""

    most_units: ClassVar[int] = 2**41
    """For how many units the proof holds; n is public, so a larger table is refused before anything is spent."""

    @property
    def noise(self) -> NoiseKind:
        """What kind of noise the proof is about."""
        return "either"

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: a unit that lacks one is outside, unless it declares `missing`."""
        return ()

    @property
    def indicated(self) -> tuple[str, ...]:
        """The numbers of which the answer tells who has none."""
        return ()

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of all numbers of the answer, where they are many and follow from the query alone."""
        return ()

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        ...

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        ...

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float] | None:
        """Return the expected answer without noise and without an effect, in the schema's units.

        None for a query that adds up units, which rehearsals answer from a synthetic population. It is made of public
        numbers alone: rehearsals and prices rest on it.
        """
        return None

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows; none where it lacks the columns.

        They cover every variant with a bound of its own. The audit, tests and benchmarks ask all of them.
        """
        ...


def plain_value(value: Value) -> Value:
    """Return a value as what it means, however it was written: 1, 1.0 and True are one number."""
    return float(value) + 0.0 if isinstance(value, bool) or is_number(value) else value  # -0.0 is 0.0 too


def value_names(column: Binary | Category) -> tuple[str, ...]:
    """Return what each value of a column is called in an answer. It is named by its meaning, as queries are compared.

    Example:
        >>> value_names(Category("stage", [1, 2.0, 2.5]))
        ('stage=1', 'stage=2', 'stage=2.5')
    """
    plain = (value if isinstance(value, str) else str(plain_value(value)).removesuffix(".0") for value in column.values)
    return tuple(f"{column.name}={value}" for value in plain)


def check_all_compared(query: Query, schema: Schema, protects: Protects) -> None:
    """Raise where a unit's change may take it out of the comparison, which the proof of a query does not cover."""
    if schema.units_may_leave(protects):
        raise QueryError(
            problem=f"{query.name} needs every unit in one of the two arms, and as declared some may be in neither",
            hint="choose another estimator, such as Stratification; or, where the table holds two arms only and every "
            "outcome, say what counts in place of others: Treatment(…, undeclared=…) and "
            f"{type(schema.outcome).__name__}({schema.outcome.name!r}, …, missing=…).",
        )


def compared(schema: Schema, weight: Fraction) -> tuple[Coordinate, ...]:
    """Return the number of units in the comparison as a coordinate, where it is private."""
    return (Coordinate("compared", 1.0, weight),) if schema.units_may_leave(schema.protects) else ()


def outcome_tick(schema: Schema) -> float:
    """Return the size of one tick of the outcome, in the outcome's units."""
    low, high = schema.outcome_bounds
    return (high - low) / 2 / GRID


def shared(parts: Mapping[str, tuple[float, int]], shares: Mapping[str, Fraction], norm: Norm) -> Sensitivity:
    """Return the sensitivity of numbers, each with its tick and move, that share a guarantee."""
    coordinates = []
    for part, (unit, moves) in parts.items():
        share = shares[part] if norm == "l1" else Fraction(math.sqrt(shares[part]))
        coordinates.append(Coordinate(part, unit, Fraction(moves) / share))
    return Sensitivity(norm, tuple(coordinates), Fraction(1) if norm == "l1" else 1 + Fraction(1, 10**12))
