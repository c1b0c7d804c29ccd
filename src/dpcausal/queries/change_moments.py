"""Sums of each unit's change from a value before to a value after, and of its squares, in each arm."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.arm_moments import moment_sums, moment_ticks
from dpcausal.queries.coerced import in_ticks
from dpcausal.queries.features import is_measured
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Clip, Shift
from dpcausal.utils.validation import is_number

FINE = 2**20
"""Parts of a tick in which changes are computed before they are rounded."""

_NARROWEST = 1000
"""By how much bounds of the change may be narrower than the widest change, so that all integers fit into 64 bits."""


@dataclass(frozen=True)
class ChangeMoments(SummingQuery):
    """The sums of `ArmMoments` for each unit's change, the value after minus the value before.

    A change beyond its public bounds counts as the nearer bound.

    Attributes:
        before: The covariate that holds the value before.
        after: The covariate that holds the value after; empty for the outcome.
        low: The lower public bound of the change.
        high: The upper public bound of the change.
    """

    name: ClassVar[str] = "change_moments"

    before: str
    after: str
    low: float
    high: float

    def __post_init__(self) -> None:
        texts = isinstance(self.before, str) and isinstance(self.after, str)
        if not texts or not (is_number(self.low) and is_number(self.high)) or not -math.inf < self.low < self.high:
            raise QueryError(
                expected="names of the columns before and after, and a lower and an upper bound of the change",
                got=f"{self.before!r}, {self.after!r}, {self.low!r} and {self.high!r}",
                hint="write for instance low=-10, high=10.",
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def columns(self, schema: Schema) -> tuple[tuple[str, Column], tuple[str, Column]]:
        """Return the columns before and after, with their names among coerced columns."""
        found = {each.name: (f"covariate_{at}", each) for at, each in enumerate(schema.covariates)}
        numbers = [name for name, (_, each) in found.items() if is_measured(each)]
        for name in (self.before, self.after):
            if name not in numbers and (name or name is self.before):
                raise QueryError(
                    expected=f"a covariate without a scale that holds the value before, out of: {', '.join(numbers)}",
                    got=repr(name),
                    hint='declare it among the covariates, with its bounds: Real("score_before", 0, 10).',
                )
        return found[self.before], found[self.after] if self.after else ("outcome", schema.outcome)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: the values before and after."""
        return tuple(name for name in (self.before, self.after) if name)

    def factors(self, schema: Schema) -> tuple[int, int, int]:
        """Return by what ticks of the columns after and before are multiplied, and what is added, for a fine change."""
        (_, before), (_, after) = self.columns(schema)
        half, middle = (self.high - self.low) / 2, (self.low + self.high) / 2
        (low, high), (low_before, high_before) = bounds_of(after), bounds_of(before)
        shift = (low + high) / 2 - (low_before + high_before) / 2 - middle
        return (
            round((high - low) / 2 / half * FINE),
            round((high_before - low_before) / 2 / half * FINE),
            round(shift / half * GRID * FINE),
        )

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        columns = self.columns(schema)
        low, high = widest_change(columns[0][1], columns[1][1])
        if not (low <= self.low and self.high <= high and high - low <= _NARROWEST * (self.high - self.low)):
            raise QueryError(
                expected=f"bounds of the change within {low:g} and {high:g}, at least a thousandth of that apart",
                got=f"{self.low:g} to {self.high:g}",
                hint="the widest change follows from the bounds of both columns.",
            )
        before, after = (in_ticks(*each) for each in columns)
        times_after, times_before, shift = self.factors(schema)
        fine = times_after * after - times_before * before + shift
        change = Shift(Clip(fine, -GRID * FINE, GRID * FINE), FINE.bit_length() - 1)
        return (moment_sums(change, schema, protects, norm),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return moment_ticks((self.high - self.low) / 2 / GRID)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: with the widest bounds, and with narrower ones."""
        columns = [each for each in schema.covariates if is_measured(each)][:1]
        bounds = [(each.name, *widest_change(each, schema.outcome)) for each in columns]
        cut = ((name, low, high, part * (high - low)) for name, low, high in bounds for part in (0, 0.25))
        return tuple(cls(name, "", low + less, high - less) for name, low, high, less in cut)


def bounds_of(column: Column) -> tuple[float, float]:
    """Return the bounds of a number, or of a binary value as 0 and 1."""
    return (column.low, column.high) if isinstance(column, Real) else (0.0, 1.0)


def widest_change(before: Column, after: Column) -> tuple[float, float]:
    """Return the bounds of the change that follow from the bounds of both columns.

    Example:
        >>> widest_change(Real("before", 0, 10), Real("after", 0, 10))
        (-10.0, 10.0)
    """
    (low, high), (low_before, high_before) = bounds_of(after), bounds_of(before)
    return low - high_before, high - low_before
