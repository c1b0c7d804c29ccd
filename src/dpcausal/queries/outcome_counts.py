"""Numbers of outcomes between public edges: a histogram of the outcome, of all units or of each arm."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.cuts import rising_edges
from dpcausal.queries.profiles import ticks_of
from dpcausal.queries.query import Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Bin, Number

MOST_EDGES = 200


@dataclass(frozen=True)
class _Counts(SummingQuery):
    """The base of both queries."""

    _arms: ClassVar[tuple[str, ...]] = ("",)

    edges: Sequence[float]

    def __post_init__(self) -> None:
        of, hint = "edges between the outcome's bounds", "write for instance [1_000, 2_000, 4_000, 8_000]."
        object.__setattr__(self, "edges", rising_edges(self.edges, MOST_EDGES, of, hint))

    @property
    def bins(self) -> tuple[str, ...]:
        """The name of each bin in the answer; arm after arm, where they are apart."""
        return tuple(f"count{arm}_{place}" for arm in self._arms for place in range(len(self.edges) + 1))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        low, high = schema.outcome_bounds
        if not (isinstance(schema.outcome, Real) and low < self.edges[0] and self.edges[-1] < high):
            raise QueryError(
                expected=f"an outcome that is a number, and edges between {low:g} and {high:g}",
                got=f"outcome {schema.outcome.name!r} and edges from {self.edges[0]!r} to {self.edges[-1]!r}",
                hint="choose edges between the outcome's bounds.",
            )
        places = Bin(OUTCOME, tuple(ticks_of(schema.outcome, edge) for edge in self.edges))
        arms: dict[Number, int] = {TREATMENT: 2} if len(self._arms) > 1 else {}
        labels = tuple(name.removeprefix("count") for name in self.bins)
        return (
            Sums(arms | {places: len(self.edges) + 1}, {"count": ONE}, weights={"count": Fraction(1)}, labels=labels),
        )

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        low, high = schema.outcome_bounds
        edges = [low + (high - low) * share for share in (0.125, 0.25, 0.5)]
        return (cls(edges), cls(edges[-1:])) if isinstance(schema.outcome, Real) else ()


@dataclass(frozen=True)
class OutcomeCounts(_Counts):
    """How many units have an outcome in each bin between public edges, of the units in the comparison.

    One unit leaves one bin and joins another, however many there are.

    Attributes:
        edges: Where one bin ends and the next begins, in rising order, between the outcome's bounds. An edge belongs to
            the bin above.
    """

    name: ClassVar[str] = "outcome_counts"


@dataclass(frozen=True)
class ArmOutcomeCounts(_Counts):
    """How many units of each arm have an outcome in each bin between public edges.

    One unit leaves one bin of one arm and joins another, however many there are.

    Attributes:
        edges: As in `OutcomeCounts`.
    """

    name: ClassVar[str] = "arm_outcome_counts"
    _arms: ClassVar[tuple[str, ...]] = ("_0", "_1")
