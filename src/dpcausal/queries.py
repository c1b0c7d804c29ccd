"""The closed list of questions that may be asked of a table.

A query is public: a frozen dataclass of public parameters. It knows from the schema what it would answer and how much
one unit can move that answer; nobody passes a sensitivity in. The proof of each is in docs/proofs, page by page.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

from dpcausal.columns import Binary, Category, Column, Real, declared_dict
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.schema import Protects, Schema

GRID = 2**20
"""Steps from the middle of a column's range to its bounds. Values are rounded to these steps before anything else."""

Norm = Literal["l1", "l2"]


@dataclass(frozen=True)
class Coordinate:
    """One number of an answer.

    The answer is an integer count of steps. Its size in the schema's own terms is steps times `step`.

    Attributes:
        name: What the number is.
        step: The size of one step, for instance in dollars.
        weight: The coordinate's share of the sensitivity, in steps; its noise is in proportion to it.
    """

    name: str
    step: float
    weight: Fraction


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move an answer.

    For neighbouring tables the vector of (change / weight) has a norm of at most `bound`.
    """

    norm: Norm
    coordinates: tuple[Coordinate, ...]
    bound: Fraction


class Query(Protocol):
    """One question that may be asked of a table."""

    name: ClassVar[str]

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        ...

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """The columns that the answer depends on."""
        ...


@dataclass(frozen=True)
class ArmTotals:
    """Sum of the outcome in each arm, and the size of the treated arm where arms are private.

    Outcomes are measured from the middle of their range. Proof: docs/proofs/arm_moments.md.
    """

    name: ClassVar[str] = "arm_totals"

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        coordinates = (*_totals(schema), *_arm_size(protects, norm))
        return Sensitivity(norm, coordinates, _arm_bound(protects, norm))

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """The columns that the answer depends on."""
        return schema.treatment, schema.outcome


@dataclass(frozen=True)
class ArmMoments:
    """Sums of the outcome and of its squares in each arm, and the size of the treated arm where arms are private.

    Outcomes z are measured from the middle of their range, and h is half the range. In place of the sum of z² the
    answer holds the deficit, the sum of h² - z². One unit cannot move the total and the deficit fully at once, which is
    why the deficits cost next to nothing beyond what `ArmTotals` costs. Proof: docs/proofs/arm_moments.md.
    """

    name: ClassVar[str] = "arm_moments"

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        step = _outcome_step(schema) ** 2 * GRID
        weight, rounding = {"l1": (4 * GRID, Fraction(1, 4 * GRID)), "l2": (2 * GRID, Fraction(1, 2 * GRID))}[norm]
        deficits = tuple(Coordinate(f"deficit_{arm}", step, Fraction(weight)) for arm in (0, 1))
        coordinates = (*_totals(schema), *deficits, *_arm_size(protects, norm))
        return Sensitivity(norm, coordinates, max(_arm_bound(protects, norm), 1 + rounding))

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """The columns that the answer depends on."""
        return schema.treatment, schema.outcome


def _outcome_step(schema: Schema) -> float:
    low, high = schema.outcome_bounds
    return (high - low) / 2 / GRID


def _totals(schema: Schema) -> tuple[Coordinate, ...]:
    return tuple(Coordinate(f"total_{arm}", _outcome_step(schema), Fraction(2 * GRID)) for arm in (0, 1))


def _arm_size(protects: Protects, norm: Norm) -> tuple[Coordinate, ...]:
    if protects != "record":
        return ()
    return (Coordinate("size_1", 1.0, {"l1": Fraction(2), "l2": Fraction(3, 2)}[norm]),)


def _arm_bound(protects: Protects, norm: Norm) -> Fraction:
    return Fraction(3, 2) if protects == "record" and norm == "l1" else Fraction(1)


@dataclass(frozen=True)
class Cut:
    """A covariate that tells strata apart: a listed one by its values, a real one by public edges.

    Attributes:
        name: The covariate.
        edges: For a real covariate, where one bin ends and the next begins, in rising order. An edge belongs to the bin
            above it. Values are compared on the grid that divides the covariate's range into 2^21 steps.
    """

    name: str
    edges: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

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


@dataclass(frozen=True)
class StratumContrasts:
    """The sum over strata of the difference in mean outcome, each stratum counted as far as its arms are balanced.

    A stratum with t treated and c control units counts as m = min(t, K c) + min(c, K t) units, K the cap; as 0 if an
    arm is empty. The answer holds the sum of m times the difference in means, the sum of m, and two sums from which the
    standard error is made. Proof: docs/proofs/stratum_contrasts.md.

    Attributes:
        by: The covariates that tell strata apart.
        cap: By how much one arm may outnumber the other before a stratum counts for less; a whole number.
    """

    name: ClassVar[str] = "stratum_contrasts"
    most_strata: ClassVar[int] = 100_000
    design_steps: ClassVar[int] = 1024
    shares: ClassVar[dict[str, Fraction]] = {
        "effect": Fraction(7, 10),
        "size": Fraction(1, 10),
        "squares": Fraction(1, 10),
        "design": Fraction(1, 10),
    }
    """How the guarantee is divided among the four numbers."""

    by: Sequence[Cut]
    cap: int

    def __post_init__(self) -> None:
        cuts = tuple(cut if isinstance(cut, Cut) else Cut(**cut) for cut in self.by)
        object.__setattr__(self, "by", cuts)
        different = len({cut.name for cut in cuts}) == len(cuts) > 0
        if not isinstance(self.cap, int) or not 1 <= self.cap <= 1000 or not different:
            raise QueryError(
                expected="one or more different covariates, and a whole number from 1 to 1000 as cap",
                got=f"{[cut.name for cut in cuts]} and cap={self.cap!r}",
                hint="a cap of 3 is a usual choice.",
            )

    def bins(self, schema: Schema) -> tuple[int, ...]:
        """How many bins each covariate has; their product is the number of strata."""
        bins = tuple(cut.bins(schema) for cut in self.by)
        if math.prod(bins) > self.most_strata:
            raise QueryError(
                expected=f"at most {self.most_strata:,} strata",
                got=f"{math.prod(bins):,}",
                hint="use fewer covariates or wider bins; strata without both arms tell nothing.",
            )
        return bins

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """The answer's coordinates and how far one unit can move them."""
        self.bins(schema)
        step, reach = _outcome_step(schema), 1 + self.cap
        # An outcome that alone may change touches one arm of one stratum; a record leaves one and joins another.
        touched = 1 if protects == "outcome" else 2
        parts = {
            "effect": (step, touched * 2 * GRID * reach + 2),
            "size": (1.0, reach),
            "squares": (step**2 * GRID, 4 * GRID + 2),
            "design": (1 / self.design_steps, 5 * reach**2 * self.design_steps + 2),
        }
        coordinates = []
        for part, (unit, moves) in parts.items():
            share = self.shares[part]
            divided = Fraction(moves) / (share if norm == "l1" else Fraction(math.sqrt(share)))
            coordinates.append(Coordinate(part, unit, divided))
        return Sensitivity(norm, tuple(coordinates), Fraction(1) if norm == "l1" else 1 + Fraction(1, 10**12))

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """The columns that the answer depends on."""
        names = {cut.name for cut in self.by}
        return schema.treatment, schema.outcome, *(column for column in schema.covariates if column.name in names)


QUERIES: dict[str, type[Query]] = {query.name: query for query in (ArmTotals, ArmMoments, StratumContrasts)}
"""Every query there is, by name."""


def question(query: Query, guarantee: Guarantee, schema: Schema) -> dict[str, Any]:
    """What makes two requests the same: all that the answer depends on, and nothing that is only for show.

    Which of a unit's records is used may turn on any declared column, so with a unit all of them count.
    """
    return {
        "query": to_dict(query),
        "guarantee": guarantee.to_dict(),
        "columns": [column.meaning for column in (schema.columns if schema.unit else query.reads(schema))],
        "unit": declared_dict(schema.unit) if schema.unit else None,
    }


def to_dict(query: Query) -> dict[str, Any]:
    """A query as plain values: its name and its parameters."""
    return {"query": query.name, **asdict(query)}  # type: ignore[call-overload]


def from_dict(document: dict[str, Any]) -> Query:
    """The query that `to_dict` wrote."""
    name = document.get("query")
    parameters = {key: value for key, value in document.items() if key != "query"}
    known = [part.name for part in fields(QUERIES[name])] if name in QUERIES else []  # type: ignore[arg-type]
    if name not in QUERIES or sorted(parameters) != sorted(known):
        raise QueryError(
            expected=f"a query out of {', '.join(QUERIES)} with exactly its parameters",
            got=f"{name!r} with {', '.join(sorted(parameters)) or 'none'}",
            hint="only these questions may be asked of a table.",
        )
    return QUERIES[name](**parameters)
