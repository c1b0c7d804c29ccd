"""What ties an experiment's ledger to the population that its budget was allocated from."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Self

from dpcausal.errors import LedgerError
from dpcausal.schema import PROTECTS, Protects

Period = Literal["month", "quarter", "year"]
"""A calendar period, after which a population's budget is renewed."""

MONTHS: dict[Period, int] = {"month": 1, "quarter": 3, "year": 12}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")


def check_name(what: str, name: object) -> None:
    """Raise unless a text may name a population or an experiment."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LedgerError(
            expected=f"a name of the {what}: at most 48 letters, digits, dots, dashes and underscores",
            got=repr(name),
            hint='write for instance "checkout-button"; the name is public.',
        )


def today() -> date:
    """Return the day, in UTC, by the clock of this machine."""
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Days:
    """One calendar period.

    Attributes:
        label: Its name, for instance `2026-Q4`.
        first: Its first day.
        last: Its last day.

    Example:
        >>> print(Days.around(date(2026, 11, 17), "quarter"))
        2026-Q4, from 2026-10-01 to 2026-12-31
    """

    label: str
    first: str
    last: str

    @classmethod
    def around(cls, day: date, period: Period) -> Self:
        """Return the period that a day is in."""
        months = MONTHS[period]
        part = (day.month - 1) // months
        first, following = day.replace(month=part * months + 1, day=1), part * months + 1 + months
        last = date(day.year + following // 13, (following - 1) % 12 + 1, 1) - timedelta(days=1)
        labels = {"month": f"{day.year}-{day.month:02}", "quarter": f"{day.year}-Q{part + 1}", "year": f"{day.year}"}
        return cls(labels[period], first.isoformat(), last.isoformat())

    def __str__(self) -> str:
        return f"{self.label}, from {self.first} to {self.last}"


@dataclass(frozen=True)
class Allocation:
    """The part of a population's budget that one experiment has.

    Attributes:
        population: The name of the population.
        opening: The digest of the population's first entry, which identifies it.
        experiment: The name of the experiment.
        protects: The least that the experiment must protect.
        days: The period in which the budget may be spent; None where the population's is never renewed.
    """

    population: str
    opening: str
    experiment: str
    protects: Protects
    days: Days | None

    @property
    def key(self) -> str:
        """The name of the experiment, with the period where there is one."""
        return f"{self.experiment}/{self.days.label}" if self.days else self.experiment

    @property
    def ledger(self) -> str:
        """The name of the experiment's ledger."""
        return f"{self.population}/{self.key}"

    def check_protects(self, protects: Protects) -> None:
        """Raise unless a data set protects at least what the population does."""
        if PROTECTS.index(protects) > PROTECTS.index(self.protects):
            raise LedgerError(
                expected=f"protects={self.protects!r} or stronger, as the population {self.population} declares",
                got=f"protects={protects!r}",
                hint="budgets of experiments add up only where all of them protect as much; declare it in the schema.",
            )

    def check_day(self) -> None:
        """Raise unless the budget may be spent today."""
        if self.days and not self.days.first <= today().isoformat() <= self.days.last:
            raise LedgerError(
                expected=f"a day within the period that this budget was allocated in, {self.days}",
                got=f"{today()}",
                hint="allocate a budget for the new period to the same experiment: dpcausal population "
                "allocate. What was not spent is not carried over.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the allocation that `to_dict` wrote."""
        days = document["days"]
        return cls(**{**document, "days": Days(**days) if days else None})
