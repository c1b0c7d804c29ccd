"""The number of outcomes below a threshold, or at or above it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.coerced import OUTCOME, every_arm
from dpcausal.queries.profiles import ticks_of
from dpcausal.queries.query import Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, Bin, Where, indicator
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class OutcomesBelow(SummingQuery):
    """How many units have an outcome below a public threshold. One unit moves it by one.

    A unit without an outcome is on neither side, unless the outcome declares `missing`.

    Attributes:
        threshold: The threshold, within the outcome's bounds.
        at_least: Whether to count the outcomes at or above it instead.
    """

    name: ClassVar[str] = "outcomes_below"

    threshold: float
    at_least: bool = False

    def __post_init__(self) -> None:
        if not is_number(self.threshold) or not isinstance(self.at_least, bool):
            raise QueryError(
                expected="a number as threshold, and at_least true or false",
                got=f"{self.threshold!r} and {self.at_least!r}",
                hint="choose one within the outcome's bounds.",
            )

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        low, high = schema.outcome_bounds
        if not (isinstance(schema.outcome, Real) and low <= self.threshold <= high):
            raise QueryError(
                expected=f"an outcome that is a number, and a threshold from {low:g} to {high:g}",
                got=f"outcome {schema.outcome.name!r} and threshold {self.threshold!r}",
                hint="a yes-or-no outcome has its bounds already.",
            )
        ticks, arms = ticks_of(schema.outcome, self.threshold), len(schema.treatment.arms)
        side = indicator(Between(Bin(OUTCOME, (ticks,)), int(self.at_least), int(self.at_least)))
        units = Where(Between(every_arm(schema), 0, arms - 1), side)
        return (Sums({}, {"units": units}, weights={"units": Fraction(1)}, everyone=True),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        low, high = schema.outcome_bounds
        middle = (low + high) / 2
        return (cls(middle), cls(middle, at_least=True)) if isinstance(schema.outcome, Real) else ()
