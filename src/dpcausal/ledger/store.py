"""The store of a ledger's entries: an SQLite file, SQLite in memory, or PostgreSQL."""

import copy
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
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

_REMEMBERED = 256
"""Of so many ledgers by name the statements are remembered."""


@dataclass(frozen=True)
class _Statements:
    """What is asked of the table of entries. To build a statement takes longer than to run it."""

    table: Table
    is_mine: ColumnElement[bool]

    @classmethod
    @lru_cache(_REMEMBERED)
    def of(cls, name: str) -> Self:
        """Return the statements for a ledger of this name, or without one."""
        return cls(NAMED_ENTRIES, NAMED_ENTRIES.c.ledger == name) if name else cls(ENTRIES, true())

    @cached_property
    def _entries(self) -> Select[Any]:
        columns = (self.table.c[each.name] for each in ENTRIES.columns)
        return select(*columns).where(self.is_mine).order_by(self.table.c.number)

    @cached_property
    def entries_from(self) -> Select[Any]:
        """Parameters: number, at_most."""
        chosen = self._entries.where(self.table.c.number >= bindparam("number"))
        return chosen.limit(bindparam("at_most", type_=Integer))

    @cached_property
    def entries_of(self) -> Select[Any]:
        """Parameters: request, kinds."""
        return self._entries.where(self._is_of_kinds, self.table.c.request == bindparam("request"))

    @cached_property
    def entries_of_kind(self) -> Select[Any]:
        """Parameter: kind."""
        return self._entries.where(self.table.c.kind == bindparam("kind"))

    @cached_property
    def last_of_kinds(self) -> Select[Any]:
        """Parameter: kinds."""
        return select(func.max(self.table.c.number)).where(self.is_mine, self._is_of_kinds)

    @cached_property
    def kinds_of(self) -> Select[Any]:
        """Parameter: requests."""
        of_requests = self.table.c.request.in_(bindparam("requests", expanding=True))
        chosen = select(self.table.c.request, self.table.c.kind).where(self.is_mine)
        return chosen.where(self.table.c.kind.in_(REQUEST_KINDS), of_requests).order_by(self.table.c.number)

    @cached_property
    def counted(self) -> Select[Any]:
        """No parameters."""
        return select(func.count()).select_from(self.table).where(self.is_mine)

    @cached_property
    def last(self) -> Select[Any]:
        """No parameters."""
        return select(func.coalesce(func.max(self.table.c.number), -1)).where(self.is_mine)

    @cached_property
    def append(self) -> Insert:
        """Parameters: all columns of an entry."""
        return insert(self.table)

    @property
    def _is_of_kinds(self) -> ColumnElement[bool]:
        return self.table.c.kind.in_(bindparam("kinds", expanding=True))


class Store(Database):
    """An append-only table of entries, or the part of one that belongs to a named ledger.

    Args:
        url: An SQLAlchemy address, or the name of an SQLite file; `?ledger=name` at its end names one of many ledgers
            in a database.

    Attributes:
        name: The name of the ledger; empty where the database holds one ledger without a name.
    """

    def __init__(self, url: str | Path) -> None:
        url, name = _without_name(address_of(url))
        super().__init__(url)
        self.name, self.place = "", self.address
        self._sql = _Statements.of("")
        if name:
            self._be(name)

    def _be(self, name: str) -> None:
        self.name, self.address = name, named(self.place, name)
        # A lock for each name: ledgers in one database do not wait for each other.
        self.lock = int.from_bytes(bytes.fromhex(digest_of_text(name)[:16]), signed=True)
        self._sql = _Statements.of(name)

    def beside(self, name: str) -> "Store":
        """Return the store of another named ledger in the same database."""
        other = copy.copy(self)
        other._be(name)  # noqa: SLF001 (its own copy)
        return other

    def exists(self, connection: Connection) -> bool:
        """Return whether a ledger was ever created here."""
        there = inspect(connection).has_table(self._sql.table.name)
        return there and (not self.name or bool(self.entries_from(connection, 0, 1)))

    def create(self, connection: Connection) -> None:
        """Create the table of entries; that of named ledgers may be there already."""
        if self.name and not inspect(connection).has_table(self._sql.table.name):
            self.take_lock(connection, Database.lock)  # two ledgers may be the first of a database at once
        self._sql.table.create(connection, checkfirst=bool(self.name))

    def entries_from(self, connection: Connection, number: int, at_most: int) -> list[Entry]:
        """Return so many entries from this number on, in order, or fewer where the ledger ends."""
        found = connection.execute(self._sql.entries_from, {"number": number, "at_most": at_most})
        return [_entry(each) for each in found]

    def entries_of(self, connection: Connection, request: str, kinds: Collection[Kind] = REQUEST_KINDS) -> list[Entry]:
        """Return the entries of these kinds of a request, in order."""
        found = connection.execute(self._sql.entries_of, {"request": request, "kinds": [*kinds]})
        return [_entry(each) for each in found]

    def entries_of_kind(self, connection: Connection, kind: Kind, containing: str = "") -> list[Entry]:
        """Return all entries of a kind, in order, each intact; only those that contain some text, if any is given."""
        chosen = self._sql.entries_of_kind
        if containing:
            chosen = chosen.where(self._sql.table.c.body.contains(containing, autoescape=True))
        entries = [_entry(found) for found in connection.execute(chosen, {"kind": kind})]
        for entry in entries:
            entry.check_digest()
        return entries

    def last_of_kinds(self, connection: Connection, kinds: Collection[Kind]) -> Entry | None:
        """Return the last entry of one of these kinds, intact; None where there is none."""
        number = connection.execute(self._sql.last_of_kinds, {"kinds": [*kinds]}).scalar_one()
        if number is None:
            return None
        (entry,) = self.entries_from(connection, number, 1)
        entry.check_digest()
        return entry

    def kinds_of(self, connection: Connection, requests: Collection[str]) -> dict[str, list[str]]:
        """Return the kinds of the entries of each request, in order."""
        kinds = defaultdict(list)
        for request, kind in connection.execute(self._sql.kinds_of, {"requests": [*requests]}):
            kinds[request].append(kind)
        return kinds

    def extent(self, connection: Connection) -> tuple[int, int]:
        """Return how many entries there are, and the number of the last; -1 if there is none."""
        # Two queries, so that a database looks up the last number and need not search for it while it counts.
        return connection.execute(self._sql.counted).scalar_one(), connection.execute(self._sql.last).scalar_one()

    def append(self, connection: Connection, entry: Entry) -> None:
        """Add one entry; durable when the transaction is left."""
        mine = {"ledger": self.name} if self.name else {}
        connection.execute(self._sql.append, vars(entry) | mine)


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
