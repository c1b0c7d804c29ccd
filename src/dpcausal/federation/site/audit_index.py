"""The index of a site's audit log: how far it was verified, where the decisions are, and how many requests were forged.

It makes reading quick, and it tells a log that was cut or rewritten: the log must go on where the index ends.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS head (one INTEGER PRIMARY KEY, size INTEGER, digest TEXT, seen TEXT);
CREATE TABLE IF NOT EXISTS decisions (study TEXT, place INTEGER);
CREATE INDEX IF NOT EXISTS decisions_by_study ON decisions (study);
CREATE TABLE IF NOT EXISTS forged (day TEXT PRIMARY KEY, number INTEGER);
"""


@dataclass(frozen=True)
class Head:
    """How far a log was verified.

    Attributes:
        digest: The digest of the last entry; empty where there is none.
        seen: The file's number, time of change and size when it was verified.
    """

    size: int = 0
    digest: str = ""
    seen: str = ""


def seen(descriptor: int) -> str:
    """Return what changes whenever an open file is written to or replaced."""
    state = os.fstat(descriptor)
    return f"{state.st_ino} {state.st_mtime_ns} {state.st_size}"


class AuditIndex:
    """A small database beside an audit log. Use it only while the log is locked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return self.file.exists()

    def head(self) -> Head:
        """Return how far the log was verified."""
        with self._opened() as database:
            found = database.execute("SELECT size, digest, seen FROM head").fetchone()
        return Head(*found) if found else Head()

    def extend(self, head: Head, decisions: list[tuple[str, int]]) -> None:
        """Record that the log was verified this far, with the places in bytes of decisions, by their studies.

        Places of other changes are recorded by their kinds.
        """
        with self._opened() as database:
            database.executemany("INSERT INTO decisions VALUES (?, ?)", decisions)
            database.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", (head.size, head.digest, head.seen))

    def places(self, study: str) -> list[int]:
        """Return the places of the decisions about a study, or of the changes of a kind, in order."""
        with self._opened() as database:
            found = database.execute("SELECT place FROM decisions WHERE study = ? ORDER BY place", (study,)).fetchall()
        return [place for (place,) in found]

    def studies(self) -> frozenset[str]:
        """Return the studies about which anything was decided."""
        with self._opened() as database:
            found = database.execute("SELECT DISTINCT study FROM decisions WHERE length(study) = 64").fetchall()
        return frozenset(study for (study,) in found)

    def count_forged(self, day: str) -> int:
        """Count one more forged request of a day, and return their number."""
        with self._opened() as database:
            database.execute("INSERT INTO forged VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1", (day,))
            return int(database.execute("SELECT number FROM forged WHERE day = ?", (day,)).fetchone()[0])

    def forged(self) -> dict[str, int]:
        """Return the number of forged requests of each day."""
        with self._opened() as database:
            return dict(database.execute("SELECT day, number FROM forged ORDER BY day").fetchall())

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the database, create it if it is absent, and commit at the end. Only its owner can read it."""
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
        with contextlib.closing(sqlite3.connect(self.file)) as database, database:
            database.executescript(_TABLES)
            yield database
