"""Databases with exclusive, durable transactions: SQLite files, SQLite in memory, or PostgreSQL."""

import copy
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from dpcausal.errors import LedgerError, redact_errors

IN_MEMORY = "sqlite://"
"""The address of a database that forgets everything when its process ends."""


class Database:
    """A database with transactions that exclude each other across processes, each durable once it is left.

    Args:
        url: An SQLAlchemy address, or the name of an SQLite file. A relative one is looked for in the working folder,
            now and for good.

    Attributes:
        address: The address as it may be shown: absolute, and without a password.
        lock: On PostgreSQL, the number of the advisory lock that all databases of one kind share, or all of one name.
    """

    lock = 0x64706361  # "dpca": any number will do

    def __init__(self, url: str | Path) -> None:
        parsed = _parsed(address_of(url))
        self._is_file = parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:")
        self.forgets = parsed.get_backend_name() == "sqlite" and not self._is_file
        if self._is_file:
            parsed = parsed.set(database=str(Path(str(parsed.database)).absolute()))
        self._file = Path(str(parsed.database)) if self._is_file else None
        self.address = parsed.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        self._process = os.getpid()
        try:
            self._engine = _in_memory(_remembered(parsed)) if self.forgets else _remembered(parsed)
        except ModuleNotFoundError as error:
            raise LedgerError(
                problem=f"The driver of PostgreSQL is not installed: there is no module {error.name!r}",
                hint='pip install "dpcausal[postgres]", and write the address as "postgresql+psycopg://…".',
            ) from None
        if self.forgets:
            weakref.finalize(self, self._engine.dispose)  # it holds its connection until then

    @property
    def is_absent(self) -> bool:
        """Whether this would be a file that is not there. Of a server nobody knows before it is asked."""
        return self._file is not None and not self._file.is_file()

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """Open a transaction that excludes all others and is durable once it ends without an error."""
        if self.forgets and os.getpid() != self._process:
            raise LedgerError(
                problem="A ledger in memory was used by another process, in which it would be a second budget",
                hint="keep the ledger in a file to share it between processes.",
            )
        # The database's own error may hold an answer that was never stored, and so never released.
        with redact_errors(SQLAlchemyError, instead=self._failure), self._engine.begin() as connection:
            self.take_lock(connection)
            yield connection

    def take_lock(self, connection: Connection, lock: int | None = None) -> None:
        """Take the lock that makes a transaction exclusive; an SQLite file has one, which every transaction holds."""
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self.lock if lock is None else lock})")

    def _failure(self, error: Exception) -> LedgerError:
        if self._file is not None and not self._file.parent.is_dir():
            return LedgerError(
                problem=f"There is no folder {self._file.parent} for a ledger",
                hint="create the folder first, or correct its name.",
            )
        if self._file is not None and "is not a database" in str(error.__cause__):
            return LedgerError(
                problem=f"The file {self._file} is no ledger: a ledger is an SQLite database",
                hint="check the name of the file. If it was a ledger, it is damaged: put a copy back with dpcausal "
                "ledger restore.",
            )
        if "database is locked" in str(error.__cause__):
            return LedgerError(
                problem=f"The ledger at {self.address} is held by another program",
                hint="close what has it open, such as another notebook or a browser of databases, and ask again; "
                "nothing was released.",
            )
        return LedgerError(
            problem=f"The ledger at {self.address} cannot be read and written ({type(error).__name__})",
            hint="check that the place exists, is writable, reachable and not full; nothing was released.",
        )


def _instead_of(url: str) -> str:
    """Return what to write instead of what is no address, for a hint. What may hold a password is not repeated."""
    if url and not {*url} & {":", "@"}:
        return f'for a file write "{url}.db"; "sqlite://" is a ledger in memory that forgets.'
    return 'the name of a file ends in .db; "sqlite://" is a ledger in memory that forgets.'


def address_of(place: str | Path) -> str:
    """Return the SQLAlchemy address of a database that may be given as the name of an SQLite file.

    Example:
        >>> address_of("ledger.db"), address_of("sqlite://")
        ('sqlite:///ledger.db', 'sqlite://')
    """
    if isinstance(place, Path) or ("://" not in place and place.endswith((".db", ".sqlite", ".sqlite3"))):
        return f"sqlite:///{place}"
    return place


def _parsed(url: str) -> URL:
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is None or address.get_backend_name() not in ("sqlite", "postgresql"):
        raise LedgerError(
            problem="This is not the file or the address of a ledger"
            if address is None
            else f"A ledger cannot be kept in a database of the kind {address.get_backend_name()!r}",
            hint=_instead_of(url),
        )
    if address.get_backend_name() == "sqlite" and str(address.database).startswith("file:"):
        raise LedgerError(
            expected="a plain file name after sqlite:///",
            got="SQLite's own kind of address, file:…",
            hint='write "sqlite:///ledger.db", or "sqlite:////srv/ledger.db" for an absolute one.',
        )
    return address


@lru_cache(32)
def _remembered(url: URL) -> Engine:
    """Return an engine that remembers its statements as text, which takes long to find out."""
    return _postgres(url) if url.get_backend_name() == "postgresql" else _sqlite(url)


def _in_memory(engine: Engine) -> Engine:
    """Return an engine with a connection of its own, and so a database of its own, that remembers the same text."""
    own = copy.copy(engine)
    own.pool = engine.pool.recreate()
    return own


def _sqlite(url: URL) -> Engine:
    pool = StaticPool if url.database in (None, "", ":memory:") else NullPool
    connecting = {"timeout": 60, "check_same_thread": False}
    engine = create_engine(url, poolclass=pool, connect_args=connecting, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def set_durable(connection: Any, _: object) -> None:  # noqa: ANN401 (a connection of the driver)
        connection.isolation_level = None  # the driver must not begin transactions of its own
        connection.execute("PRAGMA journal_mode = DELETE")  # one file: a copy of it is a whole ledger
        connection.execute("PRAGMA synchronous = EXTRA")  # a commit returns when file and folder are on disk

    @event.listens_for(engine, "begin")
    def begin_exclusive(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _postgres(url: URL) -> Engine:
    # Read committed: what is read after the lock must be what the last holder of the lock wrote.
    engine = create_engine(url, poolclass=NullPool, isolation_level="READ COMMITTED", hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin_durable(connection: Connection) -> None:
        if connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
            raise LedgerError(
                problem="The PostgreSQL server runs with fsync off",
                hint="a server that may forget a debit cannot hold a ledger; turn fsync on.",
            )
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")

    return engine
