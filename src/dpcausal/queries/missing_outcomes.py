"""Numbers of units with and without an outcome, by arm."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.query import GRID, Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, indicator


@dataclass(frozen=True)
class MissingOutcomes(SummingQuery):
    """How many units of each compared arm have an outcome, and how many have none.

    One unit leaves one of four counts and joins another, whatever is protected.
    """

    name: ClassVar[str] = "missing_outcomes"
    counts_missing: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("observed_0", "missing_0", "observed_1", "missing_1")

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        numbers = {
            "observed": indicator(Between(OUTCOME, -GRID, 0)),
            "missing": indicator(Between(OUTCOME, 1, GRID)),
        }
        return (Sums({TREATMENT: 2}, numbers, weights=dict.fromkeys(numbers, Fraction(1))),)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise: outcomes are missing equally often in both arms."""
        share = expectations.mean
        parts = [part for size in expectations.expected_sizes for part in (size * (1 - share), size * share)]
        return dict(zip(self.counts, parts, strict=True))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows: none where no outcome can be missing."""
        return (cls(),) if schema.outcome_may_be_missing else ()
