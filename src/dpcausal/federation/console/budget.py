"""The budget of a site over all its studies."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from dpcausal.federation.console.messages import SentMessage
from dpcausal.ledger import Budget, Ledger, Spending
from dpcausal.page.time_figure import growth_svg
from dpcausal.queries import queries_asked
from dpcausal.study.study import Study


@dataclass(frozen=True)
class Debit:
    """One debit of the ledger.

    Attributes:
        study: The digest of the study whose message has its receipt; empty where no message has it.
    """

    entry: int
    day: str
    query: str
    epsilon: float
    delta: float
    study: str


@dataclass(frozen=True)
class BudgetSummary:
    """What was spent, for whom, and what is left.

    Attributes:
        entries: The number of entries in the ledger, all of which were verified for this summary.
        versions: The number of units of each version of the data.
    """

    budget: Budget
    spent: Spending
    remaining: Spending
    debits: tuple[Debit, ...]
    entries: int
    versions: Mapping[str | None, int | None]
    stored: frozenset[str]

    @classmethod
    def of(cls, ledger: Ledger, messages: Iterable[SentMessage]) -> "BudgetSummary":
        """Read and verify a whole ledger, and join it with the receipts in messages."""
        owners = dict[int | None, str]()
        for message in messages:
            for receipt in message.receipts:
                owners.setdefault(receipt.entry, message.study)
        entries = ledger.entries()
        grants = {entry.request: entry for entry in entries if entry.kind == "grant"}
        debits = []
        for entry in entries:
            if entry.kind == "debit":
                granted = grants[entry.request]
                names = " + ".join(queries_asked(granted.content["question"]))
                owner = entry.content.get("study") or owners.get(entry.number, "")
                epsilon, delta = (
                    math.fsum(getattr(each, part) for each in granted.events) for part in ("epsilon", "delta")
                )
                debits.append(Debit(entry.number, entry.content["at"], names, epsilon, delta, owner))
        stored = frozenset(entry.request for entry in entries if entry.kind in {"release", "look"})
        versions = ledger.versions
        return cls(ledger.budget, ledger.spent, ledger.remaining, tuple(debits), len(entries), versions, stored)

    def by_requester(self, studies: Mapping[str, Study]) -> dict[str, Spending]:
        """Return what was spent for each requester."""
        return self._summed(lambda debit: studies[debit.study].requester if debit.study in studies else "unknown")

    def over_time(self, until: date) -> str:
        """Return a figure of what was spent by day, and the whole budget."""
        days = dict[date, float]()
        for debit in self.debits:
            day = date.fromisoformat(debit.day[:10])
            days[day] = days.get(day, 0.0) + debit.epsilon
        whole, spent = self.budget.epsilon, math.fsum(days.values())
        return growth_svg(
            days,
            limit=whole,
            until=until,
            label=f"Debits over time: epsilon {spent:g} of {whole:g}",
            limit_label=f"budget {whole:g}",
        )

    def by_month(self) -> dict[str, Spending]:
        """Return what was spent in each month."""
        return self._summed(lambda debit: debit.day[:7])

    def _summed(self, key: Callable[[Debit], str]) -> dict[str, Spending]:
        sums = dict[str, Spending]()
        for debit in self.debits:
            before = sums.get(key(debit), Spending(0.0, 0.0))
            sums[key(debit)] = Spending(before.epsilon + debit.epsilon, before.delta + debit.delta)
        return sums


@dataclass(frozen=True)
class Bar:
    """A bar of the budget, in percent of its whole: spent, committed, this study, other pending studies.

    Attributes:
        committed: What studies will cost that are approved and not answered yet.
    """

    spent: float
    committed: float
    study: float
    pending: float

    @classmethod
    def of(cls, budget: float, spent: float, committed: float, study: float = 0.0, pending: float = 0.0) -> "Bar":
        """Return the bar of amounts of epsilon; what would exceed the budget is cut off."""
        parts, left = list[float](), 100.0
        for amount in (spent, committed, study, pending):
            part = min(max(100.0 * amount / budget, 0.0), left)
            parts.append(round(part, 2))
            left -= part
        return cls(*parts)
