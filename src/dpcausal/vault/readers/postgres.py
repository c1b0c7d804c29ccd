"""Tables of a PostgreSQL server, streamed as Arrow batches."""

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from dpcausal.errors import DpcausalError, EngineError, TableError, redact_errors
from dpcausal.vault.coercion import SOURCE, Family, check_columns, coerced, columns_used, dated_columns
from dpcausal.vault.engines.dialects import DUCKDB

if TYPE_CHECKING:
    from adbc_driver_postgresql.dbapi import Connection, Cursor

    from dpcausal.schema.schema import Schema
    from dpcausal.vault.engines.warehouse import Warehouse

_EPOCH = "extract(epoch FROM {})::text"  # never fails, as a time of the driver's would if infinite or far off
_SENT: dict[str, tuple[Family, str]] = {
    "boolean": ("boolean", "{}"),
    **dict.fromkeys(("smallint", "integer", "bigint", "real", "double precision"), ("number", "{}")),
    **dict.fromkeys(("text", "character varying", "character", "name", "enum"), ("text", "{}::text")),
    "numeric": ("number", "trim_scale({})::text"),  # one text for each number, since it may name units
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), ("key", _EPOCH)),
    "uuid": ("key", "{}::text"),
}
"""What a column of each type lets one do with it, and what is selected of it: something that no value can make fail."""

_DATED = ("date", "timestamp without time zone")
_DAY = "CASE WHEN {0} IS NOT NULL THEN greatest(least({0}::date, '9999-12-31'::date), '0001-01-01'::date) END"
"""What is selected of a column that is declared to hold dates."""

_SUMMED: dict[str, Family] = {
    "boolean": "boolean",
    **dict.fromkeys(("smallint", "integer", "bigint"), "integer"),
    **dict.fromkeys(("real", "double precision"), "number"),
    **dict.fromkeys(("text", "character varying", "character", "name", "enum"), "text"),
}
"""The types of columns that PostgreSQL adds up itself, and what each lets one do with it."""

_TYPES = """
WITH RECURSIVE kinds AS (
    SELECT attname, attnum, atttypid AS kind, atttypmod AS size, attcollation AS sorted FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attname, attnum, typbasetype, typtypmod, sorted FROM kinds JOIN pg_type ON oid = kind WHERE typtype = 'd'
)
SELECT attname::text, CASE typtype WHEN 'e' THEN 'enum' ELSE format_type(kind, NULL) END,
       size, coalesce((SELECT collisdeterministic FROM pg_collation WHERE oid = sorted), true)
FROM kinds JOIN pg_type ON oid = kind WHERE typtype <> 'd' ORDER BY attnum
"""
_SERVER = "SELECT current_setting('server_encoding'), current_setting('server_version_num')::integer"
_OLDEST = 14


class PostgresTable:
    """A table or view of a PostgreSQL server, as it was when it was opened.

    Sums are added up by the server where it reads the columns as DuckDB does. Any other pass is one stream of the
    declared columns, and nothing of it is kept. All passes see the same rows: one
    read-only transaction (REPEATABLE READ) stays open for as long as this object lives. That costs the server. A
    connection is taken. The table can be written to, but not altered, truncated or dropped. Rows that are updated or
    deleted meanwhile, anywhere in the database, keep their space until the transaction ends, since it could still see
    them. So let go of the vault when its work is done, or open it on a replica. A server that is set to end idle
    transactions will end this one too; then every further pass fails.
    """

    __slots__ = ("__weakref__", "_connection", "_lock", "_select", "_source", "_summed", "columns")

    def __init__(self, address: str, schema: "Schema") -> None:
        server, name, place = _parts(address)
        connection = _connected(server)
        weakref.finalize(self, connection.close)
        self._connection, self._lock = connection, threading.Lock()
        with _silenced(_unreadable(name)):
            self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # Otherwise the user's own setting decides, and a letter that another encoding lacks would be an error.
            self._execute("SET client_encoding TO 'UTF8'")
            _check_server(*self._rows(_SERVER)[0])
            described = self._rows(_TYPES, place)
            types = {column: kind for column, kind, *_ in described}
            self._select = f"SELECT {_selected(types, schema, name)} FROM {place}"  # noqa: S608 (quoted)
            with connection.cursor() as cursor:
                # Locks the table against being altered; before the savepoint, or the lock would go with the first pass.
                self.columns = cursor.execute(f"{self._select} LIMIT 0").fetch_arrow_table()
            self._execute("SAVEPOINT opened")
        self._summed = _summed(described, columns_used(schema))
        read = ((DUCKDB.column(column), family) for column, family in self._summed.items())
        columns = ", ".join(f"{column}::text AS {column}" if family == "text" else column for column, family in read)
        self._source = f"SELECT {columns} FROM {place}"  # noqa: S608 (quoted)

    @property
    def warehouse(self) -> "Warehouse":
        """The table for sums that the server adds up."""
        from dpcausal.vault.engines.warehouse import Warehouse  # noqa: PLC0415 (an extra)

        return Warehouse(self._summed, "postgres", self._lines)

    @contextmanager
    def read(self) -> Iterator[object]:
        """Return the stream for one pass; what is left of it when the pass ends early is cancelled."""
        with self._passing() as cursor:
            try:
                yield cursor.execute(self._select).fetch_record_batch()
            except BaseException:  # a program that is stopped too: otherwise closing waits for the rest of the table
                cursor.adbc_cancel()
                raise

    def _lines(self, text: str, _: "Sequence[str]") -> list[Any]:
        """Return the lines of a query; see `Warehouse`."""
        with self._passing() as cursor:
            found: list[Any] = cursor.execute(f"WITH {SOURCE} AS ({self._source}) {text}").fetchall()
        return found

    @contextmanager
    def _passing(self) -> "Iterator[Cursor]":
        """Return a cursor for one pass over the snapshot. A connection serves one at a time."""
        with self._lock, _silenced(_broken()), self._connection.cursor() as cursor:
            self._execute("ROLLBACK TO SAVEPOINT opened")  # takes back an earlier pass that failed, not the snapshot
            yield cursor

    def _execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def _rows(self, statement: str, *parameters: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            found: list[Any] = cursor.execute(statement, parameters or None).fetchall()
        return found

    def __repr__(self) -> str:
        return "PostgresTable"


def families_at(address: str) -> dict[str, Family]:
    """Return the columns of a table or view, each with what its type lets one do with it. No value is read."""
    server, name, place = _parts(address)
    connection = _connected(server)
    with closing(connection), _silenced(_unreadable(name)), connection.cursor() as cursor:
        types = {column: kind for column, kind, *_ in cursor.execute(_TYPES, (place,)).fetchall()}
    if not types:
        raise _unreadable(name)
    families = {column: _SENT[kind][0] if kind in _SENT else "other" for column, kind in types.items()}
    return families | {column: "date" for column, kind in types.items() if kind in _DATED}


def _parts(address: str) -> tuple[str, str, str]:
    """Return the server, the table's name, and that name as SQL spells it."""
    server, _, name = address.rpartition("#")
    if not server or not all(name.split(".", 1)):
        raise TableError(
            problem="The address does not end in # and the name of a table",
            hint="write a # inside of a password as %23, or better keep the password in ~/.pgpass.",
        )
    return server, name, ".".join(map(DUCKDB.column, name.split(".", 1)))


def _connected(server: str) -> "Connection":
    try:
        import sqlglot  # noqa: F401, PLC0415 (an extra)
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise TableError(
            problem=f"The Arrow driver of PostgreSQL, or sqlglot, is not installed: there is no module {error.name!r}",
            hint='pip install "dpcausal[postgres]".',
        ) from None
    unreachable = TableError(
        problem="There is no connection to the PostgreSQL server; the driver's message is withheld because "
        "it may hold a "
        "password",
        hint="try the address, up to the #, with psql.",
    )
    with _silenced(unreachable):
        return dbapi.connect(server, autocommit=True)


def _check_server(encoding: str, version: int) -> None:
    if encoding != "UTF8" or version < _OLDEST * 10_000:
        raise TableError(
            expected=f"PostgreSQL {_OLDEST} or newer with a database in UTF8",
            got=f"PostgreSQL {version // 10_000} with {encoding}",
            hint="in any other encoding a text may be unreadable, and in older versions a date; copy the table over.",
        )


def _selected(types: dict[str, str], schema: "Schema", name: str) -> str:
    """Return the declared columns as they are sent, decided from their types alone."""
    if not types:
        raise _unreadable(name)
    used = columns_used(schema)
    check_columns(used, list(types))
    for column in used:
        if types[column] not in _SENT:
            raise TableError(
                problem=f"The column {column!r} must hold numbers, text, dates or times, and has the type "
                f"{types[column]}",
                hint="convert the column, in a view for instance.",
            )
    days = {column for column in dated_columns(schema) if types[column] in _DATED}
    sent: dict[str, tuple[Family, str]] = {
        column: ("date", _DAY) if column in days else _SENT[types[column]] for column in used
    }
    coerced(schema, {column: family for column, (family, _) in sent.items()})  # for what it refuses
    named = ((DUCKDB.column(column), form) for column, (_, form) in sent.items())
    return ", ".join(f"{form.format(name)} AS {name}" for name, form in named)


def _summed(described: "Sequence[tuple[str, str, int, bool]]", used: "Sequence[str]") -> dict[str, Family]:
    """Return the columns that PostgreSQL may read itself, decided from their types alone.

    A text whose collation takes different texts for the same is not among them.
    """
    from dpcausal.vault.engines.warehouse import MOST_DIGITS  # noqa: PLC0415 (an extra)

    families: dict[str, Family] = {}
    for column, kind, size, exact in described:
        precision, scale = (size - 4) >> 16, (size - 4) & 0x7FF  # as PostgreSQL keeps them; 11 bits, the first a sign
        if kind == "numeric" and size >= 4 and scale <= precision <= MOST_DIGITS:
            families[column] = "number"
        elif kind in _SUMMED and exact:
            families[column] = _SUMMED[kind]
    return {column: family for column, family in families.items() if column in used}


def _unreadable(name: str) -> TableError:
    return TableError(
        problem=f"PostgreSQL has no table or view {name!r}, or no right to read it was given",
        hint="names are as PostgreSQL keeps them, mostly in small letters; write schema.table if it is not found.",
    )


def _broken() -> EngineError:
    return EngineError(
        problem="PostgreSQL could not send the table, and its message is withheld because it may quote the table",
        hint="look into the server's own log; if it ended the transaction or the connection, open the vault again.",
    )


def _silenced(error: DpcausalError) -> AbstractContextManager[None]:
    """Keep the driver's own message in: it may quote a row, or the address with its password."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 (an extra)

    return redact_errors(dbapi.Error, instead=lambda _: error)
