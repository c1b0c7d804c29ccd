"""What a console stores between two pages: sessions, failed logins, and when the ledger was last verified."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpcausal.errors import LedgerError, redact_errors

_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY, content TEXT NOT NULL, known INTEGER NOT NULL, made REAL NOT NULL, used REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS confirmations (token TEXT PRIMARY KEY, study TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS browsers (token TEXT PRIMARY KEY, account TEXT NOT NULL, made REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failed_logins (
    at REAL NOT NULL, account TEXT NOT NULL, address TEXT NOT NULL, browser TEXT NOT NULL
);
DROP TABLE IF EXISTS failures;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, text TEXT NOT NULL, at REAL NOT NULL);
"""
_ANONYMOUS_SECONDS = 600.0
_MOST_ANONYMOUS = 1_000
WINDOW_SECONDS = 900.0
"""Failed logins count for so long."""
BROWSER_SECONDS = 180 * 86_400.0
"""A browser in which a person logged in is known for so long."""
CONFIRMED_SECONDS = 300.0
"""Whoever confirmed a login may decide about one study for so long."""
_MOST_FAILURES = {"browser": 5, "pair": 5, "address": 20, "account": 50}
_MOST_LOGGED_FAILURES = 100


@dataclass(frozen=True)
class Note:
    """A remark of the console to itself.

    Attributes:
        at: When it was made, in seconds.
    """

    text: str
    at: float

    @property
    def time(self) -> str:
        """When it was made, for people."""
        return datetime.fromtimestamp(self.at, UTC).isoformat(" ", timespec="minutes")[:16]


class State:
    """One SQLite file, and beside it the log of logins.

    Args:
        idle: Seconds after which an unused session ends.
        absolute: Seconds after which a session ends in any case.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, folder: Path, *, idle: float = 900.0, absolute: float = 28_800.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._file, self._log = folder / "console.db", folder / "console_log.jsonl"
        self._idle, self._absolute, self.clock = idle, absolute, clock
        with redact_errors(OSError, instead=self._unusable):
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        with self._connection() as connection:
            connection.executescript(_TABLES)

    def session(self, token: str) -> dict[str, Any] | None:
        """Return the content of a session that has not ended, and note that it was used."""
        now = self.clock()
        with self._connection() as connection:
            self._remove_ended(connection, now)
            found = connection.execute("SELECT content FROM sessions WHERE token = ?", (_hashed(token),)).fetchone()
            if found is None:
                return None
            connection.execute("UPDATE sessions SET used = ? WHERE token = ?", (now, _hashed(token)))
        content: dict[str, Any] = json.loads(found[0])
        return content

    def store_session(self, token: str, content: dict[str, Any], *, known: bool) -> None:
        """Store a session; `known` says whether somebody logged in. One that was given a new token ends no later."""
        now = self.clock()
        with self._connection() as connection:
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?) ON CONFLICT (token) DO UPDATE SET "
                "content = excluded.content, known = excluded.known, used = excluded.used",
                (_hashed(token), json.dumps(content), known, content.get("began", now), now),
            )
            connection.execute(  # strangers cannot fill the disk
                "DELETE FROM sessions WHERE known = 0 AND token NOT IN "
                "(SELECT token FROM sessions WHERE known = 0 ORDER BY made DESC LIMIT ?)",
                (_MOST_ANONYMOUS,),
            )

    def remove_session(self, token: str) -> None:
        """End a session."""
        with self._connection() as connection:
            connection.execute("DELETE FROM sessions WHERE token = ?", (_hashed(token),))

    def _remove_ended(self, connection: sqlite3.Connection, now: float) -> None:
        connection.execute(
            "DELETE FROM sessions WHERE used < ? OR made < ? OR (known = 0 AND made < ?)",
            (now - self._idle, now - self._absolute, now - _ANONYMOUS_SECONDS),
        )

    def confirm(self, token: str, study: str) -> None:
        """Record that the person of a session confirmed the login for a decision about a study."""
        now = self.clock()
        with self._connection() as connection:
            connection.execute("DELETE FROM confirmations WHERE at < ?", (now - CONFIRMED_SECONDS,))
            connection.execute("INSERT OR REPLACE INTO confirmations VALUES (?, ?, ?)", (_hashed(token), study, now))

    def is_confirmed(self, token: str, study: str) -> bool:
        """Return whether the person of a session may decide about a study now."""
        with self._connection() as connection:
            found = connection.execute(
                "SELECT 1 FROM confirmations WHERE token = ? AND study = ? AND at >= ?", self._confirmed(token, study)
            )
            return found.fetchone() is not None

    def take_confirmation(self, token: str, study: str) -> bool:
        """Return whether the person of a session may decide about a study now; one of several callers at once may."""
        with self._connection() as connection:
            removed = connection.execute(
                "DELETE FROM confirmations WHERE token = ? AND study = ? AND at >= ?", self._confirmed(token, study)
            )
            return removed.rowcount == 1

    def _confirmed(self, token: str, study: str) -> tuple[str, str, float]:
        return _hashed(token), study, self.clock() - CONFIRMED_SECONDS

    def know_browser(self, account: str, token: str) -> None:
        """Record that a person logged in with this browser."""
        now = self.clock()
        with self._connection() as connection:
            connection.execute("DELETE FROM browsers WHERE made < ?", (now - BROWSER_SECONDS,))
            connection.execute("INSERT OR REPLACE INTO browsers VALUES (?, ?, ?)", (_hashed(token), account, now))

    def known_browser(self, account: str, token: str) -> str:
        """Return what is stored of the token of a browser in which this person logged in before; empty for another."""
        wanted = (_hashed(token), account, self.clock() - BROWSER_SECONDS)
        with self._connection() as connection:
            found = connection.execute(
                "SELECT token FROM browsers WHERE token = ? AND account = ? AND made >= ?", wanted
            ).fetchone()
        return str(found[0]) if found else ""

    def is_limited(self, account: str, address: str, browser: str) -> bool:
        """Return whether too many logins failed.

        In a browser that the account's owner used before, only failures in this browser count, so that nobody else can
        lock the owner out. Elsewhere those count of the account from this address, from this address, and of the
        account, in browsers that are not known.
        """
        with self._connection() as connection:
            connection.execute("DELETE FROM failed_logins WHERE at < ?", (self.clock() - WINDOW_SECONDS,))
            counts = connection.execute(
                "SELECT total(browser = :browser), total(account = :account AND address = :address), "
                "total(address = :address), total(account = :account) FROM failed_logins "
                "WHERE (browser = '') = (:browser = '')",
                {"account": account, "address": address, "browser": browser},
            ).fetchone()
        if browser:
            return bool(counts[0] >= _MOST_FAILURES["browser"])
        limits = (_MOST_FAILURES[what] for what in ("pair", "address", "account"))
        return any(count >= limit for count, limit in zip(counts[1:], limits, strict=True))

    def count_failure(self, account: str, address: str, browser: str) -> None:
        """Record a failed login."""
        with self._connection() as connection:
            connection.execute(
                "INSERT INTO failed_logins VALUES (?, ?, ?, ?)", (self.clock(), account, address, browser)
            )

    def forget_failures(self, account: str, address: str) -> None:
        """Forget the failed logins of an account from an address, after one that succeeded."""
        with self._connection() as connection:
            connection.execute("DELETE FROM failed_logins WHERE account = ? AND address = ?", (account, address))

    def note(self, name: str, text: str) -> None:
        """Store a remark in place of the one before."""
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (name, text, self.clock()))

    def noted(self, name: str) -> Note | None:
        """Return a remark, if there is one."""
        with self._connection() as connection:
            found = connection.execute("SELECT text, at FROM notes WHERE name = ?", (name,)).fetchone()
        return Note(*found) if found else None

    def log(self, event: str, who: str, address: str, detail: str = "") -> None:
        """Append a line to the log of logins.

        Of failures, the first hundred of a day are listed; a last line says that more are not.
        """
        day = datetime.fromtimestamp(self.clock(), UTC).date().isoformat()
        if event == "failed login":
            counted = self.noted("failures listed")
            listed = int(counted.text.partition(" ")[2]) if counted and counted.text.startswith(day) else 0
            if listed > _MOST_LOGGED_FAILURES:
                return
            self.note("failures listed", f"{day} {listed + 1}")
            if listed == _MOST_LOGGED_FAILURES:
                event, who, address, detail = "more failed logins", "", "", "further ones of this day are not listed"
        at = datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds")
        line = json.dumps({"at": at, "event": event, "who": who, "from": address, "detail": detail}) + "\n"
        with redact_errors(OSError, instead=self._unusable):
            descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def logged(self, most: int) -> list[dict[str, str]]:
        """Return the last lines of the log of logins, the latest first."""
        if not self._log.exists():
            return []
        lines = self._log.read_bytes().splitlines()[-most:]
        return [json.loads(line) for line in reversed(lines)]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with (
            redact_errors(sqlite3.Error, instead=self._unusable),
            closing(sqlite3.connect(self._file, timeout=30.0)) as connection,
            connection,
        ):
            yield connection

    def _unusable(self, error: Exception) -> LedgerError:
        return LedgerError(
            problem="The files of the console, console.db and console_log.jsonl, cannot be read or written "
            f"({type(error).__name__})",
            hint="check the owner of the folder and the space on the disk.",
        )


def _hashed(token: str) -> str:
    """Return what is stored of a token: whoever reads the file cannot use it."""
    return hashlib.sha256(token.encode()).hexdigest()
