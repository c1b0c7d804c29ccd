"""Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Self

from dpcausal.columns import Binary, Column
from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME as OUTCOME_TICKS
from dpcausal.queries.coerced import design, rounded
from dpcausal.queries.features import design_names
from dpcausal.queries.query import Norm
from dpcausal.queries.received_moments import ReceivedMoments
from dpcausal.queries.regression_moments import (
    CONSTANT,
    FINE,
    OUTCOME,
    Moment,
    RegressionMoments,
    moment_name,
    moment_sums,
    moment_ticks,
)
from dpcausal.queries.regression_moments import WEIGHTS as REGRESSION_WEIGHTS
from dpcausal.queries.summing import SummingQuery
from dpcausal.real import Real
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Code, Constant, sign

RECEIVED, FIRST_FEATURE = 2, 3
"""Where in a unit's list of numbers its treatment received and its features are; constant and outcome come first."""

RECEIVED_WEIGHTS: dict[tuple[bool, int, int], int] = {
    (True, 0, 0): 4,
    (False, 0, 0): 8,
    (False, 1, 0): 8,
    (True, 1, 0): 16,
    (False, 0, 1): 8,
    (True, 0, 1): 32,
}
"""How large the noise is to be, in proportion, in a moment that holds the treatment received: by whether it has the
arm's sign, and by how many other factors are the outcome and how many are features. An effect is mostly a small part of
the outcome's range, and noise in the share of compliers counts by that part: so it may be larger."""


@dataclass(frozen=True)
class InstrumentMoment(Moment):
    """One sum over units, as in `RegressionMoments`, with the treatment received as a further number."""

    @cached_property
    def weight(self) -> int:
        """The size of its noise, in proportion."""
        factors = (self.first, self.second)
        kind = self.signed, factors.count(OUTCOME), sum(each >= FIRST_FEATURE for each in factors)
        return (RECEIVED_WEIGHTS if RECEIVED in factors else REGRESSION_WEIGHTS)[kind]


@dataclass(frozen=True)
class InstrumentMoments(SummingQuery):
    """Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares.

    The answer holds the sums of `RegressionMoments`, and those of r, +-r, rz and rx, with `interaction` also of +-rz
    and +-rx, where r is 1 for a unit that received the treatment and -1 for another one. r² is 1 for every unit, and no
    part of the answer.

    Attributes:
        received: The binary covariate that holds the treatment received.
        covariates: The covariates of both regressions.
        interaction: Whether each assigned arm gets regressions of its own.
    """

    name: ClassVar[str] = "instrument_moments"

    received: str
    covariates: Sequence[str]
    interaction: bool = True

    def __post_init__(self) -> None:
        ReceivedMoments(self.received)
        regression = RegressionMoments(self.covariates, self.interaction)
        object.__setattr__(self, "covariates", regression.covariates)
        if self.received in self.covariates:
            raise QueryError(
                expected="covariates without the treatment received",
                got=repr(self.received),
                hint="covariates are known before the assignment; the treatment received comes after it.",
            )

    @property
    def regression(self) -> RegressionMoments:
        """The query for the regression of one response on the same covariates."""
        return RegressionMoments(self.covariates, self.interaction)

    def moments(self, schema: Schema) -> tuple[InstrumentMoment, ...]:
        """Return the sums, in the order of the coordinates."""
        last = FIRST_FEATURE + len(design_names(self.covariates, schema))
        return _moments(last, self.interaction, counted=schema.units_may_leave(schema.protects))

    def names_for(self, schema: Schema, response: int) -> tuple[str, ...]:
        """Return the names here of the sums of `regression` with this response; empty for what is 0 of every table."""
        numbers = self._numbers(schema)
        places = [CONSTANT, response, *range(FIRST_FEATURE, len(numbers))]
        moments = [
            InstrumentMoment(places[each.first], places[each.second], each.signed)
            for each in self.regression.moments(schema)
        ]
        return tuple("" if each.first == each.second == RECEIVED else moment_name(each, numbers) for each in moments)

    def _numbers(self, schema: Schema) -> tuple[str, ...]:
        return "", "outcome", self.received, *design_names(self.covariates, schema)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: the treatment received."""
        return (self.received,)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        received = FINE * sign(Code(f"covariate_{self.place(schema)}", 2))
        lines = [Constant(FINE), rounded(OUTCOME_TICKS, FINE), received, *design(self.covariates, schema, FINE)]
        return (moment_sums(self.moments(schema), self._numbers(schema), lines),)

    def place(self, schema: Schema) -> int:
        """Return the place of the treatment received among the covariates."""
        return ReceivedMoments(self.received).place(schema)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        """Return the size of one tick of each sum."""
        return moment_ticks(self.moments(schema), self._numbers(schema), schema, {RECEIVED: 0.5})

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        pairs = [column.name for column in schema.covariates if isinstance(column, Binary)][:1]
        others = [column for column in schema.covariates if column.name not in pairs]
        every, numbers = (
            tuple(column.name for column in others if isinstance(column, kind)) for kind in (Column, Real)
        )
        chosen = [names for names in dict.fromkeys((numbers[:1], every)) if names and pairs]
        return tuple(cls(pairs[0], names, interaction) for names in chosen for interaction in (True, False))


@lru_cache
def _moments(last: int, interaction: bool, *, counted: bool) -> tuple[InstrumentMoment, ...]:
    """Return the sums of products of so many numbers; the first of all is the number of units in the comparison."""
    every = [(first, second) for first in range(last) for second in range(first, last)]
    pairs = [pair for pair in every if pair != (RECEIVED, RECEIVED)]
    plain = [InstrumentMoment(*pair, signed=False) for pair in (pairs if counted else pairs[1:])]
    signed = [InstrumentMoment(*pair, signed=True) for pair in pairs if pair[0] == CONSTANT or interaction]
    return *plain, *signed
