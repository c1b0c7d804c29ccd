"""What a coordinator asked and what it believed, in one SQLite file that only grows."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dpcausal.errors import LedgerError, redact_errors

_TABLES = """
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, study TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attempts (request TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    place INTEGER PRIMARY KEY, request TEXT NOT NULL, site TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of ON messages (request, site);
"""


class Requests:
    """Requests and believed messages, each durable before anything is made of it. Nothing is ever taken out.

    A coordinator may be killed at any point: each call is one transaction, on the disk before it returns.

    Args:
        file: Where they are kept; `:memory:` for a table that forgets.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = str(file)
        with self._told():
            self._connection = sqlite3.connect(self._file, timeout=60.0, isolation_level=None)
            weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_TABLES)

    def keep(self, request: str, study: str, text: str) -> None:
        """Write a request down: its id, the digest of its study, and its sealed text."""
        with self._told():
            self._connection.execute(
                "INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?)", (request, study, text, _now())
            )

    def count(self, request: str) -> None:
        """Write down that a request is about to be sent."""
        with self._told():
            self._connection.execute("INSERT INTO attempts VALUES (?, ?)", (request, _now()))

    def attempts(self, request: str) -> int:
        """How often a request was sent."""
        return len(self._found("SELECT 1 FROM attempts WHERE request = ?", request))

    def accept(self, request: str, site: str, text: str) -> None:
        """Write down a message that was believed."""
        entry = (request, site, text, _now())
        with self._told():
            self._connection.execute("INSERT INTO messages (request, site, text, at) VALUES (?, ?, ?, ?)", entry)

    def messages(self, request: str) -> list[tuple[str, ...]]:
        """Who said what to a request, in the order in which it was believed."""
        return self._found("SELECT site, text FROM messages WHERE request = ? ORDER BY place", request)

    def said(self, study: str, site: str) -> list[str]:
        """All that a site said about a study, in order."""
        command = (
            "SELECT messages.text FROM messages JOIN requests ON requests.id = messages.request "
            "WHERE requests.study = ? AND messages.site = ? ORDER BY messages.place"
        )
        return [text for (text,) in self._found(command, study, site)]

    def _found(self, command: str, *parts: str) -> list[tuple[str, ...]]:
        with self._told():
            return self._connection.execute(command, parts).fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        with redact_errors(sqlite3.Error, instead=self._unusable):
            yield

    def _unusable(self, error: Exception) -> LedgerError:
        return LedgerError(
            expected="a file for requests that can be read and written",
            got=f"{self._file} ({error})",
            hint="see that its folder exists, that the disk is not full, and that it is a file that dpcausal made.",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
