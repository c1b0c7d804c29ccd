"""One line of a site's audit log."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from dpcausal.errors import LedgerError, StudyError, redact_errors
from dpcausal.federation.site.decisions import claimed_decision
from dpcausal.utils.hash_chain import ChainEntry

VERSION = 3
"""The version of the format."""

_DIGITS = 64

Kind = Literal["approve", "reject", "withdraw", "answer", "forged", "people", "key", "index", "confirm", "restore"]
DECISIONS: tuple[Kind, ...] = ("approve", "reject")
CHANGES: tuple[Kind, ...] = ("people", "key", "index", "confirm", "restore")
"""The kinds that change what counts at a site, but for what is about one study."""


@dataclass(frozen=True, kw_only=True)
class LogEntry(ChainEntry):
    """One event at a site: one line of the audit log.

    Attributes:
        kind: A decision, a study's withdrawal by its requester, an answer to a request, requests without a valid
            signature, a change of the site's people or of its key, a new index, a confirmation of settings, or one
            after a restore: approvals before it do not count.
        what: The reason of a decision; of an answer, the request and the code.
        sealed: The signed decision, or the signature of a change; empty in other entries.
    """

    version: int
    kind: Kind
    study: str
    who: str
    what: str
    at: str
    sealed: str = ""

    @property
    def request(self) -> str:
        """The digest of the request that an answer, or a refusal of a forged request, is about; empty otherwise."""
        digest, _, code = self.what.partition(" ")
        return digest if self.kind in ("answer", "forged") and len(digest) == _DIGITS and code else ""

    @property
    def code(self) -> str:
        """The code of the answer to a request; empty in other entries."""
        return self.what.partition(" ")[2] if self.request else ""

    @property
    def is_decision(self) -> bool:
        """Whether this is a signed decision."""
        return self.kind in DECISIONS

    @property
    def login(self) -> str:
        """How the console knew who decided; empty in other entries."""
        return claimed_decision(self.sealed).login if self.is_decision else ""

    @property
    def topic(self) -> str:
        """What the index holds its place under: the study that it decides about, or the kind of a change; or empty."""
        decides = self.is_decision or self.kind == "withdraw"
        return self.study if decides else self.kind if self.kind in CHANGES else ""

    @property
    def time(self) -> datetime:
        """The time, where the entry has more than the day."""
        return datetime.fromisoformat(self.at)


def read_entry(place: int, line: bytes) -> LogEntry:
    """Read one line."""
    with redact_errors(ValueError, TypeError, RecursionError, StudyError, instead=lambda _: broken_at(place)):
        document = json.loads(line)
        version = document.get("version", 1) if isinstance(document, dict) else None
        if type(version) is int and version != VERSION:
            raise LedgerError(
                expected=f"version {VERSION} of the audit log at line {place + 1}",
                got=f"version {version}",
                hint="this file was written by another version of dpcausal: move it away, and approve studies again.",
            )
        entry = LogEntry(**document)
        if not all(isinstance(value, str) for name, value in document.items() if name != "version"):
            raise broken_at(place)
        if entry.is_decision != bool(entry.sealed) and entry.kind not in CHANGES:
            raise broken_at(place)
        if entry.is_decision:
            claimed = asdict(claimed_decision(entry.sealed))
            expected = {"kind": entry.kind, "study": entry.study, "by": entry.who, "why": entry.what, "at": entry.at}
            if not expected.items() <= claimed.items():
                raise broken_at(place)
        return entry


def broken_at(place: int) -> LedgerError:
    """Return the error for a line that is not as it was written."""
    return LedgerError(
        problem=f"The audit log was changed at line {place + 1}: the line was changed, removed or inserted",
        hint="restore the audit log from a backup; until then the site does not answer.",
    )
