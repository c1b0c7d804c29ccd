"""Sums of the outcome and of its squares in each arm, and the arms' sizes."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.coerced import OUTCOME, TREATMENT, arm_sizes
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, compared, outcome_tick
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Number, deficit
from dpcausal.treatment import TableColumn


@dataclass(frozen=True)
class _ArmSums(Query):
    """The base of both queries."""

    adds_up: ClassVar[bool] = True

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment, schema.outcome

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:  # noqa: ARG003
        """Return queries of this kind that the schema allows."""
        return (cls(),)


@dataclass(frozen=True)
class ArmTotals(_ArmSums):
    """Sum of the outcome in each arm, and where arms are private the size of the treated one and of both together.

    Outcomes are measured from the middle of their range. Proof: docs/proofs/arm_moments.md.
    """

    name: ClassVar[str] = "arm_totals"

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        coordinates = (*_totals(outcome_tick(schema)), *_arm_size(schema, protects, norm))
        return Sensitivity(norm, coordinates, _arm_bound(protects, norm))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        return (Sums({TREATMENT: 2}, {"total": OUTCOME}, arm_sizes(schema, protects)),)


@dataclass(frozen=True)
class ArmMoments(_ArmSums):
    """Sums of the outcome and of its squares in each arm, and sizes as in `ArmTotals`.

    Outcomes z are measured from the middle of their range, and h is half the range. In place of the sum of z² the
    answer holds the deficit, the sum of h² - z². One unit cannot move the total and the deficit fully at once, which is
    why the deficits cost next to nothing beyond what `ArmTotals` costs. Proof: docs/proofs/arm_moments.md.
    """

    name: ClassVar[str] = "arm_moments"

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        return moment_sensitivity(outcome_tick(schema), schema, protects, norm)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        return (moment_sums(OUTCOME, schema, protects),)


def moment_sensitivity(tick: float, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
    """Return the sensitivity of totals, deficits and sizes of a number on the grid, whose tick has this size."""
    weight, rounding = {"l1": (4 * GRID, Fraction(1, 4 * GRID)), "l2": (2 * GRID, Fraction(1, 2 * GRID))}[norm]
    deficits = tuple(Coordinate(f"deficit_{arm}", tick**2 * GRID, Fraction(weight)) for arm in (0, 1))
    coordinates = (*_totals(tick), *deficits, *_arm_size(schema, protects, norm))
    return Sensitivity(norm, coordinates, max(_arm_bound(protects, norm), 1 + rounding))


def moment_sums(line: Number, schema: Schema, protects: Protects) -> Sums:
    """Return totals, deficits and sizes of a number on the grid."""
    return Sums({TREATMENT: 2}, {"total": line, "deficit": deficit(line)}, arm_sizes(schema, protects))


def _totals(tick: float) -> tuple[Coordinate, ...]:
    return tuple(Coordinate(f"total_{arm}", tick, Fraction(2 * GRID)) for arm in (0, 1))


def _arm_size(schema: Schema, protects: Protects, norm: Norm) -> tuple[Coordinate, ...]:
    """Return the size of the treated arm, and of both where units may leave the comparison, at no extra cost."""
    if protects != "record":
        return ()
    treated = Coordinate("size_1", 1.0, {"l1": Fraction(2), "l2": Fraction(3, 2)}[norm])
    return treated, *compared(schema, Fraction(2))


def _arm_bound(protects: Protects, norm: Norm) -> Fraction:
    return Fraction(3, 2) if protects == "record" and norm == "l1" else Fraction(1)
