"""What the entries of a ledger come to, and the checkpoints that write it down."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpcausal.errors import LedgerError
from dpcausal.guarantee import Standing
from dpcausal.ledger.chain import Entry, Kind
from dpcausal.ledger.rules import Total

CHECKPOINT_EVERY = 1_000
"""An entry whose number is a multiple of this is a checkpoint, but for entry 0, the opening."""


@dataclass(frozen=True)
class Balance:
    """What all entries up to one of them come to: all that is needed to go on from there.

    Attributes:
        head: The last of these entries; None before the first.
        opening: The digest of the first, which says whose ledger this is.
        total: What was granted.
        standing: Whether all of it is proved.
    """

    head: Entry | None = None
    opening: str = ""
    total: Total = field(default_factory=Total)
    standing: Standing = "proved"

    def after(self, entry: Entry) -> "Balance":
        """The balance with one entry more.

        Raises:
            LedgerError: If the entry does not follow, or is a checkpoint that says something else.
        """
        entry.check_follows(self.head)
        match self.head, entry.kind:
            case None, "open":
                return replace(self, head=entry, opening=entry.digest)
            case Entry(), "grant":
                return self._granted(entry)
            case Entry(), "debit" | "release":
                return replace(self, head=entry)
            case Entry(), "checkpoint" if _said(entry) == self._carried():
                return replace(self, head=entry)
        raise LedgerError(
            expected="a ledger that is opened once, and whose checkpoints say what the entries before them come to",
            got=f"a {entry.kind} at entry {entry.number} that does not",
            hint="restore the ledger from a copy that verifies; do not release anything before.",
        )

    def _granted(self, grant: Entry) -> "Balance":
        event = grant.event
        standing: Standing = "heuristic" if event.family == "heuristic" else self.standing
        return replace(self, head=grant, total=self.total.plus(event), standing=standing)

    def at(self, checkpoint: Entry) -> "Balance":
        """The balance that a checkpoint says, taken at its word, of a ledger with this opening."""
        checkpoint.check_whole()
        said = _said(checkpoint)
        if said.get("opening") != self.opening or set(said) != set(self._carried()):
            raise LedgerError(
                expected="the opening entry that this ledger's last checkpoint names",
                got="another",
                hint="restore the ledger from a copy that verifies; do not release anything before.",
            )
        total = Total(*(Fraction(said[name]) for name in ("epsilon", "delta", "rho")))
        return Balance(checkpoint, self.opening, total, said["standing"])

    def followed_by(self, kind: Kind, request: str, content: dict[str, Any]) -> list[Entry]:
        """The entries that write this down next: a checkpoint comes first where one is due."""
        if self.head is None or (self.head.number + 1) % CHECKPOINT_EVERY > 0:
            return [Entry.after(self.head, kind, request, content)]
        checkpoint = Entry.after(self.head, "checkpoint", str(self.head.number + 1), self._carried())
        return [checkpoint, Entry.after(checkpoint, kind, request, content)]

    def _carried(self) -> dict[str, Any]:
        total = {name: str(part) for name, part in vars(self.total).items()}
        return {"opening": self.opening, "standing": self.standing} | total


def _said(checkpoint: Entry) -> dict[str, Any]:
    return {name: value for name, value in checkpoint.content.items() if name != "at"}


def last_checkpoint_up_to(number: int) -> int:
    """The place of the last checkpoint of a ledger whose last entry has this number; 0 if it is too short for one."""
    return number - number % CHECKPOINT_EVERY
