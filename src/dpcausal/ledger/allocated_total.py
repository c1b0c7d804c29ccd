"""The running total of a population's entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from dpcausal.ledger.allocation import Allocation, Days
from dpcausal.ledger.budget import Budget, Total
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.running_total import RunningTotal


@dataclass(frozen=True)
class AllocatedTotal(RunningTotal):
    """The running total of a population: what its experiments may spend, in each period.

    Attributes:
        budget: The population's budget; None before the first entry.
        periods: What is allocated in each period and was not returned; by the empty text without periods.
    """

    budget: Budget | None = None
    periods: Mapping[str, Total] = field(default_factory=dict)

    def of(self, days: Days | None) -> Total:
        """Return what is allocated in a period."""
        return self.periods.get(label_of(days), Total())

    def _with(self, entry: Entry) -> Self | None:
        content = entry.content
        match self.head, entry.kind:
            case None, "open" if "population" in content:
                return replace(self, opening=entry.digest, budget=Budget(**content["budget"]))
            case Entry(), "allocate":
                return self._moved(_days(content), Budget(**content["budget"]).cap)
            case Entry(), "close":
                return self._moved(_days(content), Total() - total_of(content["returned"]))
            case Entry(), "checkpoint" if self._agrees(entry):
                return self
        return None

    def _moved(self, days: Days | None, total: Total) -> Self | None:
        """Return the total with more or less allocated in a period; None where that is beyond the budget or below 0."""
        allocated = self.of(days) + total
        if self.budget is None or not self.budget.covers(allocated) or min(vars(allocated).values()) < 0:
            return None
        return replace(self, periods={**self.periods, label_of(days): allocated})

    def _record(self) -> dict[str, Any]:
        return {
            "opening": self.opening,
            "periods": [[label, plain_total(total)] for label, total in self.periods.items()],
        }

    def _restored(self, recorded: Mapping[str, Any]) -> Self:
        return replace(self, periods={label: total_of(parts) for label, parts in recorded["periods"]})


def label_of(days: Days | None) -> str:
    """Return the name of a period; the empty text without one."""
    return days.label if days else ""


def plain_total(total: Total) -> dict[str, str]:
    """Return a total as plain values, exactly."""
    return {name: str(part) for name, part in vars(total).items()}


def total_of(parts: Mapping[str, str]) -> Total:
    """Return the total that `plain_total` wrote."""
    return Total(**{name: Fraction(part) for name, part in parts.items()})


def _days(content: Mapping[str, Any]) -> Days | None:
    return Allocation.from_dict(content["allocation"]).days
