"""Differences in means within strata, weighted by size, as exact matching gives them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.cuts import Cut, bins, cuts_of, single_cut, strata_columns
from dpcausal.queries.expected_strata import expected_in_strata
from dpcausal.queries.query import (
    GRID,
    Coordinate,
    NoiseKind,
    Norm,
    Query,
    Sensitivity,
    check_all_compared,
    outcome_tick,
    shared,
)
from dpcausal.queries.stratum_contrasts import StratumContrasts
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn


@dataclass(frozen=True)
class StratumMatches(Query):
    """The sum over all units of the difference between the arms' mean outcomes in the unit's stratum.

    This is what balanced exact matching gives on average over all ways to break its ties. No cap bounds what one unit
    can move, so noise is in proportion either to the largest move in any table (`global`), or to a smooth bound on the
    moves near this one (`smooth`), which is private itself. Proof: docs/proofs/stratum_matches.md.

    Attributes:
        bound: What the noise in the effect is in proportion to.
    """

    name: ClassVar[str] = "stratum_matches"
    weight_cap: ClassVar[int] = 4
    effect_ticks: ClassVar[int] = 2**16
    log_ticks: ClassVar[int] = 2**10

    by: Sequence[Cut]
    bound: Literal["smooth", "global"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", cuts_of(self.by))
        if self.bound not in ("smooth", "global"):
            raise QueryError(
                expected="the bound smooth or global", got=repr(self.bound), hint="smooth needs a positive delta."
            )

    @property
    def noise(self) -> NoiseKind:
        return "smooth" if self.bound == "smooth" else "either"

    @property
    def shares(self) -> dict[str, Fraction]:
        """How the guarantee is divided among the numbers; delta goes to the effect."""
        tenth = Fraction(1, 10)
        if self.bound == "global":
            return {"effect": 8 * tenth, "squares": tenth, "weight_square_sum": tenth}
        return {"effect": 7 * tenth, "log_sensitivity": tenth, "squares": tenth, "weight_square_sum": tenth}

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        check_all_compared(self, schema, protects)
        bins(self.by, schema)
        tick = outcome_tick(schema)
        parts = {
            "effect": (tick / self.effect_ticks, 2 * (GRID + 1) * self.effect_ticks + 1),
            "log_sensitivity": (1 / self.log_ticks, self.log_ticks + 2),
            "squares": (tick**2 * GRID, 4 * GRID + 2),
            "weight_square_sum": (
                1 / StratumContrasts.weight_square_ticks,
                5 * (1 + self.weight_cap) ** 2 * StratumContrasts.weight_square_ticks + 2,
            ),
        }
        most = shared({name: parts[name] for name in self.shares}, self.shares, norm)
        if self.bound == "global":
            return most
        return replace(most, coordinates=(Coordinate("effect", tick, None), *most.coordinates[1:]))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return strata_columns(self.by, schema)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise and without an effect.

        One stratum, which decides on smooth noise, has twice the average number of units in one arm and a third of it
        in the other; otherwise all strata have the same share of treated units.
        """
        values = expected_in_strata(self.by, self.weight_cap, expectations)
        if self.bound == "smooth":
            beta = smoothness(guarantee.epsilon * float(self.shares["effect"]), guarantee.delta)
            strata = math.prod(bins(self.by, expectations.schema))
            few, many = min(expectations.expected_sizes) / strata / 3, 2 * max(expectations.expected_sizes) / strata
            moves = (
                2 + 2 * (many + k) / max(few - k, 1.0)
                for k in range(min(expectations.compared, math.ceil(10 / beta), 100_000))
            )
            bound = max(math.exp(-beta * k) * min(move, expectations.compared + 1) for k, move in enumerate(moves))
            values["log_sensitivity"] = math.log(2 * GRID * bound) / beta
        return values

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        bounds: tuple[Literal["smooth", "global"], ...] = ("smooth", "global")
        return tuple(cls(by, bound) for by in single_cut(schema) for bound in bounds)


def smoothness(epsilon: float, delta: float) -> float:
    """Return beta: how much the logarithm of a smooth sensitivity may differ between neighbours.

    Laplace noise of scale 2 S / epsilon, S smooth to this degree, is (epsilon, delta)-differentially private.
    Proof: docs/proofs/stratum_matches.md.
    """
    return math.log1p(epsilon / 2 / max(math.log(1 / delta) + 1e-4, 1.0))
