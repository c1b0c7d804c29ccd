"""Ledger entries, chained by their digests, and their order within a request."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Self

from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event
from dpcausal.utils.hash_chain import ChainEntry

FORMAT = 1
"""The version of the format of a ledger's entries."""

Kind = Literal[
    "open",
    "version",
    "bind",
    "grant",
    "debit",
    "release",
    "confirm",
    "look",
    "restore",
    "checkpoint",
    "allocate",
    "close",
    "site",
]

REQUEST_ORDER: tuple[Kind, ...] = ("grant", "debit", "release", "confirm")
"""The entries of one request, in order; only a session of secure sums has the last. A schedule of looks is granted and
debited; each of its looks is one entry."""

REQUEST_KINDS: tuple[Kind, ...] = (*REQUEST_ORDER, "look")


@dataclass(frozen=True)
class Entry(ChainEntry):
    """One entry of a ledger.

    Attributes:
        number: Its place in the ledger, from 0, without gaps.
        kind: `open` (budget, first version and witness), `version` (another version of the data), `bind` (what is
            public about the data, and how many units this version has), `grant` (budget reserved), `debit` (budget
            spent for good), `release` (the answer that was paid for), `confirm` (the one sum over sites of which this
            answer may be a part), `look` (the answer at one look of a schedule that was paid for), `restore` (an older
            copy was put back), `checkpoint` (the running total of all entries before it), `allocate` (of a population:
            the budget of one experiment), `close` (of an experiment: nothing is granted any more; of a population: an
            experiment returned what it never granted), or `site` (the state of the site that the ledger belongs to).
        request: The digest of the request it belongs to; of a version or an experiment its name; of a checkpoint, a
            restore or the state of a site its number.
    """

    number: int
    kind: Kind
    request: str
    body: str

    @classmethod
    def after(cls, previous: Self | None, kind: Kind, request: str, content: dict[str, Any]) -> Self:
        """Return the entry that follows another one; the first follows None."""
        # The day and no more: the time between two entries would reveal how long the table took to read. A nonce makes
        # every entry unique: a debit that is lost and made again must not match the receipt of the first.
        made = {"at": datetime.now(UTC).date().isoformat(), "nonce": os.urandom(16).hex()}
        body = json.dumps(content | made, sort_keys=True, allow_nan=False)
        return cls.append(previous, number=_number_after(previous), kind=kind, request=request, body=body)

    @property
    def content(self) -> dict[str, Any]:
        """The content of the entry, as plain values."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def day(self) -> str:
        """The day on which it was written, in UTC."""
        return str(self.content["at"])

    @property
    def answer(self) -> str:
        """The answer that a release or a look stores, as JSON."""
        return json.dumps(self.content["release"], sort_keys=True)

    @property
    def events(self) -> list[Event]:
        """The events that the entry adds to the total: what a grant reserves, or what a restore counts as lost."""
        content = self.content
        return [Event(**event) for event in content.get("events", [content["event"]] if "event" in content else [])]

    def follows(self, last: "Entry | None") -> bool:
        """Whether this entry is intact and stands right after `last`, in number too."""
        return self.number == _number_after(last) and super().follows(last)

    def check_digest(self) -> None:
        """Raise unless the entry is what its digest was made from."""
        if not self.is_intact:
            raise broken_at(self.number)

    def check_follows(self, previous: "Entry | None") -> None:
        """Raise unless this entry is intact and stands right after the other."""
        if not self.follows(previous):
            raise broken_at(_number_after(previous))


def _number_after(entry: Entry | None) -> int:
    return entry.number + 1 if entry else 0


def check_order(kinds: Sequence[str]) -> None:
    """Raise unless the entries of one request are a beginning of `REQUEST_ORDER`, each once; or one look."""
    if tuple(kinds) not in (REQUEST_ORDER[: len(kinds)], ("look",)):
        raise LedgerError(
            expected="grant, debit, release and confirmation of each request once and in this order",
            got=f"{', '.join(kinds)} of one request",
            hint="restore the ledger from a copy that verifies; do not release anything before.",
        )


def broken_at(number: int) -> LedgerError:
    """Return the error for a broken chain."""
    return LedgerError(
        problem=f"The ledger's chain is broken at entry {number}: an entry was changed, removed or inserted later",
        hint="restore the ledger from a copy that verifies; do not release anything before.",
    )


def unreadable_at(number: int) -> LedgerError:
    """Return the error for an entry that is intact, but not as this version of dpcausal writes it."""
    return LedgerError(
        problem=f"Entry {number} of the ledger is not as this version of dpcausal writes one",
        hint="use the version of dpcausal that wrote it.",
    )
