"""Sums of the outcome, of the treatment received, and of their products in each arm."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.columns import Binary
from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, TREATMENT, arm_sizes
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, compared, outcome_tick, root_above
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Code, deficit, sign
from dpcausal.treatment import TableColumn


@dataclass(frozen=True)
class ReceivedMoments(Query):
    """The sums of `ArmMoments`, and in each arm the number of units that received the treatment and their outcomes.

    The treatment received is counted from one half: a unit that received it adds 1/2, another one -1/2. So a unit that
    changes arms moves both arms' numbers by half as much as by counting. The product is the outcome from the middle of
    its range times that half. Proof: docs/proofs/received_moments.md.

    Attributes:
        received: The binary covariate that holds the treatment received.
    """

    name: ClassVar[str] = "received_moments"
    adds_up: ClassVar[bool] = True

    received: str

    def __post_init__(self) -> None:
        if not isinstance(self.received, str):
            raise QueryError(
                expected="the name of a binary covariate as received",
                got=type(self.received).__name__,
                hint='write received="took_drug".',
            )

    def column(self, schema: Schema) -> Binary:
        """Return the column of the treatment received."""
        return schema.covariates[self.place(schema)]  # type: ignore[return-value]

    def place(self, schema: Schema) -> int:
        """Return its place among the covariates."""
        binary = [at for at, each in enumerate(schema.covariates) if isinstance(each, Binary)]
        found = [at for at in binary if schema.covariates[at].name == self.received]
        if not found:
            known = ", ".join(schema.covariates[at].name for at in binary) or "none"
            raise QueryError(
                expected=f"a Binary covariate that holds the treatment received, out of: {known}",
                got=repr(self.received),
                hint='declare it among the covariates: Binary("took_drug", values=("no", "yes")).',
            )
        return found[0]

    @property
    def required(self) -> tuple[str, ...]:
        """The covariates that are outcomes too: the treatment received."""
        return (self.received,)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        self.place(schema)
        tick = outcome_tick(schema)
        deficit, size, units = {
            "l1": (4 * GRID, Fraction(2), Fraction(4, 3)),
            "l2": (2 * GRID, Fraction(3, 2), Fraction(2)),
        }[norm]
        parts = {
            "total": (tick, Fraction(2 * GRID)),
            "deficit": (tick**2 * GRID, Fraction(deficit)),
            "received": (0.5, Fraction(8)),
            "product": (tick / 2, Fraction(8 * GRID)),
        }
        sums = tuple(
            Coordinate(f"{name}_{arm}", unit, weight) for name, (unit, weight) in parts.items() for arm in (0, 1)
        )
        sizes = (Coordinate("size_1", 1.0, size), *compared(schema, units)) if protects == "record" else ()
        return Sensitivity(norm, (*sums, *sizes), _bound(protects, norm))

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        received = sign(Code(f"covariate_{self.place(schema)}", 2))
        numbers = {
            "total": OUTCOME,
            "deficit": deficit(OUTCOME),
            "received": received,
            "product": OUTCOME * received,
        }
        return (Sums({TREATMENT: 2}, numbers, arm_sizes(schema, protects)),)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on."""
        return schema.treatment, schema.outcome, self.column(schema)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(column.name) for column in schema.covariates if isinstance(column, Binary))[:1]


def _bound(protects: Protects, norm: Norm) -> Fraction:
    if norm == "l2":
        return root_above(Fraction(17, 16)) + Fraction(1, 2 * GRID)
    if protects == "record":
        return Fraction(2)
    return (Fraction(5, 4) if protects == "outcome" else Fraction(81, 64)) + Fraction(1, 4 * GRID)
