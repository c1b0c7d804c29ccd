"""Sums of the outcome and of its squares in every declared arm, crossed with strata."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.basis import Cells
from dpcausal.queries.coerced import OUTCOME, every_arm, strata
from dpcausal.queries.cuts import Cut, cuts_of, single_cut
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, outcome_tick
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, deficit
from dpcausal.treatment import TableColumn

_FIXED = Fraction(1)
"""The weight of a size that no neighbour moves. Any weight would do; with this one its noise is about one unit."""


@dataclass(frozen=True)
class CellMoments(Query):
    """In every declared arm, or every arm of every stratum: number of units, sum of outcomes, deficit of squares.

    Outcomes z are measured from the middle of their range, and h is half the range; the deficit is the sum of h² - z².
    One unit is in one cell: it leaves one and enters another, so noise does not grow with the number of arms or strata.
    Units whose arm is not declared are in no cell. Proof: docs/proofs/cell_moments.md.

    Attributes:
        by: The strata; without any, cells are the arms.
    """

    name: ClassVar[str] = "cell_moments"
    adds_up: ClassVar[bool] = True

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

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        tick, moves = outcome_tick(schema), self.units_may_move(protects)
        size, deficit, rounding = {
            "l1": (Fraction(4), 4 * GRID, Fraction(1, 4 * GRID)),
            "l2": (Fraction(2), 2 * GRID, Fraction(1, 2 * GRID)),
        }[norm]
        parts = {
            "total": (tick, Fraction(2 * GRID)),
            "deficit": (tick**2 * GRID, Fraction(deficit)),
            "size": (1.0, size if moves else _FIXED),
        }
        coordinates = tuple(
            Coordinate(f"{part}{cell}", *at) for cell in self.cells(schema) for part, at in parts.items()
        )
        bound = Fraction(3, 2) if moves and norm == "l1" else 1 + rounding
        return Sensitivity(norm, coordinates, bound)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        cells = (strata(self.by, schema) if self.by else {}) | {every_arm(schema): len(schema.treatment.arms)}
        numbers = {"total": OUTCOME, "deficit": deficit(OUTCOME), "size": ONE}
        return (Sums(cells, numbers, everyone=True, labels=self.cells(schema)),)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        strata = Cells(self.by).reads(schema) if self.by else ()
        return schema.treatment.every_arm, schema.outcome, *strata

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return (cls(), *(cls(by) for by in single_cut(schema)))
