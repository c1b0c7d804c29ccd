"""Differences in means within strata, weighted by capped balance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.cuts import Cut, bins, cuts_of, single_cut, strata_columns
from dpcausal.queries.expected_strata import expected_in_strata
from dpcausal.queries.query import GRID, Norm, Query, Sensitivity, compared, outcome_tick, shared
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn


@dataclass(frozen=True)
class StratumContrasts(Query):
    """The sum over strata of the difference in mean outcome, each stratum counted as far as its arms are balanced.

    A stratum with t treated and c control units counts as m = min(t, K c) + min(c, K t) units, K the cap; as 0 if an
    arm is empty. The answer holds the sum of m times the difference in means, the sum of m, and three sums from which
    the standard error is made, one of them the number of means: of arms of strata that hold units; and the number of
    units where they may leave the comparison. Proof: docs/proofs/stratum_contrasts.md.

    Attributes:
        cap: By how much one arm may outnumber the other before a stratum counts for less; a whole number.
    """

    name: ClassVar[str] = "stratum_contrasts"
    adds_up: ClassVar[bool] = True
    weight_square_ticks: ClassVar[int] = 1024
    shares: ClassVar[dict[str, Fraction]] = {
        "effect": Fraction(79, 100),
        "size": Fraction(10, 100),
        "squares": Fraction(6, 100),
        "weight_square_sum": Fraction(4, 100),
        "means": Fraction(1, 100),
    }
    """How the guarantee is divided among the five numbers."""
    compared_share: ClassVar[Fraction] = Fraction(3, 10)
    """What the number of units in the comparison gets: where a unit leaves, the effect needs half of its share only."""

    by: Sequence[Cut]
    cap: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", cuts_of(self.by))
        if not isinstance(self.cap, int) or not 1 <= self.cap <= 1000:
            raise QueryError(
                expected="a whole number from 1 to 1000 as cap",
                got=f"cap={self.cap!r}",
                hint="a cap of 3 to 10 is usual; without one, Stratification chooses it.",
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        bins(self.by, schema)
        tick, reach = outcome_tick(schema), 1 + self.cap
        # An outcome that alone may change touches one arm of one stratum; a record leaves one and joins another.
        touched = 1 if protects == "outcome" else 2
        parts = {
            "effect": (tick, touched * 2 * GRID * reach + 2),
            "size": (1.0, reach),
            "squares": (tick**2 * GRID, 4 * GRID + 2),
            "weight_square_sum": (1 / self.weight_square_ticks, 5 * reach**2 * self.weight_square_ticks + 2),
            "means": (1.0, 1),
        }
        five = shared(parts, self.shares, norm)
        share = self.compared_share if norm == "l1" else Fraction(math.sqrt(self.compared_share))
        return replace(five, coordinates=(*five.coordinates, *compared(schema, 1 / share)))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return strata_columns(self.by, schema)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise and effect; `expected_in_strata` has the assumptions."""
        return expected_in_strata(self.by, self.cap, expectations)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(by, cap) for by in single_cut(schema) for cap in (1, 3))
