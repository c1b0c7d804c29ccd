"""The coordinator's store of requests and valid messages: one append-only SQLite file."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dpcausal.errors import LedgerError, redact_errors

FORMAT = 1
"""The version of the format of the store."""

_TABLES = """
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, study TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attempts (request TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    place INTEGER PRIMARY KEY, request TEXT NOT NULL, site TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of ON messages (request, site);
"""


class Requests:
    """Requests and valid messages, each on disk before it is used. Nothing is ever deleted.

    A coordinator may be killed at any point: each call is one transaction, on disk before it returns.

    Args:
        file: The file of the store; `:memory:` to store nothing on disk.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = str(file)
        with self._structured_errors():
            # Python may collect the store, and so close it, in another thread than the one that opened it.
            self._connection = sqlite3.connect(self._file, timeout=60.0, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_TABLES)

    def store(self, request: str, study: str, text: str) -> None:
        """Store a request: its id, the digest of its study, and its signed text, with its last deadline."""
        command = "INSERT INTO requests VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET text = excluded.text"
        with self._structured_errors():
            self._connection.execute(command, (request, study, text, _now()))

    def count(self, request: str) -> None:
        """Record that a request is about to be sent."""
        with self._structured_errors():
            self._connection.execute("INSERT INTO attempts VALUES (?, ?)", (request, _now()))

    def attempts(self, request: str) -> int:
        """Return the number of times a request was sent."""
        return len(self._found("SELECT 1 FROM attempts WHERE request = ?", request))

    def accept(self, request: str, site: str, text: str) -> None:
        """Store a valid message."""
        entry = (request, site, text, _now())
        with self._structured_errors():
            self._connection.execute("INSERT INTO messages (request, site, text, at) VALUES (?, ?, ?, ?)", entry)

    def messages(self, request: str) -> list[tuple[str, ...]]:
        """Return the sites and valid messages for a request, with the times, in the order of storing."""
        return self._found("SELECT site, text, at FROM messages WHERE request = ? ORDER BY place", request)

    def messages_of(self, study: str, site: str) -> list[str]:
        """Return all valid messages of a site about a study, in order."""
        command = (
            "SELECT text FROM messages WHERE request IN (SELECT id FROM requests WHERE study = ?) AND site = ? "
            "ORDER BY +place"  # by the index, and sorted after it: in the order of places it would read every message
        )
        return [text for (text,) in self._found(command, study, site)]

    def last_messages(self) -> dict[str, str]:
        """Return when the last valid message of each site was stored."""
        return dict(self._found("SELECT site, MAX(at) FROM messages GROUP BY site"))  # type: ignore[arg-type]

    def text(self, request: str) -> str:
        """Return the signed text of a request; empty if it was never sent."""
        found = self._found("SELECT text FROM requests WHERE id = ?", request)
        return found[0][0] if found else ""

    def texts_of(self, study: str) -> list[str]:
        """Return the signed texts of all requests about a study, the oldest first."""
        return [text for (text,) in self._found("SELECT text FROM requests WHERE study = ? ORDER BY rowid", study)]

    def asked(self) -> list[tuple[str, ...]]:
        """Return all requests, the oldest first: the id, the digest of the study, the signed text and the time."""
        return self._found("SELECT id, study, text, at FROM requests ORDER BY at, rowid")

    def _found(self, command: str, *parts: str) -> list[tuple[str, ...]]:
        with self._structured_errors():
            return self._connection.execute(command, parts).fetchall()

    @contextmanager
    def _structured_errors(self) -> Iterator[None]:
        with redact_errors(sqlite3.Error, instead=self._unusable):
            yield

    def _unusable(self, error: Exception) -> LedgerError:
        return LedgerError(
            problem=f"The file for requests cannot be read or written: {self._file} ({error})",
            hint="check that its folder exists, that the disk has room, and that dpcausal created the file.",
        )


def check_intact(file: Path) -> int:
    """Return the number of requests in a store, after checking the file."""
    with redact_errors(sqlite3.Error, instead=lambda error: _damaged(file, error)):
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=60.0)
        try:
            found = connection.execute("PRAGMA integrity_check").fetchone()[0]
            count = connection.execute("SELECT COUNT(*) FROM requests").fetchone()[0]
        finally:
            connection.close()
    if found != "ok":
        raise _damaged(file, found)
    return int(count)


def _damaged(file: Path, found: object) -> LedgerError:
    return LedgerError(
        problem=f"The store of requests is damaged: {file} ({found})"[:300],
        hint="restore the workspace from a backup with: dpcausal federation restore FILE FOLDER.",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
