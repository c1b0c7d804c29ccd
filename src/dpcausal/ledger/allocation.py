"""The experiments of a population, and what ties the ledger of each to it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Self

from dpcausal.errors import LedgerError
from dpcausal.ledger.budget import Budget, Spending
from dpcausal.ledger.data_set import DataSet
from dpcausal.schema.layer import LayerClaim
from dpcausal.schema.schema import PROTECTS, Protects

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
        opening: The digest of the population's first entry, which identifies it.
        days: The period in which the budget may be spent; None where the population's is never renewed.
        unit: The column that identifies a person; empty where each record is a person.
        claim: The buckets of a layer that the experiment has; None where it is on everybody.
    """

    population: str
    opening: str
    experiment: str
    protects: Protects
    days: Days | None
    unit: str
    public: tuple[str, ...]
    claim: LayerClaim | None = None

    @property
    def key(self) -> str:
        """The name of the experiment, with the period where there is one."""
        return f"{self.experiment}/{self.days.label}" if self.days else self.experiment

    @property
    def ledger(self) -> str:
        """The name of the experiment's ledger."""
        return f"{self.population}/{self.key}"

    def check_data_set(self, data_set: DataSet) -> None:
        """Raise unless an experiment's data set has the population's people as its units, and protects as much."""
        unit = data_set.unit.name if data_set.unit else ""
        for holds, expected, got in (
            (
                PROTECTS.index(data_set.protects) <= PROTECTS.index(self.protects),
                f"protects={self.protects!r} or stronger",
                f"protects={data_set.protects!r}",
            ),
            (
                self.unit == unit,
                f"people as units, Unit({self.unit!r}, …)" if self.unit else "people as units, one record for each",
                f"units by {unit}" if unit else "a unit for each record",
            ),
            (
                {*data_set.public} <= {*self.public},
                f"public columns out of {', '.join(self.public)}" if self.public else "no public columns",
                f"public columns {', '.join(data_set.public)}",
            ),
        ):
            if not holds:
                raise LedgerError(
                    expected=f"{expected}, as the population {self.population} declares",
                    got=got,
                    hint="budgets of experiments add up only where all of them protect the same people as much; "
                    "declare it so when the vault is opened.",
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
        plain = asdict(replace(self, claim=None))
        del plain["claim"]
        return plain | ({"claim": self.claim.to_dict()} if self.claim else {})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the allocation that `to_dict` wrote."""
        days = document["days"]
        known = {name: value for name, value in document.items() if name != "allow_unproved"}  # of older populations
        claim = LayerClaim.from_dict(document["claim"]) if "claim" in document else None
        read = {"public": tuple(document["public"]), "days": Days(**days) if days else None, "claim": claim}
        return cls(**{**known, **read})


@dataclass(frozen=True)
class AllocatedExperiment:
    """One experiment of a population.

    Attributes:
        budget: The budget that was allocated to it.
        ledger: The address of its ledger.
        period: The period in which it may be spent; empty where the population's budget is never renewed.
        returned: What it gave back when it was closed; None while it is open.
        claim: The buckets of a layer that it has or had; None where it is on everybody.
    """

    name: str
    budget: Budget
    ledger: str
    period: str
    returned: Spending | None
    claim: LayerClaim | None = None
