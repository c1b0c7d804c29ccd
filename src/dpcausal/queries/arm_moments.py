"""Sums of the outcome and of its squares in each arm, and the arms' sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.queries.coerced import OUTCOME, TREATMENT, arm_sizes
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.summing import SummingQuery, by_norm
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Number, deficit


@dataclass(frozen=True)
class ArmTotals(SummingQuery):
    """Sum of the outcome in each arm, and where arms are private the size of the treated one and of both together.

    Outcomes are measured from the middle of their range.
    """

    name: ClassVar[str] = "arm_totals"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        return (_in_arms({"total": OUTCOME}, {"total": Fraction(2 * GRID)}, schema, protects, norm),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return {"total": outcome_tick(schema)}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return (cls(),)


@dataclass(frozen=True)
class ArmMoments(SummingQuery):
    """Sums of the outcome and of its squares in each arm, and sizes as in `ArmTotals`.

    Outcomes z are measured from the middle of their range, and h is half the range. In place of the sum of z² the
    answer holds the deficit, the sum of h² - z². One unit cannot move the total and the deficit fully at once, which is
    why the deficits cost next to nothing beyond what `ArmTotals` costs.
    """

    name: ClassVar[str] = "arm_moments"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        return (moment_sums(OUTCOME, schema, protects, norm),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return moment_ticks(outcome_tick(schema))

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return (cls(),)


def moment_sums(line: Number, schema: Schema, protects: Protects, norm: Norm) -> Sums:
    """Return totals, deficits and sizes of a number on the grid."""
    weights = {"total": Fraction(2 * GRID), "deficit": by_norm(norm, 4 * GRID, 2 * GRID)}
    return _in_arms({"total": line, "deficit": deficit(line)}, weights, schema, protects, norm)


def moment_ticks(tick: float) -> dict[str, float]:
    """Return the size of one tick of totals and deficits of a number whose tick has this size."""
    return {"total": tick, "deficit": tick**2 * GRID}


def _in_arms(
    numbers: Mapping[str, Number], weights: Mapping[str, Fraction], schema: Schema, protects: Protects, norm: Norm
) -> Sums:
    """Return sums in each arm, beside which sizes cost nothing."""
    sizes = arm_sizes(schema, protects)
    of_sizes = {"size_1": by_norm(norm, 2, 1.5), "compared": Fraction(2)}
    return Sums({TREATMENT: 2}, numbers, sizes, {**weights, **{name: of_sizes[name] for name in sizes}})
