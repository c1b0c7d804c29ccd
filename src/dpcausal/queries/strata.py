"""Questions about strata: groups of units that are alike in public ways."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from dpcausal.columns import Binary, Category, Real
from dpcausal.errors import QueryError
from dpcausal.queries.query import (
    GRID,
    Coordinate,
    NoiseKind,
    Norm,
    Query,
    Sensitivity,
    check_all_compared,
    compared,
    outcome_tick,
    shared,
    value_names,
)
from dpcausal.schema import Protects, Schema
from dpcausal.treatment import TableColumn
from dpcausal.validation import is_number


@dataclass(frozen=True)
class Cut:
    """A covariate that tells strata apart: a listed one by its values, a real one by public edges.

    Attributes:
        name: The covariate.
        edges: For a real covariate, where one bin ends and the next begins, in rising order. An edge belongs to the bin
            above it. Values are compared on the grid that divides the covariate's range into 2^21 ticks.
    """

    name: str
    edges: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.edges, Sequence) or not all(map(is_number, self.edges)):
            raise QueryError(
                expected=f"a list of numbers as edges of {self.name!r}",
                got=repr(self.edges),
                hint='write for instance Cut("age", [25, 35, 45]).',
            )
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

    def __str__(self) -> str:
        """The covariate and where it is cut: the edges, or where there are many the first and the last."""
        if not self.edges:
            return self.name
        shown = self.edges if len(self.edges) <= 6 else (self.edges[0], "…", self.edges[-1])
        text = ", ".join(each if isinstance(each, str) else f"{each:g}" for each in shown)
        return f"{self.name} cut at {text}" + (f" ({len(self.edges)} edges)" if len(self.edges) > 6 else "")

    def bins(self, schema: Schema) -> int:
        """How many strata this covariate alone tells apart."""
        column = next((column for column in schema.covariates if column.name == self.name), None)
        rising = all(low < high for low, high in itertools.pairwise(self.edges))
        if (
            isinstance(column, Real)
            and self.edges
            and rising
            and column.low < self.edges[0] <= self.edges[-1] < column.high
        ):
            return len(self.edges) + 1
        if isinstance(column, Binary | Category) and not self.edges:
            return len(column.values)
        raise QueryError(
            expected=f"{self.name!r} to be a listed covariate, or a real one with rising edges within its bounds",
            got=f"{column or 'no such covariate'} with edges {list(self.edges)}",
            hint='write for instance by=["race", Cut("age", [25, 35, 45])].',
        )

    def bin_names(self, schema: Schema) -> tuple[str, ...]:
        """What to call each of the strata that this covariate alone tells apart."""
        self.bins(schema)
        column = next(column for column in schema.covariates if column.name == self.name)
        if not isinstance(column, Real):
            return value_names(column)
        edges = [f"{edge:.12g}" for edge in self.edges]
        inner = (f"{low} ≤ {self.name} < {high}" for low, high in itertools.pairwise(edges))
        return f"{self.name} < {edges[0]}", *inner, f"{self.name} ≥ {edges[-1]}"


MOST_STRATA = 100_000


def cuts_of(by: Sequence[str | Cut | Mapping[str, Any]]) -> tuple[Cut, ...]:
    """A list of cuts, each from itself, from a name, or from the plain values that it was written as."""
    if isinstance(by, str | Cut):
        raise QueryError(expected="a list of covariates", got=repr(by), hint="put it into a list: by=[...].")
    made = tuple(cut if isinstance(cut, Cut) else Cut(cut) if isinstance(cut, str) else Cut(**cut) for cut in by)
    if len({cut.name for cut in made}) != len(made) or not made:
        raise QueryError(
            expected="one or more different covariates",
            got=f"{[cut.name for cut in made]}",
            hint='write for instance by=["race", Cut("age", [25, 35, 45])].',
        )
    return made


def bins(by: Sequence[Cut], schema: Schema) -> tuple[int, ...]:
    """How many bins each covariate has; their product is the number of strata."""
    each = tuple(cut.bins(schema) for cut in by)
    if math.prod(each) > MOST_STRATA:
        raise QueryError(
            expected=f"at most {MOST_STRATA:,} strata",
            got=f"{math.prod(each):,}",
            hint="use fewer covariates or wider bins; strata without both arms tell nothing.",
        )
    return each


def _strata_columns(by: Sequence[Cut], schema: Schema) -> tuple[TableColumn, ...]:
    names = {cut.name for cut in by}
    return schema.treatment, schema.outcome, *(column for column in schema.covariates if column.name in names)


@dataclass(frozen=True)
class StratumContrasts(Query):
    """The sum over strata of the difference in mean outcome, each stratum counted as far as its arms are balanced.

    A stratum with t treated and c control units counts as m = min(t, K c) + min(c, K t) units, K the cap; as 0 if an
    arm is empty. The answer holds the sum of m times the difference in means, the sum of m, and two sums from which the
    standard error is made; and the number of units where they may leave the comparison. Proof:
    docs/proofs/stratum_contrasts.md.

    Attributes:
        by: The covariates that tell strata apart.
        cap: By how much one arm may outnumber the other before a stratum counts for less; a whole number.
    """

    name: ClassVar[str] = "stratum_contrasts"
    adds_up: ClassVar[bool] = True
    weight_square_ticks: ClassVar[int] = 1024
    shares: ClassVar[dict[str, Fraction]] = {
        "effect": Fraction(7, 10),
        "size": Fraction(1, 10),
        "squares": Fraction(1, 10),
        "weight_square_sum": Fraction(1, 10),
    }
    """How the guarantee is divided among the four numbers."""
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
                hint="a cap of 3 is a usual choice.",
            )

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        bins(self.by, schema)
        tick, reach = outcome_tick(schema), 1 + self.cap
        # An outcome that alone may change touches one arm of one stratum; a record leaves one and joins another.
        touched = 1 if protects == "outcome" else 2
        parts = {
            "effect": (tick, touched * 2 * GRID * reach + 2),
            "size": (1.0, reach),
            "squares": (tick**2 * GRID, 4 * GRID + 2),
            "weight_square_sum": (1 / self.weight_square_ticks, 5 * reach**2 * self.weight_square_ticks + 2),
        }
        four = shared(parts, self.shares, norm)
        share = self.compared_share if norm == "l1" else Fraction(math.sqrt(self.compared_share))
        return replace(four, coordinates=(*four.coordinates, *compared(schema, 1 / share)))

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return _strata_columns(self.by, schema)


@dataclass(frozen=True)
class StratumMatches(Query):
    """The sum over all units of the difference between the arms' mean outcomes in the unit's stratum.

    This is what balanced exact matching gives on average over all ways to break its ties. No cap bounds what one unit
    can move, so noise is in proportion either to the largest move in any table (`global`), or to a smooth bound on the
    moves near this one (`smooth`), which is private itself. Proof: docs/proofs/stratum_matches.md.

    Attributes:
        by: The covariates that tell strata apart.
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
        """What kind of noise the proof is about."""
        return "smooth" if self.bound == "smooth" else "either"

    @property
    def shares(self) -> dict[str, Fraction]:
        """How the guarantee is divided among the numbers; delta goes to the effect."""
        tenth = Fraction(1, 10)
        if self.bound == "global":
            return {"effect": 8 * tenth, "squares": tenth, "weight_square_sum": tenth}
        return {"effect": 7 * tenth, "log_sensitivity": tenth, "squares": tenth, "weight_square_sum": tenth}

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
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
        """The columns that the answer depends on."""
        return _strata_columns(self.by, schema)
