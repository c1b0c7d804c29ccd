"""Numbers of events and censorings between public times, in each arm."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, TREATMENT, covariate, strata
from dpcausal.queries.cuts import Cut, bins, cuts_of, rising_edges, single_cut
from dpcausal.queries.profiles import ticks_of
from dpcausal.queries.query import Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Bin, Clip

MOST_TIMES = 60

MOST_COUNTS = 20_000


@dataclass(frozen=True)
class EventCounts(SummingQuery):
    """How many units leave follow-up between public times, by arm and by what ended it, and how many go beyond.

    One unit leaves one count and joins another, however many there are.

    Attributes:
        times: Where one interval of time ends and the next begins, in rising order; the last is the horizon. A time
            belongs to the interval above it.
        event: The covariate that says what ended follow-up; empty where every time is that of an event.
        by: The covariates that define strata, if any.
    """

    name: ClassVar[str] = "event_counts"

    times: Sequence[float]
    event: str = ""
    by: Sequence[Cut] = ()

    def __post_init__(self) -> None:
        of, hint = "times, the last of which is the horizon", "write for instance [3, 6, 9, 12]."
        object.__setattr__(self, "times", rising_edges(self.times, MOST_TIMES, of, hint))
        object.__setattr__(self, "by", cuts_of(self.by) if self.by else ())
        if not isinstance(self.event, str) or self.event in [cut.name for cut in self.by]:
            raise QueryError(
                expected="the name of a covariate as event, and other covariates for strata",
                got=f"event={self.event!r}, by={[cut.name for cut in self.by]}",
                hint="what ended follow-up cannot define strata.",
            )

    def kinds(self, schema: Schema) -> int:
        """Return in how many ways follow-up can end: the values of the event's column, or 1 without one."""
        if not self.event:
            return 1
        column = next((column for column in schema.covariates if column.name == self.event), None)
        if not isinstance(column, Binary | Category):
            raise QueryError(
                problem=f"The event {self.event!r} must be a covariate with listed values, not "
                f"{column or 'a name that no covariate has'}",
                hint=f'declare it in the schema: Binary("{self.event}"), or a Category with censored first.',
            )
        return len(column.values)

    def strata(self, schema: Schema) -> tuple[str, ...]:
        """Return what follows the name of a count in each stratum; one empty text without strata."""
        if not self.by:
            return ("",)
        bins(self.by, schema)  # raises where there are too many
        names = itertools.product(*(cut.bin_names(schema) for cut in self.by))
        return tuple(" of " + ", ".join(each) for each in names)

    def counts(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each count: by stratum, then arm, then interval and kind, and those beyond last."""
        kinds, places = range(self.kinds(schema)), range(len(self.times))
        names = [
            name
            for arm in (0, 1)
            for name in (*(f"count_{arm}_{place}_{kind}" for place in places for kind in kinds), f"beyond_{arm}")
        ]
        strata = self.strata(schema)
        if len(names) * len(strata) > MOST_COUNTS:
            raise QueryError(
                expected=f"at most {MOST_COUNTS:,} counts",
                got=f"{len(names) * len(strata):,}",
                hint="use fewer strata, or fewer times.",
            )
        return tuple(name + stratum for stratum in strata for name in names)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: what ended follow-up."""
        return (self.event,) if self.event else ()

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        low, high = schema.outcome_bounds
        if not (isinstance(schema.outcome, Real) and low < self.times[0] and self.times[-1] <= high):
            raise QueryError(
                expected=f"an outcome that is a time, and a grid above {low:g} and up to {high:g}",
                got=f"outcome {schema.outcome.name!r} and times from {self.times[0]!r} to {self.times[-1]!r}",
                hint="declare the time as the outcome, Real(name, 0, longest follow-up), and choose times within.",
            )
        kinds, times = self.kinds(schema), len(self.times)
        place = kinds * Bin(OUTCOME, tuple(ticks_of(schema.outcome, time) for time in self.times))
        if self.event:
            place = place + covariate(self.event, schema)
        # Those beyond the last time are in one count, whatever their kind.
        ended = Clip(place, 0, kinds * times)
        cells = (strata(self.by, schema) if self.by else {}) | {TREATMENT: 2, ended: kinds * times + 1}
        return (Sums(cells, {"": ONE}, weights={"": Fraction(1)}, labels=self.counts(schema)),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        if not isinstance(schema.outcome, Real):
            return ()
        low, high = schema.outcome_bounds
        times = [low + (high - low) * share for share in (0.25, 0.5, 1.0)]
        listed = [column.name for column in schema.covariates if isinstance(column, Binary | Category)]
        strata = [by for by in single_cut(schema) if by[0].name not in listed[-1:]]
        return (
            cls(times),
            *(cls(times[:2], event) for event in listed[-1:]),
            *(cls(times, event, by) for event in listed[-1:] for by in strata),
        )
