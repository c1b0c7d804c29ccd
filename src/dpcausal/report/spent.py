"""What a ledger says that belongs into a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from dpcausal.guarantee import Standing
from dpcausal.ledger import Budget, Ledger, Spending
from dpcausal.release import Receipt


@dataclass(frozen=True)
class Payment:
    """One grant of a ledger.

    Attributes:
        at: When it was made, as the ledger wrote it down.
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
        """The time it was made."""
        return datetime.fromisoformat(self.at)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """All that was spent on one data set.

    Attributes:
        budget: The most that may ever be.
        total: What was, in the terms of the budget's rule.
        left: What is left.
        standing: Whether all of it is proved.
        data_set: The public facts that the ledger holds the data set to.
        opening: The digest of the ledger's first entry, which no other ledger has.
        head: The digest of its last entry.
        entries: How many entries it has, all of them verified.
        payments: Every grant, in order.
        found: How many of the effect's receipts are in this ledger as they say.
    """

    budget: Budget
    total: Spending
    left: Spending
    standing: Standing
    data_set: str
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
                str(entry.content["question"].get("query", {}).get("query", "unknown")),
                entry.event.family,
                entry.event.epsilon,
                entry.event.delta,
            )
            for entry in entries
            if entry.kind == "grant"
        ]
        digests = {entry.digest for entry in entries if entry.kind == "debit"}
        return cls(
            budget=ledger.budget,
            total=ledger.spent,
            left=ledger.remaining,
            standing=ledger.standing,
            data_set=str(ledger.data_set),
            opening=ledger.opening,
            head=entries[-1].digest,
            entries=len(entries),
            payments=tuple(payments),
            found=sum(receipt.digest in digests for receipt in receipts),
        )
