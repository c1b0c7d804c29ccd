"""Sums of the outcome and of its squares in each arm of each group of a public partition."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.queries.arm_moments import ArmMoments
from dpcausal.queries.basis import Cells, basis_of
from dpcausal.queries.cuts import double_cut, single_cut
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
        """Return the answer's coordinates and how far one unit can move them."""
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
        """Return the columns that the answer depends on."""
        return schema.treatment, *self.cells.reads(schema), schema.outcome

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise and without an effect: all groups have the same size."""
        whole = ArmMoments().expected(expectations, guarantee)
        groups = self.cells.names(expectations.schema)
        return {f"{name} of {group}": value / len(groups) for group in groups for name, value in whole.items()}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(Cells(by)) for by in (*single_cut(schema), *double_cut(schema)))
