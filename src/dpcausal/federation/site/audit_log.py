"""The audit log of a site: decisions about studies, requests, and the codes of their answers."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dpcausal.errors import LedgerError, StudyError, redact_errors
from dpcausal.federation.site.audit_index import AuditIndex, Head, seen
from dpcausal.federation.site.decisions import claimed_decision
from dpcausal.federation.site.log_entry import CHANGES, VERSION, LogEntry, broken_at, read_entry
from dpcausal.federation.site.signed_changes import Signer
from dpcausal.utils.durable_files import locked
from dpcausal.utils.hash_chain import digest_of, verify
from dpcausal.utils.plain_text import check_plain_text

AUDIT_LOG = "audit_log.jsonl"
_FORGED_LINES = 10
_BLOCK = 65_536


class AuditLog:
    """An append-only file of JSON lines, each of which holds the digest of the line before it.

    A line is appended after the last one without reading the others again, as long as the file is the one that the
    index was made from. Any other change has the whole log verified first. Where an entry was changed, removed or
    inserted, or the log cannot be read, every method raises a LedgerError.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._index = AuditIndex(file.with_suffix(".index"))

    def write(
        self,
        kind: Literal["answer", "withdraw", "people", "key", "confirm", "restore"],
        study: str,
        who: str,
        what: str,
        signer: Signer | None = None,
    ) -> None:
        """Append an entry, durably, with the signature of whoever makes a change.

        Of an answer only the day is written: the time between two would reveal how long reading the table took. Of a
        restore it is written as precisely as that of a decision.

        Raises:
            LedgerError: If the entry cannot be written.
            StudyError: If a text holds control characters, which would act on the terminal of whoever reads it.
        """
        now = datetime.now(UTC)
        precision = "microseconds" if kind == "restore" else "seconds"
        at = now.date().isoformat() if kind == "answer" else now.isoformat(timespec=precision)
        with self._locked() as descriptor:
            previous = self._head(descriptor).digest
            sealed = signer.sign(kind=kind, who=who, what=what, at=at, previous=previous) if signer else ""
            self._append(descriptor, kind=kind, study=study, who=who, what=what, at=at, sealed=sealed)

    def record(self, sealed: str) -> None:
        """Append a signed decision, durably. Its signature was verified before, and is again whenever it is counted."""
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
        """Return all entries, verified."""
        return tuple(self.stream())

    def stream(self) -> Iterator[LogEntry]:
        """Yield all entries, each after it was verified; the log is not locked meanwhile."""
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
        """Return the signed decisions about a study, in order."""
        return tuple(entry for entry in self._entries(study) if entry.is_decision)

    def is_withdrawn(self, study: str) -> bool:
        """Return whether the requester of a study withdrew it."""
        return any(entry.kind == "withdraw" for entry in self._entries(study))

    def counting(self, study: str) -> tuple[LogEntry, ...]:
        """Return the signed decisions about a study that may count, in order: approvals only since the last restore."""
        with self._locked() as descriptor:
            self._head(descriptor)
            last = max(self._index.places("restore"), default=None)
            with self._file.open("rb") as file:
                entries = {place: self._at(file, place, study) for place in self._index.places(study)}
                restore = None if last is None else self._at(file, last, "restore")
        found = {place: entry for place, entry in entries.items() if entry.is_decision}
        if last is None or restore is None:
            return tuple(found.values())
        # By its place and by its time: an approval that was lost could be recorded again after the restore.
        return tuple(
            entry
            for place, entry in found.items()
            if entry.kind == "reject" or (place > last and entry.time > restore.time)
        )

    def last(self, kind: Literal["restore", "key"]) -> LogEntry | None:
        """Return the last line that confirmed a restored site, or a rotation of its key; None where there is none."""
        found = self._entries(kind)
        return found[-1] if found else None

    def people(self) -> tuple[LogEntry, ...]:
        """Return the lines about people and the console, in order."""
        return self._entries("people")

    def end(self) -> dict[str, int | str]:
        """Return where the log ends: its size in bytes, and the digest of its last entry."""
        if not self._file.exists():
            return {"size": 0, "digest": ""}
        with self._locked() as descriptor:
            head = self._head(descriptor)
            return {"size": head.size, "digest": head.digest}

    def holds(self, size: int, digest: str) -> bool:
        """Return whether the log ends so, or did before it grew."""
        if not self._file.exists():
            return size == 0
        with self._locked() as descriptor:
            if self._head(descriptor).size < size:
                return False
            start = _after_newline(descriptor, max(size - 1, 0))  # of the last complete line
            try:
                return (read_entry(0, os.pread(descriptor, size - start, start)).digest if size else "") == digest
            except LedgerError:  # no line ends there
                return False

    def has_changes_after(self, size: int) -> bool:
        """Return whether people or settings were changed after the log had this size."""
        if not self._file.exists():
            return False
        with self._locked() as descriptor:
            self._head(descriptor)
            return any(place >= size for kind in CHANGES for place in self._index.places(kind))

    def decided(self) -> frozenset[str]:
        """Return the studies about which anything was decided, also by a withdrawal."""
        with self._locked() as descriptor:
            self._head(descriptor)
            return self._index.studies()

    def rebuild_index(self, who: str) -> None:
        """Make the index anew from the log, and record that: what was cut off before is not noticed any more."""
        check_plain_text("who rebuilds the index", [who], StudyError)
        with self._locked() as descriptor:
            self._index.file.unlink(missing_ok=True)
            self._verify_from_start(descriptor, Head())
            at = datetime.now(UTC).isoformat(timespec="seconds")
            what = "made the index anew: entries cut off before this line would not be noticed"
            self._append(descriptor, kind="index", study="", who=who, what=what, at=at, sealed="")

    def _entries(self, topic: str) -> tuple[LogEntry, ...]:
        """Return the entries under a topic of the index, in order."""
        with self._locked() as descriptor:
            self._head(descriptor)
            with self._file.open("rb") as file:
                return tuple(self._at(file, place, topic) for place in self._index.places(topic))

    def _append(self, descriptor: int, **content: str) -> None:
        """Append an entry to the locked log."""
        check_plain_text("who decides, and why", [content["who"], content["what"]], StudyError)
        head = self._head(descriptor)
        linked: dict[str, Any] = content | {"version": VERSION, "previous": head.digest}
        entry = LogEntry(**linked, digest=digest_of(linked))
        text = (json.dumps(vars(entry), sort_keys=True) + "\n").encode()
        os.ftruncate(descriptor, head.size)  # drops the partial line that a power cut left
        try:
            if os.write(descriptor, text) < len(text):
                raise self._unusable("no space left on device")
            os.fsync(descriptor)
            grown = Head(head.size + len(text), entry.digest, seen(descriptor))
            self._index.extend(grown, [(entry.topic, head.size)] if entry.topic else [])
        except (OSError, sqlite3.Error, LedgerError):  # who is told of a failure must not find the entry later
            os.ftruncate(descriptor, head.size)
            raise

    def _head(self, descriptor: int) -> Head:
        """Return how far the locked log goes, after verifying what changed since the index was written."""
        if not self._index.exists and _complete_size(descriptor) > 0:
            raise LedgerError(
                problem=f"The index of the audit log is not there: {self._index.file}",
                hint="restore it from a backup together with the audit log. If it is lost, read the audit log, and "
                "make an index with: dpcausal site audit-log FOLDER --rebuild-index.",
            )
        head = self._index.head()
        return head if head.seen == seen(descriptor) else self._verify_from_start(descriptor, head)

    def _verify_from_start(self, descriptor: int, head: Head) -> Head:
        size, digest, decisions, reached = 0, "", list[tuple[str, int]](), head.size == 0
        with self._file.open("rb") as file:
            for entry, end in _verified(file, _complete_size(descriptor)):
                if entry.topic and size >= head.size:
                    decisions.append((entry.topic, size))
                size, digest = end, entry.digest
                reached = reached or (size, digest) == (head.size, head.digest)
        if not reached:
            raise self._cut()
        grown = Head(size, digest, seen(descriptor))
        self._index.extend(grown, decisions)
        return grown

    def _at(self, file: BinaryIO, place: int, topic: str) -> LogEntry:
        file.seek(place)
        entry = read_entry(0, file.readline())
        if not (entry.is_intact and entry.topic == topic):
            raise self._cut()
        return entry

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with redact_errors(OSError, sqlite3.Error, instead=self._failed), locked(self._file) as descriptor:
            yield descriptor

    def _failed(self, error: Exception) -> LedgerError:
        words = str(error) if isinstance(error, sqlite3.Error) else getattr(error, "strerror", None)
        return self._unusable(words or type(error).__name__)

    def _unusable(self, reason: str) -> LedgerError:
        return LedgerError(
            problem=f"The audit log cannot be read or written: {self._file} ({reason})",
            hint="free disk space or check the owner of the file, and try again. An event that is not in the audit log "
            "has no effect.",
        )

    def _cut(self) -> LedgerError:
        return LedgerError(
            problem=f"The audit log was cut or rewritten: {self._file}",
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
            yield read_entry(place, line)

    for entry in verify(lines(), broken_at):
        yield entry, ends[0]


def _complete_size(descriptor: int) -> int:
    """Return the size of all complete lines: after a power cut, a partial line at the end does not count."""
    return _after_newline(descriptor, os.fstat(descriptor).st_size)


def _after_newline(descriptor: int, end: int) -> int:
    """Return the place after the last line break before `end`, reading from there backwards; 0 if there is none."""
    while end > 0:
        start = max(end - _BLOCK, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
