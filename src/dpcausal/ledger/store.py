"""The store of a ledger's entries: an SQLite file, SQLite in memory, or PostgreSQL."""

import copy
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    make_url,
    select,
    true,
)
from sqlalchemy.exc import ArgumentError

from dpcausal.ledger.chain import REQUEST_KINDS, Entry, Kind
from dpcausal.ledger.database import Database, address_of
from dpcausal.utils.hash_chain import digest_of_text

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
NAMED_ENTRIES = Table(
    "dpcausal_ledgers",
    MetaData(),
    Column("ledger", String(128), primary_key=True),
    *(Column(each.name, each.type, primary_key=each.primary_key, nullable=False) for each in ENTRIES.columns),
    UniqueConstraint("ledger", "kind", "request"),
)
"""The entries of many ledgers: those of a population, and of the experiments that draw from it."""


class Store(Database):
    """An append-only table of entries, or the part of one that belongs to a named ledger.

    Args:
        url: An SQLAlchemy address, or the name of an SQLite file; `?ledger=name` at its end names one of many ledgers
            in a database.

    Attributes:
        name: The name of the ledger; empty where the database holds one ledger without a name.
        place: The address without the name.
    """

    def __init__(self, url: str | Path) -> None:
        url, name = _without_name(address_of(url))
        super().__init__(url)
        self.name, self.place = "", self.address
        self._table = ENTRIES
        self._is_mine: ColumnElement[bool] = true()
        if name:
            self._be(name)

    def _be(self, name: str) -> None:
        self.name, self.address = name, named(self.place, name)
        # A lock for each name: ledgers in one database do not wait for each other.
        self.lock = int.from_bytes(bytes.fromhex(digest_of_text(name)[:16]), signed=True)
        self._table, self._is_mine = NAMED_ENTRIES, NAMED_ENTRIES.c.ledger == name

    def beside(self, name: str) -> "Store":
        """Return the store of another named ledger in the same database."""
        other = copy.copy(self)
        other._be(name)  # noqa: SLF001 (its own copy)
        return other

    def exists(self, connection: Connection) -> bool:
        """Return whether a ledger was ever created here."""
        there = inspect(connection).has_table(self._table.name)
        return there and (not self.name or bool(self.entries_from(connection, 0, 1)))

    def create(self, connection: Connection) -> None:
        """Create the table of entries; that of named ledgers may be there already."""
        if self.name and not inspect(connection).has_table(self._table.name):
            self.take_lock(connection, Database.lock)  # two ledgers may be the first of a database at once
        self._table.create(connection, checkfirst=bool(self.name))

    def _select(self) -> Select[Any]:
        columns = (self._table.c[each.name] for each in ENTRIES.columns)
        return select(*columns).where(self._is_mine).order_by(self._table.c.number)

    def entries_from(self, connection: Connection, number: int, at_most: int) -> list[Entry]:
        """Return so many entries from this number on, in order, or fewer where the ledger ends."""
        chosen = self._select().where(self._table.c.number >= number).limit(at_most)
        return [_entry(found) for found in connection.execute(chosen)]

    def entries_of(self, connection: Connection, request: str, kinds: Collection[Kind] = REQUEST_KINDS) -> list[Entry]:
        """Return the entries of these kinds of a request, in order."""
        chosen = self._select().where(self._table.c.kind.in_(kinds), self._table.c.request == request)
        return [_entry(found) for found in connection.execute(chosen)]

    def entries_of_kind(self, connection: Connection, kind: Kind, containing: str = "") -> list[Entry]:
        """Return all entries of a kind, in order, each intact; only those that contain some text, if any is given."""
        chosen = self._select().where(self._table.c.kind == kind)
        if containing:
            chosen = chosen.where(self._table.c.body.contains(containing, autoescape=True))
        entries = [_entry(found) for found in connection.execute(chosen)]
        for entry in entries:
            entry.check_digest()
        return entries

    def last_of_kinds(self, connection: Connection, kinds: Collection[Kind]) -> Entry | None:
        """Return the last entry of one of these kinds, intact; None where there is none."""
        last = select(func.max(self._table.c.number)).where(self._is_mine, self._table.c.kind.in_(kinds))
        number = connection.execute(last).scalar_one()
        if number is None:
            return None
        (entry,) = self.entries_from(connection, number, 1)
        entry.check_digest()
        return entry

    def kinds_of(self, connection: Connection, requests: Collection[str]) -> dict[str, list[str]]:
        """Return the kinds of the entries of each request, in order."""
        table = self._table
        chosen = select(table.c.request, table.c.kind).where(self._is_mine)
        chosen = chosen.where(table.c.kind.in_(REQUEST_KINDS), table.c.request.in_(requests)).order_by(table.c.number)
        kinds = defaultdict(list)
        for request, kind in connection.execute(chosen):
            kinds[request].append(kind)
        return kinds

    def extent(self, connection: Connection) -> tuple[int, int]:
        """Return how many entries there are, and the number of the last; -1 if there is none."""
        # Two queries, so that a database looks up the last number and need not search for it while it counts.
        counted = select(func.count()).select_from(self._table).where(self._is_mine)
        last = select(func.coalesce(func.max(self._table.c.number), -1)).where(self._is_mine)
        return connection.execute(counted).scalar_one(), connection.execute(last).scalar_one()

    def append(self, connection: Connection, entry: Entry) -> None:
        """Add one entry; durable when the transaction is left."""
        mine = {"ledger": self.name} if self.name else {}
        connection.execute(insert(self._table).values(**vars(entry), **mine))


def named(url: str, name: str) -> str:
    """Return the address of a named ledger, from that of its database."""
    return f"{url}{'&' if '?' in url else '?'}ledger={name}"


def _without_name(url: str) -> tuple[str, str]:
    """Return an address without the name of a ledger, and the name; an address that cannot be read is left as it is."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return url, ""
    name = str(parsed.query.get("ledger", ""))
    return parsed.difference_update_query(["ledger"]).render_as_string(hide_password=False), name


def _entry(found: Any) -> Entry:  # noqa: ANN401 (of SQLAlchemy, which has no type for these columns)
    return Entry(**found._mapping)  # noqa: SLF001 (public, in spite of its name)
