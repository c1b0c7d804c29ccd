"""The closed list of questions that may be asked of a table.

A query is public: a frozen dataclass of public parameters. It knows from the schema what it would answer and how much
one unit can move that answer; nobody passes a sensitivity in. The proof of each is in docs/proofs, page by page.
"""

from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from dpcausal.columns import Column, declared_dict
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


@runtime_checkable
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


QUERIES: dict[str, type[Query]] = {query.name: query for query in (ArmTotals, ArmMoments)}
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
