"""Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.features import design_names
from dpcausal.queries.received_moments import ReceivedMoments
from dpcausal.queries.regression_moments import CONSTANT, FINE, Moment, ProductMoments, RegressionMoments, moment_name
from dpcausal.schema.columns import Binary, Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.sums.numbers import Code, Number, sign

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
class InstrumentMoments(ProductMoments):
    """Sums of products of outcome, treatment received, covariates and assignment, for two-stage least squares.

    The answer holds the sums of `RegressionMoments`, and those of r, +-r, rz and rx, with `interaction` also of +-rz
    and +-rx, where r is 1 for a unit that received the treatment and -1 for another one. r² is 1 for every unit, and no
    part of the answer.

    Attributes:
        received: The binary covariate that holds the treatment received.
        interaction: Whether each assigned arm gets regressions of its own.
    """

    name: ClassVar[str] = "instrument_moments"
    first_feature: ClassVar[int] = FIRST_FEATURE
    sizes: ClassVar[Mapping[int, float]] = {RECEIVED: 0.5}

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

    def moments(self, schema: Schema) -> tuple[Moment, ...]:
        """Return the sums, in the order of the coordinates."""
        squared = (RECEIVED, RECEIVED)
        return tuple(each for each in super().moments(schema) if (each.first, each.second) != squared)

    def weight(self, moment: Moment) -> int:
        """Return the size of a moment's noise, in proportion."""
        received = RECEIVED in (moment.first, moment.second)
        return RECEIVED_WEIGHTS[self.kind(moment)] if received else super().weight(moment)

    def numbers(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of a unit's numbers; the constant has none."""
        return "", "outcome", self.received, *design_names(self.covariates, schema)

    def lines(self, schema: Schema) -> list[Number]:
        """Return a unit's numbers, in ticks of which FINE make 1."""
        constant, outcome, *others = super().lines(schema)
        return [constant, outcome, FINE * sign(Code(f"covariate_{self.place(schema)}", 2)), *others]

    def names_for(self, schema: Schema, response: int) -> tuple[str, ...]:
        """Return the names here of the sums of `regression` with this response; empty for what is 0 of every table."""
        numbers = self.numbers(schema)
        places = [CONSTANT, response, *range(FIRST_FEATURE, len(numbers))]
        moments = [
            Moment(places[each.first], places[each.second], each.signed) for each in self.regression.moments(schema)
        ]
        return tuple("" if each.first == each.second == RECEIVED else moment_name(each, numbers) for each in moments)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: the treatment received."""
        return (self.received,)

    def place(self, schema: Schema) -> int:
        """Return the place of the treatment received among the covariates."""
        return ReceivedMoments(self.received).place(schema)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        pairs = [column.name for column in schema.covariates if isinstance(column, Binary)][:1]
        others = [column for column in schema.covariates if column.name not in pairs]
        every, numbers = (
            tuple(column.name for column in others if isinstance(column, kind)) for kind in (Column, Real)
        )
        chosen = [names for names in dict.fromkeys((numbers[:1], every)) if names and pairs]
        return tuple(cls(pairs[0], names, interaction) for names in chosen for interaction in (True, False))
