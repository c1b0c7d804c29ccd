"""Where a ledger's entries are kept: an SQLite file, SQLite in memory, or PostgreSQL."""

import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from dpcausal.errors import LedgerError, withheld
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.life import LIFE

ENTRIES = Table(
    "dpcausal_ledger",
    MetaData(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("request", String(64), nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    # The database itself makes a second debit, or a second answer, of one request impossible. Its index finds requests.
    UniqueConstraint("kind", "request"),
)
_POSTGRES_LOCK = 0x64706361  # "dpca": any number will do that all ledgers share


def _instead_of(url: str) -> str:
    """Return what to write instead of what is no address, for a hint. What may hold a password is not repeated."""
    if url and not {*url} & {":", "@"}:
        return f'for a file write "sqlite:///{url}"; "sqlite://" alone is a ledger in memory that forgets.'
    return 'a file needs "sqlite:///" before its name; "sqlite://" alone is a ledger in memory that forgets.'


class Store:
    """An append-only table of entries with transactions that exclude each other across threads and processes."""

    def __init__(self, url: str) -> None:
        try:
            address = make_url(url)
        except ArgumentError:
            address = None
        if address is None or address.get_backend_name() not in ("sqlite", "postgresql"):
            raise LedgerError(
                expected='a ledger address such as "sqlite:///ledger.db" or "postgresql+psycopg://host/database"',
                got="no such address" if address is None else f"the database kind {address.get_backend_name()!r}",
                hint=_instead_of(url),
            )
        self.forgets = address.get_backend_name() == "sqlite" and address.database in (None, "", ":memory:")
        self.address = address.set(query={}).render_as_string(hide_password=True)  # a query may hold a password too
        if address.get_backend_name() == "sqlite" and not self.forgets:
            self.address = f"sqlite:///{Path(str(address.database)).absolute()}"
        self._lock = threading.Lock()
        self._process = os.getpid()
        try:
            self._engine = _postgres(url) if address.get_backend_name() == "postgresql" else _sqlite(url, self.forgets)
        except ModuleNotFoundError as error:
            raise LedgerError(
                expected="the driver of PostgreSQL",
                got=f"no module {error.name!r}",
                hint='pip install "dpcausal[postgres]", and write the address as "postgresql+psycopg://…".',
            ) from None

        weakref.finalize(self, self._engine.dispose)  # a ledger in memory holds its connection until then

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """A transaction that no other runs beside, durable once left without an error."""
        if self.forgets and os.getpid() != self._process:
            raise LedgerError(
                expected="a ledger in memory to be used by the process that opened it",
                got="another process, in which it would be a second budget",
                hint="keep the ledger in a file to share it between processes.",
            )
        # The database's own error may hold an answer that was never stored, and so never released.
        with withheld(SQLAlchemyError, instead=self._failure), self._lock, self._engine.begin() as connection:
            yield connection

    def _failure(self, error: Exception) -> LedgerError:
        return LedgerError(
            expected=f"a ledger that can be read and written at {self.address}",
            got=f"{type(error).__name__} ({type(error.__cause__).__name__})",
            hint="check that the place exists, is writable, reachable and not full; nothing was released.",
        )

    def exists(self, connection: Connection) -> bool:
        """Whether a ledger was ever opened here."""
        return inspect(connection).has_table(ENTRIES.name)

    def create(self, connection: Connection) -> None:
        """Make the table of entries."""
        ENTRIES.create(connection)

    def entries_from(self, connection: Connection, number: int, at_most: int) -> list[Entry]:
        """So many entries from this number on, in order, or fewer where the ledger ends."""
        chosen = select(ENTRIES).where(ENTRIES.c.number >= number).order_by(ENTRIES.c.number).limit(at_most)
        return [Entry(*entry) for entry in connection.execute(chosen)]

    def entries_of(self, connection: Connection, request: str) -> list[Entry]:
        """All entries of a request, in order."""
        chosen = select(ENTRIES).where(ENTRIES.c.kind.in_(LIFE), ENTRIES.c.request == request)
        return [Entry(*entry) for entry in connection.execute(chosen.order_by(ENTRIES.c.number))]

    def kinds_of(self, connection: Connection, requests: Collection[str]) -> dict[str, list[str]]:
        """For each of some requests, the kinds of its entries, in order."""
        chosen = select(ENTRIES.c.request, ENTRIES.c.kind)
        chosen = chosen.where(ENTRIES.c.kind.in_(LIFE), ENTRIES.c.request.in_(requests)).order_by(ENTRIES.c.number)
        kinds = defaultdict(list)
        for request, kind in connection.execute(chosen):
            kinds[request].append(kind)
        return kinds

    def extent(self, connection: Connection) -> tuple[int, int]:
        """How many entries there are, and the number of the last; -1 if there is none."""
        # Two questions, so that a database looks up the last number and need not search for it while it counts.
        count: int = connection.execute(select(func.count()).select_from(ENTRIES)).scalar_one()
        last: int = connection.execute(select(func.coalesce(func.max(ENTRIES.c.number), -1))).scalar_one()
        return count, last

    def append(self, connection: Connection, entry: Entry) -> None:
        """Add one entry; durable when the transaction is left."""
        connection.execute(insert(ENTRIES).values(**vars(entry)))


def _sqlite(url: str, forgets: bool) -> Engine:
    pool = StaticPool if forgets else NullPool
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


def _postgres(url: str) -> Engine:
    # Read committed: what is read after the lock must be what the last holder of the lock wrote.
    engine = create_engine(url, poolclass=NullPool, isolation_level="READ COMMITTED", hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin_exclusive(connection: Connection) -> None:
        if connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
            raise LedgerError(
                expected="a PostgreSQL server with fsync on",
                got="fsync off",
                hint="a server that may forget a debit cannot hold a ledger; turn fsync on.",
            )
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})")

    return engine
