"""Sums of the outcome, of the treatment received, and of their products in each arm."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.arm_moments import moment_ticks
from dpcausal.queries.coerced import OUTCOME, TREATMENT, arm_sizes
from dpcausal.queries.query import GRID, Norm, outcome_tick
from dpcausal.queries.summing import SummingQuery, by_norm
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Code, deficit, sign


@dataclass(frozen=True)
class ReceivedMoments(SummingQuery):
    """The sums of `ArmMoments`, and in each arm the number of units that received the treatment and their outcomes.

    The treatment received is counted from one half: a unit that received it adds 1/2, another one -1/2. So a unit that
    changes arms moves both arms' numbers by half as much as by counting. The product is the outcome from the middle of
    its range times that half.

    Attributes:
        received: The binary covariate that holds the treatment received.
    """

    name: ClassVar[str] = "received_moments"

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

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        received = sign(Code(f"covariate_{self.place(schema)}", 2))
        numbers = {
            "total": OUTCOME,
            "deficit": deficit(OUTCOME),
            "received": received,
            "product": OUTCOME * received,
        }
        weights = {
            "total": Fraction(2 * GRID),
            "deficit": by_norm(norm, 4 * GRID, 2 * GRID),
            "received": Fraction(8),
            "product": Fraction(8 * GRID),
        }
        sizes = arm_sizes(schema, protects)
        of_sizes = {"size_1": by_norm(norm, 2, 1.5), "compared": Fraction(4, 3) if norm == "l1" else Fraction(2)}
        return (Sums({TREATMENT: 2}, numbers, sizes, {**weights, **{name: of_sizes[name] for name in sizes}}),)

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        tick = outcome_tick(schema)
        return {**moment_ticks(tick), "received": 0.5, "product": tick / 2}

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(column.name) for column in schema.covariates if isinstance(column, Binary))[:1]
