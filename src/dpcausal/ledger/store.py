"""The store of a ledger's entries: an SQLite file, SQLite in memory, or PostgreSQL."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    insert,
    inspect,
    select,
)

from dpcausal.ledger.chain import REQUEST_KINDS, Entry, Kind
from dpcausal.ledger.database import Database

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


class Store(Database):
    """An append-only table of entries."""

    def exists(self, connection: Connection) -> bool:
        """Return whether a ledger was ever created here."""
        return inspect(connection).has_table(ENTRIES.name)

    def create(self, connection: Connection) -> None:
        """Create the table of entries."""
        ENTRIES.create(connection)

    def entries_from(self, connection: Connection, number: int, at_most: int) -> list[Entry]:
        """Return so many entries from this number on, in order, or fewer where the ledger ends."""
        chosen = select(ENTRIES).where(ENTRIES.c.number >= number).order_by(ENTRIES.c.number).limit(at_most)
        return [_entry(found) for found in connection.execute(chosen)]

    def entries_of(self, connection: Connection, request: str) -> list[Entry]:
        """Return all entries of a request, in order."""
        chosen = select(ENTRIES).where(ENTRIES.c.kind.in_(REQUEST_KINDS), ENTRIES.c.request == request)
        return [_entry(found) for found in connection.execute(chosen.order_by(ENTRIES.c.number))]

    def entries_of_kind(self, connection: Connection, kind: Kind) -> list[Entry]:
        """Return all entries of a kind, in order, each intact."""
        chosen = select(ENTRIES).where(ENTRIES.c.kind == kind).order_by(ENTRIES.c.number)
        entries = [_entry(found) for found in connection.execute(chosen)]
        for entry in entries:
            entry.check_digest()
        return entries

    def kinds_of(self, connection: Connection, requests: Collection[str]) -> dict[str, list[str]]:
        """Return the kinds of the entries of each request, in order."""
        chosen = select(ENTRIES.c.request, ENTRIES.c.kind)
        chosen = chosen.where(ENTRIES.c.kind.in_(REQUEST_KINDS), ENTRIES.c.request.in_(requests)).order_by(
            ENTRIES.c.number
        )
        kinds = defaultdict(list)
        for request, kind in connection.execute(chosen):
            kinds[request].append(kind)
        return kinds

    def extent(self, connection: Connection) -> tuple[int, int]:
        """Return how many entries there are, and the number of the last; -1 if there is none."""
        # Two queries, so that a database looks up the last number and need not search for it while it counts.
        count: int = connection.execute(select(func.count()).select_from(ENTRIES)).scalar_one()
        last: int = connection.execute(select(func.coalesce(func.max(ENTRIES.c.number), -1))).scalar_one()
        return count, last

    def append(self, connection: Connection, entry: Entry) -> None:
        """Add one entry; durable when the transaction is left."""
        connection.execute(insert(ENTRIES).values(**vars(entry)))


def _entry(found: Any) -> Entry:  # noqa: ANN401 (of SQLAlchemy, which has no type for these columns)
    return Entry(**found._mapping)  # noqa: SLF001 (public, in spite of its name)
