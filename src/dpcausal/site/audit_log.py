"""The audit log of a site: decisions about studies, requests, and the codes of their answers."""

import fcntl
import json
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from dpcausal.errors import LedgerError, StudyError, redact_errors
from dpcausal.hash_chain import ChainEntry, verify
from dpcausal.plain_text import check_plain_text

AUDIT_LOG = "audit_log.jsonl"
_OLD_LOG = "diary.jsonl"
VERSION = 2
"""The version of the format. Version 1 was the file diary.jsonl, with `deny` in place of `reject`."""

Kind = Literal["approve", "reject", "answer"]
StudyStatus = Literal["approved", "rejected", "undecided"]


@dataclass(frozen=True, kw_only=True)
class LogEntry(ChainEntry):
    """One event at a site: one line of the audit log.

    Attributes:
        version: The version of the format.
        kind: A decision, or an answer to a request.
        study: The digest of the study.
        who: Who decided, or the requester.
        what: The reason of a decision; of an answer, the request and the code.
        at: The time; of an answer the day.
    """

    version: int
    kind: Kind
    study: str
    who: str
    what: str
    at: str


class AuditLog:
    """An append-only file of JSON lines, each of which holds the digest of the line before it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        old = file.with_name(_OLD_LOG)
        if old.exists():
            raise LedgerError(
                expected=f"decisions in {file.name}, in the format of this version",
                got=f"a file {old.name} of an older version beside it",
                hint="its approvals and rejections do not count any more: move it away, and decide again.",
            )

    def write(self, kind: Kind, study: str, who: str, what: str) -> None:
        """Append an entry, durably.

        Of an answer only the day is written: the time between two would reveal how long reading the table took.

        Raises:
            LedgerError: If the entry cannot be written.
            StudyError: If a text holds control characters, which would act on the terminal of whoever reads it.
        """
        check_plain_text("who decides, and why", [who, what], StudyError)
        now = datetime.now(UTC)
        at = now.date().isoformat() if kind == "answer" else now.isoformat(timespec="seconds")
        with self._locked() as descriptor:
            last = deque(self._entries(), maxlen=1)
            entry = LogEntry.append(
                last[0] if last else None, version=VERSION, kind=kind, study=study, who=who, what=what, at=at
            )
            text = (json.dumps(asdict(entry), sort_keys=True) + "\n").encode()
            os.ftruncate(descriptor, self._complete_size())
            if os.write(descriptor, text) < len(text):
                raise self._unusable("no space left on device")
            os.fsync(descriptor)

    def entries(self) -> tuple[LogEntry, ...]:
        """Return all entries, verified.

        Raises:
            LedgerError: If the log cannot be read, or an entry was changed, removed or inserted.
        """
        with self._locked():
            return tuple(self._entries())

    def status(self, study: str, approvals: int) -> StudyStatus:
        """Return what was decided about a study: each person's last decision counts, and one rejection is enough."""
        latest = {entry.who: entry.kind for entry in self.decisions(study)}
        if "reject" in latest.values():
            return "rejected"
        return "approved" if len(latest) >= approvals else "undecided"

    def decisions(self, study: str) -> tuple[LogEntry, ...]:
        """Return the decisions about a study, in order."""
        return tuple(entry for entry in self.entries() if entry.study == study and entry.kind != "answer")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with redact_errors(OSError, instead=self._failed):
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)

    def _complete_size(self) -> int:
        """Return the size of all complete lines: after a power cut, a partial line at the end does not count."""
        return self._file.read_bytes().rfind(b"\n") + 1

    def _entries(self) -> Iterator[LogEntry]:
        lines = self._file.read_bytes()[: self._complete_size()].splitlines()
        return verify((_entry(place, line) for place, line in enumerate(lines)), _broken_at)

    def _failed(self, error: Exception) -> LedgerError:
        return self._unusable(getattr(error, "strerror", None) or type(error).__name__)

    def _unusable(self, reason: str) -> LedgerError:
        return LedgerError(
            expected=f"a readable and writable audit log: {self._file}",
            got=reason,
            hint="free disk space or check the owner of the file, and try again. An event that is not in the audit log "
            "has no effect.",
        )


def _entry(place: int, line: bytes) -> LogEntry:
    """Read one line."""
    with redact_errors(ValueError, TypeError, RecursionError, instead=lambda _: _broken_at(place)):
        document = json.loads(line)
        version = document.get("version", 1) if isinstance(document, dict) else None
        if type(version) is int and version != VERSION:
            raise _other_version(place, version)
        entry = LogEntry(**document)
        if not all(isinstance(value, str) for name, value in document.items() if name != "version"):
            raise _broken_at(place)
        return entry


def _broken_at(place: int) -> LedgerError:
    return LedgerError(
        expected=f"an intact audit log at line {place + 1}",
        got="a line that was changed, removed or inserted",
        hint="restore the audit log from a backup; until then the site does not answer.",
    )


def _other_version(place: int, version: int) -> LedgerError:
    return LedgerError(
        expected=f"version {VERSION} of the audit log at line {place + 1}",
        got=f"version {version}",
        hint="this file was written by another version of dpcausal. Version 2 added the field version and renamed deny "
        "to reject: move the old file away, and approve studies again.",
    )
