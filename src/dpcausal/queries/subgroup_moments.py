"""Questions about the groups of a public partition."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpcausal.errors import QueryError
from dpcausal.queries.basis import Cells, basis_of
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, outcome_tick
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn


@dataclass(frozen=True)
class SubgroupMoments(Query):
    """In each arm of each group: the number of units, the sum of their outcomes, and what their squares lack.

    Outcomes z are measured from the middle of their range, and h is half the range; the deficit is the sum of h² - z².
    One unit is in one arm of one group, so noise does not grow with the number of groups. Proof:
    docs/proofs/subgroup_moments.md.

    Attributes:
        cells: The groups.
    """

    name: ClassVar[str] = "subgroup_moments"

    cells: Cells

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", basis_of(self.cells))
        if not isinstance(self.cells, Cells):
            raise QueryError(expected="Cells", got=type(self.cells).__name__, hint='write Cells([Cut("ward")]).')

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        tick = outcome_tick(schema)
        # The deficit moves fully only where the total does not move at all: with these weights it never adds to it.
        weights = {
            "l1": {"size": 2, "total": GRID, "deficit": 2 * GRID},
            "l2": {"size": 1, "total": GRID, "deficit": GRID},
        }[norm]
        ticks = {"size": 1.0, "total": tick, "deficit": tick**2 * GRID}
        coordinates = tuple(
            Coordinate(f"{part}_{arm} of {group}", ticks[part], Fraction(weights[part]))
            for group in self.cells.names(schema)
            for arm in (0, 1)
            for part in ticks
        )
        # To another group a unit takes its number along; within one it does not, but may take its outcome twice as far.
        most = 3 if norm == "l1" and protects != "outcome" else 2
        return Sensitivity(norm, coordinates, most + Fraction(2, GRID))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return schema.treatment, *self.cells.reads(schema), schema.outcome
