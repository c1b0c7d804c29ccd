"""Expected properties of a table that nobody has read."""

import math
from dataclasses import dataclass

from dpcausal.columns import Column
from dpcausal.errors import SchemaError
from dpcausal.real import Real
from dpcausal.scale import REACH
from dpcausal.schema import Schema


@dataclass(frozen=True)
class Expectations:
    """Expected properties of a table, from the literature or a pilot. `Rehearsal` explains each of them."""

    schema: Schema
    n: int
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    confounding: float = 0.3
    covariate_sd: float = 1 / 3
    compared_share: float = 1.0

    def __post_init__(self) -> None:
        low, high = self.schema.outcome_bounds
        mean, sd = self.mean, self.sd
        holds = (
            self.n >= 2
            and 0 < self.treated_share < 1
            and low <= mean <= high
            and 0 <= sd <= (high - low) / 2
            and 0 <= self.confounding <= 1
            and 0 < self.covariate_sd <= 1
            and 0 < self.compared_share <= 1
        )
        if not holds:
            raise SchemaError(
                expected=f"n of at least 2, a treated share between 0 and 1, an outcome mean from {low:g} to {high:g}, "
                f"an outcome sd of at most {(high - low) / 2:g}, confounding from 0 to 1, a covariate sd up to 1 and a "
                "compared share up to 1",
                got=f"n={self.n!r}, treated_share={self.treated_share!r}, outcome_mean={mean!r}, outcome_sd={sd!r}, "
                f"confounding={self.confounding!r}, covariate_sd={self.covariate_sd!r}, "
                f"compared_share={self.compared_share!r}",
                hint="these are your expectations, from the literature or a pilot; none may come from the table.",
            )

    @property
    def mean(self) -> float:
        """The outcome's expected mean."""
        low, high = self.schema.outcome_bounds
        return (low + high) / 2 if self.outcome_mean is None else self.outcome_mean

    @property
    def sd(self) -> float:
        """The outcome's expected standard deviation within an arm."""
        low, high = self.schema.outcome_bounds
        if self.outcome_sd is not None:
            return self.outcome_sd
        if isinstance(self.schema.outcome, Real):
            return (high - low) / math.sqrt(12)
        return math.sqrt(max(self.mean * (1 - self.mean), 0.0))

    def covariate_spread(self, column: Column) -> float:
        """Return the expected standard deviation of a covariate between -1 and 1, where one of two values is an end."""
        if not isinstance(column, Real):
            return 1.0
        return self.covariate_sd if column.scale is None else 1 / REACH

    def standardised(self, column: Real, value: float) -> float:
        """Return how many expected standard deviations a value of a number is above the expected median."""
        if column.scale is not None:
            return column.scale.score_at(value) * REACH
        return (value - (column.low + column.high) / 2) / ((column.high - column.low) / 2 * self.covariate_sd)

    @property
    def compared(self) -> int:
        """The expected number of units in the comparison, at least two."""
        return max(round(self.n * self.compared_share), 2)

    @property
    def expected_sizes(self) -> tuple[int, int]:
        """The expected number of units in each arm, at least one."""
        treated = min(max(round(self.compared * self.treated_share), 1), self.compared - 1)
        return self.compared - treated, treated
