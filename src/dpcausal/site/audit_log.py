"""What happened at a site: who decided what about which study, who asked, and what was said."""

import errno
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
from dpcausal.federation.protocol import digest_of_text
from dpcausal.plain_text import check_plain_text

AUDIT_LOG = "audit_log.jsonl"

Kind = Literal["approve", "reject", "answer"]
StudyStatus = Literal["approved", "rejected", "undecided"]


@dataclass(frozen=True)
class LogEntry:
    """One thing that happened.

    Attributes:
        kind: A decision, or an answer to a request.
        study: The digest of the study.
        who: Who decided, or who asked.
        what: What was said about it: a reason, or the request and the code of the answer.
        at: When.
        previous: The digest of the line before.
        digest: The digest of all of the above.
    """

    kind: Kind
    study: str
    who: str
    what: str
    at: str
    previous: str
    digest: str

    @classmethod
    def after(cls, previous: str, kind: Kind, study: str, who: str, what: str) -> "LogEntry":
        """The line that follows one with this digest.

        Of an answer only the day is written down: the time between two would tell how long the table took to read.
        """
        now = datetime.now(UTC)
        at = now.date().isoformat() if kind == "answer" else now.isoformat(timespec="seconds")
        parts = (kind, study, who, what, at, previous)
        return cls(*parts, _digest(*parts))

    @property
    def whole(self) -> bool:
        """Whether the line is what its digest was made from."""
        *parts, digest = asdict(self).values()
        return bool(digest == _digest(*parts))


class AuditLog:
    """The audit log of a site: one file of JSON lines that only grows, each holding the digest of the one before it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, kind: Kind, study: str, who: str, what: str) -> None:
        """Add a line, durably.

        Raises:
            LedgerError: If the disk does not take it.
            StudyError: If a text holds control characters, which would act on the terminal of whoever reads it.
        """
        check_plain_text("who decides, and why", [who, what], StudyError)
        with redact_errors(OSError, instead=self._unwritten), self._locked() as descriptor:
            lines = deque(self._lines(), maxlen=1)
            os.ftruncate(descriptor, self._whole_size())
            line = LogEntry.after(lines[0].digest if lines else "", kind, study, who, what)
            text = (json.dumps(asdict(line), sort_keys=True) + "\n").encode()
            if os.write(descriptor, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)

    def _unwritten(self, error: Exception) -> LedgerError:
        return LedgerError(
            expected=f"an audit log that can be written: {self._file}",
            got=getattr(error, "strerror", None) or type(error).__name__,
            hint="make room on the disk, or check whose file it is, and try again: what is not in the audit log did not "
            "take place.",
        )

    def lines(self) -> tuple[LogEntry, ...]:
        """All lines, verified."""
        with self._locked():
            return tuple(self._lines())

    def status(self, study: str, approvals: int) -> StudyStatus:
        """What was decided about a study: each person's last word counts, and one who rejects it stops it."""
        words = {line.who: line.kind for line in self.lines() if line.study == study and line.kind != "answer"}
        if "reject" in words.values():
            return "rejected"
        return "approved" if len(words) >= approvals else "undecided"

    @contextmanager
    def _locked(self) -> Iterator[int]:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _whole_size(self) -> int:
        """How much of the file is whole lines: a power cut may leave half of one at the end, which never counted."""
        return self._file.read_bytes().rfind(b"\n") + 1

    def _lines(self) -> Iterator[LogEntry]:
        previous = ""
        for place, text in enumerate(self._file.read_bytes()[: self._whole_size()].splitlines()):
            try:
                line = LogEntry(**json.loads(text))
            except (ValueError, TypeError):
                raise _broken_at(place) from None
            if line.previous != previous or not line.whole:
                raise _broken_at(place)
            previous = line.digest
            yield line


def _digest(*parts: str) -> str:
    return digest_of_text(json.dumps(parts))


def _broken_at(place: int) -> LedgerError:
    return LedgerError(
        expected=f"an unbroken audit log at line {place + 1}",
        got="a line that was changed, removed or put in later",
        hint="restore the site's audit log from a copy; the site does not answer before.",
    )
