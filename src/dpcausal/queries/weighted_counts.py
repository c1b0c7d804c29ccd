"""Weighted numbers of outcomes between public edges in each arm, with weights of a public propensity score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import TREATMENT
from dpcausal.queries.cuts import rising_edges
from dpcausal.queries.event_counts import MOST_TIMES, EventCounts
from dpcausal.queries.features import (
    single_feature,
)
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.scores import WeightedQuery, unit_weight
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Shift, Where, equals

_SQUARES = 8
"""The weight of a sum of squared weights, that of a count being 1: variances need to be known less well."""


@dataclass(frozen=True)
class WeightedCounts(WeightedQuery):
    """Sums of weights by arm, by interval of the outcome, and by what ended follow-up where a covariate says it.

    A unit adds its weight to one count, and the square of its weight to one sum of its arm. Weights are those of
    `WeightedArms`: a public function of the unit's own covariates and arm. With times it is the weighted form of
    `EventCounts`, with any other outcome that of `ArmOutcomeCounts`.

    Attributes:
        edges: Where one interval of the outcome ends and the next begins, in rising order. An edge belongs to the
            interval above it.
        event: The covariate that says what ended follow-up, where outcomes are times; empty for no such covariate.
    """

    name: ClassVar[str] = "weighted_counts"

    edges: Sequence[float]
    event: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        hint = "write for instance [3, 6, 9, 12]; weighted counts have more noise, so use fewer of them."
        edges = rising_edges(self.edges, MOST_TIMES, "edges between the outcome's bounds", hint)
        object.__setattr__(self, "edges", edges)
        if not isinstance(self.event, str) or self.event in self.covariates:
            raise QueryError(
                expected="the name of a covariate as event, and other covariates for the score",
                got=f"event={self.event!r}, covariates={list(self.covariates)}",
                hint="what ended follow-up cannot say who is treated.",
            )

    @property
    def unweighted(self) -> EventCounts:
        """The same counts of units that all weigh 1."""
        return EventCounts(self.edges, self.event)

    def counts(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each count: by arm, then interval and kind, and those beyond the last edge last."""
        return self.unweighted.counts(schema)

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: what ended follow-up."""
        return (self.event,) if self.event else ()

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        exponent = self.exponent(schema)
        weight = unit_weight(exponent, -exponent, self.estimand, self.clip)
        (counts,) = self.unweighted.sums(schema, protects, norm)  # raises where edges or event do not suit the schema
        squares = Shift(weight * weight, GRID.bit_length() - 1)
        whole = {f"squares_{arm}": Where(equals(TREATMENT, arm), squares) for arm in (0, 1)}
        weights = {"": Fraction(GRID), **dict.fromkeys(whole, Fraction(GRID * _SQUARES))}
        return (Sums(counts.cells, {"": weight}, whole, weights, labels=counts.labels),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return {"": self.largest / GRID} | {f"squares_{arm}": self.largest**2 / GRID for arm in (0, 1)}

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on: covariates with a coefficient of 0 too."""
        event = tuple(column for column in schema.covariates if column.name == self.event)
        return *super().reads(schema), *event

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        if not isinstance(schema.outcome, Real):
            return ()
        low, high = schema.outcome_bounds
        edges = [low + (high - low) * share for share in (0.25, 0.5)]
        listed = [column.name for column in schema.covariates if isinstance(column, Binary | Category)]
        made: list[Self] = []
        for covariates in single_feature(schema):
            events = [name for name in listed if name not in covariates][-1:]
            made += [cls(covariates, [0.0, 20.0], "ATE", 0.1, edges), cls(covariates, [5.0, -20.0], "ATT", 0.1, edges)]
            made += [cls(covariates, [1.0, -1.0], "ATO", 0.1, [*edges, high], event) for event in events]
        return tuple(made)
