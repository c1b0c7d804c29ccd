"""Expected properties of a table that nobody has read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from dpcausal.errors import SchemaError
from dpcausal.schema.columns import Binary, Column
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH, TYPICAL
from dpcausal.schema.schema import Schema
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import did_you_mean, is_number

_MOST_EXPLAINED = 0.9
"""How much of the outcome, in standard deviations for each one, what predicts treatment can explain."""

_NUMBERS = (
    *("n", "treated_share", "outcome_mean", "outcome_sd", "confounding", "covariate_sd", "compared_share"),
    *("overlap", "correlation"),
)
_HINT = "these are your expectations, from the literature or a pilot; none may come from the table."

MISSING = 0.05
"""The share of units whose number is missing, where an indicator says so."""


def _two_numbers(name: str, pair: Any) -> tuple[float, ...]:  # noqa: ANN401 (what a user wrote)
    """Return the two values that are typical of a column, or the share of one with two values, as numbers."""
    if is_number(pair):
        return (float(pair),)
    if isinstance(pair, str) or not isinstance(pair, Sequence) or not all(map(is_number, pair)):
        raise SchemaError(
            problem=f"typical of {name!r} must be two numbers, or one share, not {pair!r}"[:300],
            hint="about 90 % of units are between them; write typical={'age': (40, 80)}.",
        )
    return tuple(map(float, pair))


def _check_stated(name: str, stated: tuple[float, ...], known: Mapping[str, Real | Binary]) -> None:
    """Raise unless what is stated of a column is about one of these, and possible."""
    column = known.get(name)
    if column is None:
        raise SchemaError(
            problem=f"typical is about {name!r}, which is no number here, and has no two values; it can be about "
            f"{', '.join(known)}"[:300],
            hint=f"{did_you_mean(name, known)}Write the name of the column as the schema declares it.",
        )
    if isinstance(column, Binary):
        if len(stated) != 1 or not 0 < stated[0] < 1:
            raise SchemaError(
                problem=f"{name!r} has two values, so typical of it is the share of {column.values[1]!r}, between 0 "
                f"and 1, not {', '.join(format(each, 'g') for each in stated)}",
                hint=f"write typical={{{name!r}: 0.05}}, or --typical {name}:0.05, for 5 %.",
            )
    elif len(stated) != 2 or not column.low <= stated[0] < stated[1] <= column.high:
        raise SchemaError(
            problem=f"typical of {name!r} must be two rising values from {column.low:g} to {column.high:g}, its "
            f"bounds, not {', '.join(format(each, 'g') for each in stated)}",
            hint=f"about 90 % of units are between them: typical={{{name!r}: (2, 40)}}, or --typical {name}:2,40.",
        )


@dataclass(frozen=True)
class Expectations(metaclass=Constructor):
    """Expected properties of a table, from the literature or a pilot. `Rehearsal` explains each of them."""

    schema: Schema
    n: int
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    confounding: float = 0.3
    covariate_sd: float = 1 / 3
    compared_share: float | None = None
    overlap: float | None = None
    correlation: float = 0.7
    typical: Mapping[str, float | Sequence[float]] | Sequence[tuple[str, float | Sequence[float]]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            raise SchemaError(
                problem=f"A rehearsal reads no table and takes a Schema, not a {type(self.schema).__name__}",
                hint="write Rehearsal(schema, n=1_000).",
            )
        for name in _NUMBERS:
            value = getattr(self, name)
            if not (is_number(value) or (value is None and getattr(Expectations, name, 0) is None)):
                hint = "write it without quotation marks." if isinstance(value, str) else _HINT
                raise SchemaError(problem=f"{name} must be a number, not {value!r}", hint=hint)
        self._check_typical()
        low, high = self.schema.outcome_bounds
        mean, sd = self.mean, self.sd
        checks = (
            ("n", self.n, self.n >= 2, "at least 2"),
            ("treated_share", self.treated_share, 0 < self.treated_share < 1, "between 0 and 1"),
            ("outcome_mean", mean, low <= mean <= high, f"from {low:g} to {high:g}, the outcome's bounds"),
            (
                "outcome_sd",
                sd,
                0 <= sd <= (high - low) / 2,
                f"from 0 to {(high - low) / 2:g}, half its range",
            ),
            ("confounding", self.confounding, 0 <= self.confounding <= 1, "from 0 to 1"),
            ("covariate_sd", self.covariate_sd, 0 < self.covariate_sd <= 1, "above 0 and up to 1"),
            ("compared_share", self.compared_share, 0 < self.share_compared <= 1, "above 0 and up to 1"),
            ("overlap", self.overlap, self.overlap is None or 0 < self.overlap <= 1, "above 0 and up to 1"),
            ("correlation", self.correlation, 0 <= self.correlation < 1, "from 0 to below 1"),
        )
        for name, value, holds, wanted in checks:
            if not holds:
                in_percent = value or 0.0 if "1" in wanted.replace(",", "").split()[3:] else 0.0
                hint = f"write a share: {in_percent / 100:g} for {in_percent:g} %." if 1 < in_percent <= 100 else _HINT
                raise SchemaError(problem=f"{name} must be {wanted}, not {value!r}", hint=hint)
        if self.confounding > _MOST_EXPLAINED * self.apart:
            raise SchemaError(
                problem=f"With an overlap of {self.overlap!r} the confounding can be at most "
                f"{_MOST_EXPLAINED * self.apart:.3g}, not {self.confounding!r}",
                hint=_HINT,
            )

    @property
    def mean(self) -> float:
        """The outcome's expected mean."""
        low, high = self.schema.outcome_bounds
        if self.outcome_mean is not None:
            return self.outcome_mean
        share = self.expected_share(self.schema.outcome)
        if share is not None:
            return share
        typical = self._typical_of(self.schema.outcome)
        return sum(typical) / 2 if typical else (low + high) / 2

    @property
    def sd(self) -> float:
        """The outcome's expected standard deviation within an arm."""
        low, high = self.schema.outcome_bounds
        if self.outcome_sd is not None:
            return self.outcome_sd
        typical = self._typical_of(self.schema.outcome)
        if typical:
            return (typical[1] - typical[0]) / 2 / TYPICAL
        if isinstance(self.schema.outcome, Real):
            return (high - low) / math.sqrt(12)
        return math.sqrt(max(self.mean * (1 - self.mean), 0.0))

    def expected_share(self, column: Column) -> float | None:
        """Return the expected share of the second of a column's two values, where it was stated."""
        if not isinstance(column, Binary):
            return None
        stated = self._stated.get(column.name)
        return None if stated is None else stated[0]

    def covariate_middle(self, column: Column) -> float:
        """Return the expected median of a covariate between -1 and 1."""
        typical = self._typical_of(column)
        if typical is None or not isinstance(column, Real):
            return 0.0
        return (sum(typical) - column.low - column.high) / (column.high - column.low)

    def covariate_spread(self, column: Column) -> float:
        """Return the expected standard deviation of a covariate between -1 and 1, where one of two values is an end."""
        if not isinstance(column, Real):
            return 1.0
        if column.scale is not None:
            return 1 / REACH
        typical = self._typical_of(column)
        if typical is None:
            return self.covariate_sd
        return (typical[1] - typical[0]) / TYPICAL / (column.high - column.low)

    def standardised(self, column: Real, value: float) -> float:
        """Return how many expected standard deviations a value of a number is above the expected median."""
        scale = column.scale
        if scale is None and column.name not in self._stated:
            scale = column.typical_scale
        if scale is not None:
            return scale.score_at(value) * REACH
        place = (2 * value - column.low - column.high) / (column.high - column.low)
        return (place - self.covariate_middle(column)) / self.covariate_spread(column)

    def _typical_of(self, column: Column) -> Sequence[float] | None:
        """Return between which values about 90 % of a column's lie; None where that is not known, or it has scores."""
        if not isinstance(column, Real) or column.scale is not None:
            return None
        return self._stated.get(column.name, column.typical)

    @property
    def _stated(self) -> dict[str, tuple[float, ...]]:
        """What was stated of columns, by their names."""
        return {name: _two_numbers(name, each) for name, each in dict(self.typical).items()}

    def _check_typical(self) -> None:
        if isinstance(self.typical, str):
            raise SchemaError(
                problem=f"typical must be a dictionary, not {self.typical!r}",
                hint="write typical={'age': (40, 80)}.",
            )
        pairs = tuple((name, _two_numbers(name, each)) for name, each in dict(self.typical).items())
        object.__setattr__(self, "typical", pairs)
        known = {column.name: column for column in self.schema.columns if isinstance(column, Real | Binary)}
        for name, each in pairs:
            _check_stated(name, each, known)

    @property
    def apart(self) -> float:
        """How far apart the arms' means of what predicts treatment are, in standard deviations within an arm."""
        if self.overlap is None:
            return 2 * self.confounding
        return -2 * NormalDist().inv_cdf(self.overlap / 2)

    @property
    def expected_overlap(self) -> float:
        """The share that the arms' distributions of propensity scores have in common."""
        return 2 * NormalDist().cdf(-self.apart / 2) if self.overlap is None else self.overlap

    @property
    def share_compared(self) -> float:
        """The expected share of units in the comparison; that of two out of all arms where nothing else is expected."""
        return 2 / len(self.schema.treatment.arms) if self.compared_share is None else self.compared_share

    @property
    def arm_shares(self) -> tuple[float, ...]:
        """The expected share of units in every declared arm; the arms outside the comparison are of one size."""
        treatment, compared = self.schema.treatment, self.share_compared
        sides = (compared * (1 - self.treated_share), compared * self.treated_share)
        known = dict(zip(treatment.compared, sides, strict=True))
        return tuple(known[arm] if arm in known else (1 - compared) / len(treatment.outside) for arm in treatment.arms)

    @property
    def compared(self) -> int:
        """The expected number of units in the comparison, at least two."""
        return max(round(self.n * self.share_compared), 2)

    @property
    def expected_sizes(self) -> tuple[int, int]:
        """The expected number of units in each arm, at least one."""
        treated = min(max(round(self.compared * self.treated_share), 1), self.compared - 1)
        return self.compared - treated, treated
