"""The running total of a ledger's entries, and the checkpoints that record it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Self

from dpcausal.errors import DpcausalError, LedgerError
from dpcausal.ledger.budget import Total
from dpcausal.ledger.chain import Entry, Kind, broken_at, unreadable_at
from dpcausal.ledger.data_set import DataSet
from dpcausal.ledger.layers import plain_total, total_of
from dpcausal.ledger.witness import Sighting

CHECKPOINT_EVERY = 1_000
"""An entry whose number is a multiple of this is a checkpoint, but for entry 0, the opening."""


@dataclass(frozen=True)
class RunningTotal:
    """The total of all entries up to one of them: everything that is needed to continue from there.

    Attributes:
        head: The last of these entries; None before the first.
        opening: The digest of the first entry, which identifies the ledger.
        total: The sum of what was granted, and of what was counted as lost when an older copy was restored.
        versions: The number of units of each version of the data; None where no vault was opened on it yet.
        data_set: What is public about the data; None before the first vault.
        by_requester: The parts of the total that were granted to named requesters.
        closed: Whether the ledger was closed, so that nothing is granted any more.
    """

    head: Entry | None = None
    opening: str = ""
    total: Total = field(default_factory=Total)
    versions: Mapping[str | None, int | None] = field(default_factory=dict)
    data_set: DataSet | None = None
    closed: bool = False
    by_requester: Mapping[str, Total] = field(default_factory=dict)

    @property
    def sighting(self) -> Sighting:
        """The number and digest of the last entry, for the witness."""
        if self.head is None:
            raise broken_at(0)
        return Sighting(self.head.number, self.head.digest)

    def after(self, entry: Entry) -> Self:
        """Return the running total with one more entry.

        Raises:
            LedgerError: If the entry does not follow, or is a checkpoint with another total.
        """
        entry.check_follows(self.head)
        try:
            following = self._with(entry)
        except (LookupError, TypeError, ValueError, AttributeError, DpcausalError):
            raise unreadable_at(entry.number) from None
        if following is None:
            raise LedgerError(
                expected="a ledger that is opened once, and whose checkpoints hold the total of all entries before",
                got=f"a {entry.kind} at entry {entry.number} that does not",
                hint="restore the ledger from a copy that verifies; do not release anything before.",
            )
        return replace(following, head=entry)

    def _with(self, entry: Entry) -> Self | None:  # noqa: PLR0911 (one for each kind)
        """Return the running total with an entry's content; None where it may not stand here."""
        content = entry.content
        match self.head, entry.kind:
            case None, "open":
                return replace(self, opening=entry.digest, versions={content["as_of"]: None})
            case Entry(), "version" if content["as_of"] not in self.versions:
                return replace(self, versions={**self.versions, content["as_of"]: None})
            case Entry(), "bind" if self.versions.get(content["as_of"], 0) is None:
                data_set = DataSet.from_dict(content["data_set"])
                versions = {**self.versions, content["as_of"]: int(content["n"])}
                return replace(self, versions=versions, data_set=data_set) if self._may_be(data_set) else None
            case Entry(), "grant" | "restore" if not self.closed:
                return self._charged(entry)
            case Entry(), "close" if not self.closed:
                return replace(self, closed=True)
            case Entry(), "debit" | "release" | "confirm" | "look" | "checkpoint" | "site" if self._agrees(entry):
                return self
        return None

    def _agrees(self, entry: Entry) -> bool:
        return entry.kind != "checkpoint" or _recorded(entry) == self._record()

    def _may_be(self, data_set: DataSet) -> bool:
        return self.data_set in (None, data_set)

    def _charged(self, entry: Entry) -> Self | None:
        charged, name = (
            replace(self, total=reduce(Total.plus, entry.events, self.total)),
            entry.content.get("requester"),
        )
        if name is None:
            return charged
        spent = reduce(Total.plus, entry.events, self.by_requester.get(name, Total()))
        return replace(charged, by_requester={**self.by_requester, name: spent}) if isinstance(name, str) else None

    def at(self, checkpoint: Entry) -> Self:
        """Return the running total that a checkpoint records, unverified, of a ledger with this opening."""
        checkpoint.check_digest()
        recorded = _recorded(checkpoint)
        if recorded.get("opening") != self.opening or {*recorded} - {"closed", "requesters"} != {*self._record()}:
            raise LedgerError(
                expected="the opening entry that this ledger's last checkpoint names",
                got="another",
                hint="restore the ledger from a copy that verifies; do not release anything before.",
            )
        return replace(self._restored(recorded), head=checkpoint)

    def _restored(self, recorded: Mapping[str, Any]) -> Self:
        """Return this opening with the total that a checkpoint recorded."""
        return replace(
            self,
            total=total_of({name: recorded[name] for name in ("epsilon", "delta", "rho")}),
            versions=dict(recorded["versions"]),
            data_set=DataSet.from_dict(recorded["data_set"]) if recorded["data_set"] else None,
            closed=bool(recorded.get("closed")),
            by_requester={name: total_of(parts) for name, parts in recorded.get("requesters", {}).items()},
        )

    def followed_by(self, kind: Kind, request: str, content: dict[str, Any]) -> list[Entry]:
        """Return the entries to append next: a checkpoint comes first where one is due."""
        if self.head is None or (self.head.number + 1) % CHECKPOINT_EVERY > 0:
            return [Entry.after(self.head, kind, request, content)]
        checkpoint = Entry.after(self.head, "checkpoint", str(self.head.number + 1), self._record())
        return [checkpoint, Entry.after(checkpoint, kind, request, content)]

    def _record(self) -> dict[str, Any]:
        spent = {name: plain_total(each) for name, each in self.by_requester.items()}
        return {
            "opening": self.opening,
            "versions": [[as_of, n] for as_of, n in self.versions.items()],
            "data_set": self.data_set.to_dict() if self.data_set else None,
            **plain_total(self.total),
            **({"closed": True} if self.closed else {}),
            **({"requesters": spent} if spent else {}),
        }


def _recorded(checkpoint: Entry) -> dict[str, Any]:
    return {name: value for name, value in checkpoint.content.items() if name not in ("at", "nonce")}


def last_checkpoint_up_to(number: int) -> int:
    """Return the number of the last checkpoint up to an entry; 0 if the ledger is too short for one."""
    return number - number % CHECKPOINT_EVERY
