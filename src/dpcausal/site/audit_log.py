"""The audit log of a site: decisions about studies, requests, and the codes of their answers."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

from dpcausal.errors import LedgerError, StudyError, redact_errors
from dpcausal.hash_chain import ChainEntry, digest_of, verify
from dpcausal.plain_text import check_plain_text
from dpcausal.site.audit_index import AuditIndex, Head, seen
from dpcausal.site.decisions import claimed_decision

AUDIT_LOG = "audit_log.jsonl"
_OLD_LOG = "diary.jsonl"
VERSION = 3
"""The version of the format. Version 3 added `sealed`, the signed decision; a decision of version 2 does not count.

Version 1 was the file diary.jsonl, with `deny` in place of `reject`.
"""
_UNSIGNED = 2
_FORGED_LINES = 10
_BLOCK = 65_536
_DIGITS = 64

Kind = Literal["approve", "reject", "answer", "forged", "people", "index"]
DECISIONS: tuple[Kind, ...] = ("approve", "reject")


@dataclass(frozen=True, kw_only=True)
class LogEntry(ChainEntry):
    """One event at a site: one line of the audit log.

    Attributes:
        version: The version of the format.
        kind: A decision, an answer to a request, requests without a valid signature, a change of the site's people,
            or a new index.
        study: The digest of the study.
        who: Who decided, or the requester.
        what: The reason of a decision; of an answer, the request and the code.
        at: The time; of an answer the day.
        sealed: The signed decision; empty in other entries.
    """

    version: int
    kind: Kind
    study: str
    who: str
    what: str
    at: str
    sealed: str = ""

    @property
    def is_intact(self) -> bool:
        """Whether the digest is that of all other fields. Version 2 has no field `sealed`."""
        absent = ("digest", "sealed") if self.version == _UNSIGNED else ("digest",)
        return self.digest == digest_of({name: value for name, value in vars(self).items() if name not in absent})

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
        return self.kind in DECISIONS and self.version != _UNSIGNED


class AuditLog:
    """An append-only file of JSON lines, each of which holds the digest of the line before it.

    A line is appended after the last one without reading the others again, as long as the file is the one that the
    index was made from. Any other change has the whole log verified first.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._index = AuditIndex(file.with_suffix(".index"))
        old = file.with_name(_OLD_LOG)
        if old.exists():
            raise LedgerError(
                expected=f"decisions in {file.name}, in the format of this version",
                got=f"a file {old.name} of an older version beside it",
                hint="its approvals and rejections do not count any more: move it away, and decide again.",
            )

    def write(self, kind: Literal["answer", "people"], study: str, who: str, what: str) -> None:
        """Append an entry, durably.

        Of an answer only the day is written: the time between two would reveal how long reading the table took.

        Raises:
            LedgerError: If the entry cannot be written.
            StudyError: If a text holds control characters, which would act on the terminal of whoever reads it.
        """
        now = datetime.now(UTC)
        at = now.date().isoformat() if kind == "answer" else now.isoformat(timespec="seconds")
        with self._locked() as descriptor:
            self._append(descriptor, kind=kind, study=study, who=who, what=what, at=at, sealed="")

    def record(self, sealed: str) -> None:
        """Append a signed decision, durably. Its signature was verified before, and is again whenever it is counted.

        Raises:
            LedgerError: If the entry cannot be written.
            StudyError: If the text does not hold a decision.
        """
        decision = claimed_decision(sealed)
        with self._locked() as descriptor:
            self._append(
                descriptor,
                kind=decision.kind,
                study=decision.study,
                who=decision.by,
                what=decision.why,
                at=decision.at,
                sealed=sealed,
            )

    def write_forged(self, who: str, what: str) -> None:
        """Record a request without a valid signature: ten lines a day, then one whenever their number has doubled."""
        day = datetime.now(UTC).date().isoformat()
        with self._locked() as descriptor:
            self._head(descriptor)
            number = self._index.count_forged(day)
            if number <= _FORGED_LINES:
                self._append(descriptor, kind="forged", study="", who=who, what=what, at=day, sealed="")
            elif number % _FORGED_LINES == 0 and (number // _FORGED_LINES).bit_count() == 1:
                total = f"{number} requests without a valid signature on this day so far"
                self._append(descriptor, kind="forged", study="", who="", what=total, at=day, sealed="")

    def forged(self) -> dict[str, int]:
        """Return the number of requests without a valid signature, by day."""
        with self._locked() as descriptor:
            self._head(descriptor)
            return self._index.forged()

    def entries(self) -> tuple[LogEntry, ...]:
        """Return all entries, verified.

        Raises:
            LedgerError: If the log cannot be read, or an entry was changed, removed or inserted.
        """
        return tuple(self.stream())

    def stream(self) -> Iterator[LogEntry]:
        """Yield all entries, each after it was verified; the log is not locked meanwhile.

        Raises:
            LedgerError: If the log cannot be read, or an entry was changed, removed or inserted.
        """
        with self._locked() as descriptor:
            head = self._head(descriptor)
        with redact_errors(OSError, instead=self._failed), self._file.open("rb") as file:
            last = ""
            for entry, _ in _verified(file, head.size):
                last = entry.digest
                yield entry
        if last != head.digest:
            raise self._cut()

    def decisions(self, study: str) -> tuple[LogEntry, ...]:
        """Return the signed decisions about a study, in order.

        Raises:
            LedgerError: If the log cannot be read, or an entry was changed, removed or inserted.
        """
        with self._locked() as descriptor:
            self._head(descriptor)
            with self._file.open("rb") as file:
                return tuple(self._at(file, place, study) for place in self._index.places(study))

    def decided(self) -> frozenset[str]:
        """Return the studies about which anything was decided."""
        with self._locked() as descriptor:
            self._head(descriptor)
            return self._index.studies()

    def rebuild_index(self, who: str) -> None:
        """Make the index anew from the log, and record that: what was cut off the log before is not noticed any more.

        Raises:
            LedgerError: If the log cannot be read, or an entry was changed, removed or inserted.
        """
        check_plain_text("who rebuilds the index", [who], StudyError)
        with self._locked() as descriptor:
            self._index.file.unlink(missing_ok=True)
            self._verify_from_start(descriptor, Head())
            at = datetime.now(UTC).isoformat(timespec="seconds")
            what = "made the index anew: entries cut off before this line would not be noticed"
            self._append(descriptor, kind="index", study="", who=who, what=what, at=at, sealed="")

    def _append(self, descriptor: int, **content: str) -> None:
        """Append an entry to the locked log."""
        check_plain_text("who decides, and why", [content["who"], content["what"]], StudyError)
        head = self._head(descriptor)
        linked: dict[str, object] = content | {"version": VERSION, "previous": head.digest}
        digest = digest_of(linked)
        text = (json.dumps(linked | {"digest": digest}, sort_keys=True) + "\n").encode()
        os.ftruncate(descriptor, head.size)  # drops the partial line that a power cut left
        try:
            if os.write(descriptor, text) < len(text):
                raise self._unusable("no space left on device")
            os.fsync(descriptor)
            grown = Head(head.size + len(text), digest, seen(descriptor))
            self._index.extend(grown, [(content["study"], head.size)] if content["sealed"] else [])
        except (OSError, sqlite3.Error, LedgerError):  # who is told of a failure must not find the entry later
            os.ftruncate(descriptor, head.size)
            raise

    def _head(self, descriptor: int) -> Head:
        """Return how far the locked log goes, after verifying what changed since the index was written."""
        if not self._index.exists and self._is_signed(descriptor):
            raise LedgerError(
                expected=f"the index of the audit log: {self._index.file}",
                got="no such file",
                hint="restore it from a backup together with the audit log. If it is lost, read the audit log, and "
                "make an index with: dpcausal site audit-log FOLDER --rebuild-index.",
            )
        head = self._index.head()
        return head if head.seen == seen(descriptor) else self._verify_from_start(descriptor, head)

    def _verify_from_start(self, descriptor: int, head: Head) -> Head:
        size, digest, decisions, reached = 0, "", list[tuple[str, int]](), head.size == 0
        with self._file.open("rb") as file:
            for entry, end in _verified(file, _complete_size(descriptor)):
                if entry.is_decision and size >= head.size:
                    decisions.append((entry.study, size))
                size, digest = end, entry.digest
                reached = reached or (size, digest) == (head.size, head.digest)
        if not reached:
            raise self._cut()
        grown = Head(size, digest, seen(descriptor))
        self._index.extend(grown, decisions)
        return grown

    def _at(self, file: BinaryIO, place: int, study: str) -> LogEntry:
        file.seek(place)
        entry = _entry(0, file.readline())
        if not (entry.is_intact and entry.is_decision and entry.study == study):
            raise self._cut()
        return entry

    def _is_signed(self, descriptor: int) -> bool:
        """Return whether the log has an entry of this version: such an entry never stands before an older one."""
        size = _complete_size(descriptor)
        start = _last_line(descriptor, size)
        return size > 0 and _entry(0, os.pread(descriptor, size - start, start)).version == VERSION

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with redact_errors(OSError, sqlite3.Error, instead=self._failed):
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)

    def _failed(self, error: Exception) -> LedgerError:
        words = str(error) if isinstance(error, sqlite3.Error) else getattr(error, "strerror", None)
        return self._unusable(words or type(error).__name__)

    def _unusable(self, reason: str) -> LedgerError:
        return LedgerError(
            expected=f"a readable and writable audit log: {self._file}",
            got=reason,
            hint="free disk space or check the owner of the file, and try again. An event that is not in the audit log "
            "has no effect.",
        )

    def _cut(self) -> LedgerError:
        return LedgerError(
            expected=f"an audit log that goes on where its index ends: {self._file}",
            got="a log that was cut or rewritten",
            hint="restore the audit log from a backup; until then the site does not answer.",
        )


def _verified(file: BinaryIO, size: int) -> Iterator[tuple[LogEntry, int]]:
    """Yield the entries in the first bytes of a log, each after it was verified, with the place where its line ends."""
    ends = list[int]()

    def lines() -> Iterator[LogEntry]:
        end = 0
        for place, line in enumerate(file):
            end += len(line)
            if end > size:
                return
            ends[:] = [end]
            yield _entry(place, line)

    for entry in verify(lines(), _broken_at):
        yield entry, ends[0]


def _complete_size(descriptor: int) -> int:
    """Return the size of all complete lines: after a power cut, a partial line at the end does not count."""
    return _after_newline(descriptor, os.fstat(descriptor).st_size)


def _last_line(descriptor: int, size: int) -> int:
    """Return where the last of the complete lines begins."""
    return _after_newline(descriptor, max(size - 1, 0))


def _after_newline(descriptor: int, end: int) -> int:
    """Return the place after the last line break before `end`, reading from there backwards; 0 if there is none."""
    while end > 0:
        start = max(end - _BLOCK, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _entry(place: int, line: bytes) -> LogEntry:
    """Read one line."""
    with redact_errors(ValueError, TypeError, RecursionError, StudyError, instead=lambda _: _broken_at(place)):
        document = json.loads(line)
        version = document.get("version", 1) if isinstance(document, dict) else None
        if type(version) is int and version not in (VERSION, _UNSIGNED):
            raise _other_version(place, version)
        entry = LogEntry(**document)
        if not all(isinstance(value, str) for name, value in document.items() if name != "version"):
            raise _broken_at(place)
        if (entry.kind in DECISIONS and version == VERSION) != bool(entry.sealed):
            raise _broken_at(place)
        if entry.sealed:
            claimed = asdict(claimed_decision(entry.sealed))
            expected = {"kind": entry.kind, "study": entry.study, "by": entry.who, "why": entry.what, "at": entry.at}
            if not expected.items() <= claimed.items():
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
        "to reject; version 3 added signatures: move the old file away, and approve studies again.",
    )
