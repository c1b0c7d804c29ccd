"""Sums of the outcome and of its squares in every declared arm, crossed with strata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.arm_moments import moment_ticks
from dpcausal.queries.basis import Cells
from dpcausal.queries.coerced import OUTCOME, every_arm, strata
from dpcausal.queries.cuts import Cut, cuts_of, single_cut
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.summing import SummingQuery, by_norm
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, deficit

_FIXED = Fraction(1)
"""The weight of a size that no neighbour moves. Any weight would do; with this one its noise is about one unit."""


@dataclass(frozen=True)
class CellMoments(SummingQuery):
    """In every declared arm, or every arm of every stratum: number of units, sum of outcomes, deficit of squares.

    Outcomes z are measured from the middle of their range, and h is half the range; the deficit is the sum of h² - z².
    One unit is in one cell: it leaves one and enters another, so noise does not grow with the number of arms or strata.
    Units whose arm is not declared are in no cell.

    Attributes:
        by: The strata; without any, cells are the arms.
    """

    name: ClassVar[str] = "cell_moments"

    by: Sequence[Cut] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", cuts_of(self.by) if self.by else ())

    def cells(self, schema: Schema) -> tuple[str, ...]:
        """Return what follows the name of a sum for each cell: first all arms of the first stratum, by their places."""
        arms = [f"_{place}" for place in range(len(schema.treatment.arms))]
        if not self.by:
            return tuple(arms)
        return tuple(f"{arm} of {stratum}" for stratum in Cells(self.by).names(schema) for arm in arms)

    def units_may_move(self, protects: Protects) -> bool:
        """Return whether one unit's change can take it from one cell to another."""
        return protects == "record" or (protects == "record_within_arm" and bool(self.by))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        cells = (strata(self.by, schema) if self.by else {}) | {every_arm(schema): len(schema.treatment.arms)}
        numbers = {"total": OUTCOME, "deficit": deficit(OUTCOME), "size": ONE}
        weights = {
            "total": Fraction(2 * GRID),
            "deficit": by_norm(norm, 4 * GRID, 2 * GRID),
            "size": by_norm(norm, 4, 2) if self.units_may_move(protects) else _FIXED,
        }
        return (Sums(cells, numbers, weights=weights, everyone=True, labels=self.cells(schema)),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return moment_ticks(outcome_tick(schema))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return (cls(), *(cls(by) for by in single_cut(schema)))
