"""Sums of the outcome, of the distance from a cutoff and of their products, on both sides of the cutoff."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, TypeGuard

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, rounded
from dpcausal.queries.profiles import grid
from dpcausal.queries.query import Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Bin, Clip, Lookup, Number, Shift, Ticks
from dpcausal.utils.validation import is_number

FINE = 2**10
"""Ticks to 1 of distances and outcomes, so that products are exact."""

_SHIFT = 30

_NARROWEST = 1000
"""By how much the bandwidth may be narrower than the running variable's range."""


@dataclass(frozen=True)
class CutoffMoments(SummingQuery):
    """Sums over the units within a bandwidth of a cutoff, for a linear regression of the outcome on each side of it.

    The distance from the cutoff is measured from the middle of the side's window, so that it lies between -1, at the
    cutoff, and 1, at the bandwidth. On each side the answer holds the number of units, and sums of the outcome, of the
    distance, of their product, and of what their squares lack to the largest.

    Attributes:
        running: The covariate, a number, that decides on the treatment.
        cutoff: The value from which on a unit is above the cutoff.
        bandwidth: The distance from the cutoff up to which units count.
        treated_below: Whether units below the cutoff are the treated ones.
    """

    name: ClassVar[str] = "cutoff_moments"

    running: str
    cutoff: float
    bandwidth: float
    treated_below: bool = False

    def __post_init__(self) -> None:
        numbers = is_number(self.cutoff) and is_number(self.bandwidth) and self.bandwidth > 0
        if not (isinstance(self.running, str) and numbers and isinstance(self.treated_below, bool)):
            raise QueryError(
                expected="the name of a running variable, a cutoff, a bandwidth above 0, and True or False",
                got=f"{self.running!r}, {self.cutoff!r}, {self.bandwidth!r} and {self.treated_below!r}",
                hint='write running="risk", cutoff=0.1, bandwidth=0.05.',
            )
        object.__setattr__(self, "cutoff", float(self.cutoff))
        object.__setattr__(self, "bandwidth", float(self.bandwidth))

    def column(self, schema: Schema) -> Real:
        """Return the running variable's column."""
        return schema.covariates[self.place(schema)]  # type: ignore[return-value]

    def place(self, schema: Schema) -> int:
        """Return its place among the covariates."""
        found = {each.name: at for at, each in enumerate(schema.covariates) if _may_run(each)}
        if self.running not in found:
            raise QueryError(
                expected=f"a Real covariate, without a scale, as the running variable: {', '.join(found) or 'none'}",
                got=repr(self.running),
                hint='declare it among the covariates, with its bounds: Real("risk", 0, 1).',
            )
        column: Real = schema.covariates[found[self.running]]  # type: ignore[assignment]
        wide = column.high - column.low
        if not column.low < self.cutoff < column.high or not wide / _NARROWEST <= self.bandwidth <= wide:
            raise QueryError(
                expected=f"a cutoff between {column.low:g} and {column.high:g}, and a bandwidth from "
                f"{wide / _NARROWEST:g} to {wide:g}",
                got=f"{self.cutoff:g} and {self.bandwidth:g}",
                hint=f"both are in the units of {self.running}.",
            )
        return found[self.running]

    def window(self, schema: Schema) -> tuple[int, int]:
        """Return the cutoff, in ticks from the middle of the running variable's range, and the bandwidth in ticks."""
        middle, ticks_to_one = grid(self.column(schema))
        return round((self.cutoff - middle) * ticks_to_one), round(self.bandwidth * ticks_to_one)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: the running variable, which decides on the treatment."""
        return (self.running,)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        (cutoff, bandwidth), running = self.window(schema), Ticks(f"covariate_{self.place(schema)}")
        below, above = int(self.treated_below), int(not self.treated_below)
        window = Bin(running, (cutoff - bandwidth, cutoff, cutoff + bandwidth + 1))
        beyond = running - cutoff
        steps = Clip(Clip(beyond, 0, bandwidth) + Clip(-beyond, 0, bandwidth), 0, bandwidth)
        distance = Shift(steps * ((2 * FINE << _SHIFT) // bandwidth), _SHIFT) - FINE
        outcome = rounded(OUTCOME, FINE)
        numbers = {
            "total": outcome,
            "product": distance * outcome,
            "distance": distance,
            "size": ONE,
            "spread": FINE**2 - distance * distance,
            "deficit": FINE**2 - outcome * outcome,
        }
        weights = {
            "total": 2 * FINE,
            "product": FINE**2,
            "distance": 2 * FINE,
            "size": 4,
            "spread": 4 * FINE**2,
            "deficit": 2 * FINE**2,
        }
        sides: dict[Number, int] = {Lookup(window, (2, below, above, 2)): 2}
        return (Sums(sides, numbers, weights={name: Fraction(each) for name, each in weights.items()}),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        low, high = schema.outcome_bounds
        half, squared = (high - low) / 2, FINE**2
        return {
            "total": half / FINE,
            "product": half / squared,
            "distance": 1 / FINE,
            "spread": 1 / squared,
            "deficit": half**2 / squared,
        }

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: a narrow window, and one that holds all units."""
        columns = [each for each in schema.covariates if _may_run(each)][:1]
        return tuple(
            cls(each.name, (each.low + each.high) / 2, part * (each.high - each.low), treated_below=part == 1)
            for each in columns
            for part in (0.25, 1)
        )


def _may_run(column: Column) -> TypeGuard[Real]:
    """Return whether a column is a number in its own unit."""
    return isinstance(column, Real) and column.scale is None
