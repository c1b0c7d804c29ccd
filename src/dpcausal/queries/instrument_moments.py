"""Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np

from dpcausal.columns import Binary, Column
from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME as OUTCOME_TICKS
from dpcausal.queries.coerced import design, rounded
from dpcausal.queries.features import covariates_named, design_names
from dpcausal.queries.query import Coordinate, Norm, Query, Sensitivity, root_above
from dpcausal.queries.received_moments import ReceivedMoments
from dpcausal.queries.regression_moments import (
    CONSTANT,
    FINE,
    OUTCOME,
    Moment,
    RegressionMoments,
    moment_name,
    moment_sums,
)
from dpcausal.queries.regression_moments import WEIGHTS as REGRESSION_WEIGHTS
from dpcausal.real import Real
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Code, Constant, sign
from dpcausal.treatment import TableColumn

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
class InstrumentMoments(Query):
    """Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares.

    The answer holds the sums of `RegressionMoments`, and those of r, +-r, rz and rx, with `interaction` also of +-rz
    and +-rx, where r is 1 for a unit that received the treatment and -1 for another one. r² is 1 for every unit, and no
    part of the answer. Proof: docs/proofs/instrument_moments.md.

    Attributes:
        received: The binary covariate that holds the treatment received.
        covariates: The covariates of both regressions.
        interaction: Whether each assigned arm gets regressions of its own.
    """

    name: ClassVar[str] = "instrument_moments"
    adds_up: ClassVar[bool] = True

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

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        self.place(schema)
        numbers, moments = self._numbers(schema), self.moments(schema)
        low, high = schema.outcome_bounds
        sizes = [1.0, (high - low) / 2, 0.5, *(1.0 for _ in numbers[FIRST_FEATURE:])]
        coordinates = tuple(
            Coordinate(
                moment_name(moment, numbers),
                sizes[moment.first] * sizes[moment.second] / FINE**2,
                Fraction(moment.weight * 2 * FINE**2),
            )
            for moment in moments
        )
        power = {"l1": 1, "l2": 2}[norm]
        moved = _most(len(numbers), self.interaction, protects, power)
        if schema.units_may_leave(protects):  # each sum moves by half of what a change of sign moves it
            moved = max(moved, sum((Fraction(1, 2 * each.weight) ** power for each in moments), Fraction(0)))
        return Sensitivity(norm, coordinates, moved if norm == "l1" else root_above(moved))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        received = FINE * sign(Code(f"covariate_{self.place(schema)}", 2))
        lines = [Constant(FINE), rounded(OUTCOME_TICKS, FINE), received, *design(self.covariates, schema, FINE)]
        return (moment_sums(self.moments(schema), self._numbers(schema), lines),)

    def place(self, schema: Schema) -> int:
        """Return the place of the treatment received among the covariates."""
        return ReceivedMoments(self.received).place(schema)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        received = schema.covariates[self.place(schema)]
        return schema.treatment, *covariates_named(self.covariates, schema), received, schema.outcome

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


@lru_cache
def _most(last: int, interaction: bool, protects: Protects, power: int) -> Fraction:
    """Return the largest move, over all sign changes of a unit's numbers, plus that of the deficits, to this power."""
    moments = _moments(last, interaction, counted=False)
    whole = math.lcm(*(each.weight for each in moments)) ** power  # in parts of it all shares are integers
    first, second, signed = (
        np.array([getattr(each, name) for each in moments]) for name in ("first", "second", "signed")
    )
    shares = np.array([whole // each.weight**power for each in moments], dtype=np.int64)
    deficit = np.array([each.deficit for each in moments])
    most = 0
    for arm in (False, True) if protects == "record" else (False,):
        for outcome in (False, True):
            for received in (False, True) if protects != "outcome" else (False,):
                for features in range(last - FIRST_FEATURE + 1) if protects != "outcome" else (0,):
                    turned = np.zeros(last, dtype=bool)
                    turned[[OUTCOME, RECEIVED]] = outcome, received
                    turned[FIRST_FEATURE : FIRST_FEATURE + features] = True
                    odd = turned[first] ^ turned[second] ^ (signed & arm)
                    most = max(most, int(shares[odd & ~deficit].sum()))
    lacking = Fraction(0)
    for place in range(OUTCOME, last) if protects != "outcome" else (OUTCOME,):
        if place != RECEIVED:
            pair = (InstrumentMoment(place, place, signed=sign) for sign in (False, True))
            lacking += sum((Fraction(1, 2 * each.weight) ** power for each in pair), Fraction(0))
    return Fraction(most, whole) + lacking
