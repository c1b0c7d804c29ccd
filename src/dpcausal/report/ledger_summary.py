"""What a ledger says that belongs into a report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from dpcausal.guarantee import ProofStatus
from dpcausal.ledger import Budget, Ledger, Spending
from dpcausal.ledger.chain import Entry
from dpcausal.release import Receipt


@dataclass(frozen=True)
class Payment:
    """One grant of a ledger.

    Attributes:
        at: The day on which it was made. A ledger keeps no more: times would tell how long the table took to read.
        query: What was asked.
        family: What noise it was paid for.
        epsilon: Its price.
        delta: Likewise.
    """

    at: str
    query: str
    family: str
    epsilon: float
    delta: float

    @property
    def when(self) -> datetime:
        """The day on which it was made."""
        return datetime.fromisoformat(self.at)


@dataclass(frozen=True, kw_only=True)
class LedgerSummary:
    """All that was spent on one data set.

    Attributes:
        budget: The most that may ever be.
        total: What was, in the terms of the budget's rule.
        left: What is left.
        proof_status: Whether all of it is proved.
        data_set: What the ledger holds the data set to.
        versions: Each version of the data, with its number of units.
        restores: Each time that an older copy was put back: by whom, why, and what that may have cost twice.
        opening: The digest of the ledger's first entry, which no other ledger has.
        head: The digest of its last entry.
        entries: How many entries it has, all of them verified.
        payments: Every grant, in order.
        found: How many of the effect's receipts are in this ledger as they say.
    """

    budget: Budget
    total: Spending
    left: Spending
    proof_status: ProofStatus
    data_set: str
    versions: tuple[str, ...]
    restores: tuple[str, ...]
    opening: str
    head: str
    entries: int
    payments: tuple[Payment, ...]
    found: int

    @classmethod
    def of(cls, ledger: Ledger, receipts: Sequence[Receipt] = ()) -> Self:
        """What a ledger says; all of it is read and verified."""
        entries = ledger.entries()
        payments = [
            Payment(
                entry.content["at"],
                _asked(entry),
                event.family,
                event.epsilon,
                event.delta,
            )
            for entry in entries
            for event in entry.events
        ]
        digests = {entry.digest for entry in entries if entry.kind == "debit"}
        return cls(
            budget=ledger.budget,
            total=ledger.spent,
            left=ledger.remaining,
            proof_status=ledger.proof_status,
            data_set=str(ledger.data_set or "none yet"),
            versions=tuple(_version(as_of, n) for as_of, n in ledger.versions.items()),
            restores=tuple(_restored(entry) for entry in entries if entry.kind == "restore"),
            opening=ledger.opening,
            head=entries[-1].digest,
            entries=len(entries),
            payments=tuple(payments),
            found=sum(receipt.digest in digests for receipt in receipts),
        )


def _asked(entry: Entry) -> str:
    """What an entry that costs something was for."""
    if entry.kind == "restore":
        return "lost when an older copy was restored"
    return str(entry.content["question"].get("query", {}).get("query", "unknown"))


def _version(as_of: str | None, n: int | None) -> str:
    units = "not opened yet" if n is None else f"{n:,} units"
    return f"data as of {as_of}: {units}" if as_of else units


def _restored(entry: Entry) -> str:
    said = entry.content
    epsilon, delta = (math.fsum(getattr(event, part) for event in entry.events) for part in ("epsilon", "delta"))
    price = f"counted as spent once more: epsilon {epsilon:g}, delta {delta:g}"
    return f"{said['at']} by {said['by']} ({said['reason']}): {said['lost']}; {price}"
