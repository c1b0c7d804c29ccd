"""A summary of a ledger for reports, figures and the command line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from dpcausal.ledger import Budget, Ledger, Spending
from dpcausal.ledger.chain import Entry
from dpcausal.queries import queries_asked
from dpcausal.release import Receipt
from dpcausal.utils.hash_chain import dated_back


@dataclass(frozen=True)
class Payment:
    """One debit of a ledger.

    Attributes:
        at: Its date. A ledger records no time of day, which would reveal how long the table took to read.
        study: The digest of the study that it was made for, at a site; otherwise empty.
    """

    at: str
    query: str
    family: str
    epsilon: float
    delta: float
    study: str = ""

    @property
    def when(self) -> datetime:
        """The date, as a datetime."""
        return datetime.fromisoformat(self.at)


@dataclass(frozen=True, kw_only=True)
class LedgerSummary:
    """Everything that was ever spent on one data set.

    Attributes:
        budget: The budget.
        total: What was spent, in the terms of the budget's rule.
        remaining: What remains.
        data_set: The description of the data set that the ledger enforces.
        versions: Each version of the data, with its number of units.
        restores: Each time that an older copy was restored: by whom, why, and what that may have cost twice.
        opening: The digest of the first entry, which identifies the ledger.
        head: The digest of the last entry.
        entries: The number of entries, all of them verified.
        dated_back: The numbers of entries that are dated more than a day before an entry before them.
        payments: Every debit, in order.
        receipts_found: How many of the given receipts this ledger confirms.
    """

    budget: Budget
    total: Spending
    remaining: Spending
    data_set: str
    versions: tuple[str, ...]
    restores: tuple[str, ...]
    opening: str
    head: str
    entries: int
    dated_back: tuple[int, ...]
    payments: tuple[Payment, ...]
    receipts_found: int

    @classmethod
    def of(cls, ledger: Ledger, receipts: Sequence[Receipt] = ()) -> Self:
        """Read and verify a whole ledger, and summarise it."""
        entries = ledger.entries()
        studies = {entry.request: entry.content.get("study", "") for entry in entries if entry.kind == "debit"}
        payments = [
            Payment(
                at=entry.content["at"],
                query=query,
                family=event.family,
                epsilon=event.epsilon,
                delta=event.delta,
                study=studies.get(entry.request, "") if entry.kind == "grant" else "",
            )
            for entry in entries
            for event, query in zip(entry.events, _queries(entry), strict=True)
        ]
        digests = {entry.digest for entry in entries if entry.kind == "debit"}
        return cls(
            budget=ledger.budget,
            total=ledger.spent,
            remaining=ledger.remaining,
            data_set=str(ledger.data_set or "none yet"),
            versions=tuple(_version(as_of, n) for as_of, n in ledger.versions.items()),
            restores=tuple(_restored(entry) for entry in entries if entry.kind == "restore"),
            opening=ledger.opening,
            head=entries[-1].digest,
            entries=len(entries),
            dated_back=dated_back(entry.day for entry in entries),
            payments=tuple(payments),
            receipts_found=sum(receipt.digest in digests for receipt in receipts),
        )


def _queries(entry: Entry) -> list[str]:
    """Return the query behind each price of an entry."""
    if entry.kind == "restore":
        return ["lost when an older copy was restored"] * len(entry.events)
    return list(queries_asked(entry.content["question"])) if entry.events else []


def _version(as_of: str | None, n: int | None) -> str:
    units = "not opened yet" if n is None else f"{n:,} units"
    return f"data as of {as_of}: {units}" if as_of else units


def _restored(entry: Entry) -> str:
    content = entry.content
    epsilon, delta = (math.fsum(getattr(event, part) for event in entry.events) for part in ("epsilon", "delta"))
    price = f"debited again: epsilon {epsilon:g}, delta {delta:g}"
    return f"{content['at']} by {content['by']} ({content['reason']}): {content['lost']}; {price}"
