"""The running total of a population's entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from dpcausal.ledger.allocation import Allocation, Days
from dpcausal.ledger.budget import Budget, Total
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.layers import Allocated, plain_total, total_of
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.schema.layer import Layer
from dpcausal.utils.validation import build


@dataclass(frozen=True)
class AllocatedTotal(RunningTotal):
    """The running total of a population: what its experiments may spend, in each period.

    Attributes:
        budget: The population's budget; None before the first entry.
        layers: The layers that the population declares, by name.
        periods: What is allocated in each period and was not returned; by the empty text without periods.
    """

    budget: Budget | None = None
    layers: Mapping[str, Layer] = field(default_factory=dict)
    periods: Mapping[str, Allocated] = field(default_factory=dict)

    def of(self, days: Days | None) -> Allocated:
        """Return what is allocated in a period."""
        return self.periods.get(label_of(days), Allocated())

    def _with(self, entry: Entry) -> Self | None:
        content = entry.content
        match self.head, entry.kind:
            case None, "open" if "population" in content:
                layers = layers_of(content["population"])
                return replace(self, opening=entry.digest, budget=Budget(**content["budget"]), layers=layers)
            case Entry(), "allocate":
                allocation = Allocation.from_dict(content["allocation"])
                return self._moved(allocation, Budget(**content["budget"]).cap, "", allocation.experiment)
            case Entry(), "close":
                allocation = Allocation.from_dict(content["allocation"])
                return self._moved(allocation, Total() - total_of(content["returned"]), allocation.experiment, "")
            case Entry(), "checkpoint" if self._agrees(entry):
                return self
        return None

    def _moved(self, allocation: Allocation, total: Total, before: str, after: str) -> Self | None:
        """Return the total with more or less allocated; None where that is beyond the budget or below 0."""
        claim, now = allocation.claim, self.of(allocation.days)
        if self.budget is None or (claim is not None and self.layers.get(claim.name) != claim.layer):
            return None
        if claim is not None and now.holders(claim) != {before}:
            return None
        moved = now.moved(total, claim, after)
        if not moved.is_within(self.budget):
            return None
        return replace(self, periods={**self.periods, label_of(allocation.days): moved})

    def _record(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "opening": self.opening,
            "periods": [[label, plain_total(each.apart)] for label, each in self.periods.items()],
        }
        if self.layers:  # without them as in populations of before there were any
            record["layers"] = [[label, each.record()] for label, each in self.periods.items()]
        return record

    def _restored(self, recorded: Mapping[str, Any]) -> Self:
        layers = dict(recorded.get("layers", ()))
        periods = {
            label: Allocated.restored(total_of(parts), layers.get(label, {})) for label, parts in recorded["periods"]
        }
        return replace(self, periods=periods)


def layers_of(about: Mapping[str, Any]) -> dict[str, Layer]:
    """Return the layers that the first entry of a population declares, by name."""
    return {name: build("layer", Layer, layer) for name, layer in about.get("layers", {}).items()}


def label_of(days: Days | None) -> str:
    """Return the name of a period; the empty text without one."""
    return days.label if days else ""
