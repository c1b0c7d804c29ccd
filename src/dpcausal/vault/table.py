"""Anything that holds a table, opened for an engine where it is. Only the declared columns are ever touched."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import narwhals as nw

from dpcausal.errors import TableError
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import table_column
from dpcausal.vault.coercion import Family
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.engines.spark import SparkEngine, is_spark_frame
from dpcausal.vault.readers.cloud import SCHEMES, cloud_families, open_cloud
from dpcausal.vault.readers.files import OPENS, file_families, open_files
from dpcausal.vault.readers.frames import arrow_table, collected
from dpcausal.vault.readers.ibis_tables import IbisTable, is_ibis_table
from dpcausal.vault.readers.postgres import PostgresTable, families_at

if TYPE_CHECKING:
    from dpcausal.vault.engines.warehouse import WarehouseEngine

_POSTGRES = ("postgresql://", "postgres://")
_DRIVER = re.compile(r"^postgres(ql)?\+psycopg2?://")
"""How SQLAlchemy, and so the address of a ledger, names the same server."""
_IN_DUCKDB = "set them in the relation's own connection: SET memory_limit = '1GB', SET threads, SET temp_directory."
_IN_SPARK = "set them in Spark's own configuration: spark.executor.memory, spark.executor.cores, spark.local.dir."
_MAKES = {
    "dict": "pandas.DataFrame(columns), or pyarrow.table(columns)",
    "list": "pandas.DataFrame(records), or pyarrow.Table.from_pylist(records)",
    "ndarray": 'pandas.DataFrame(array, columns=["arm", "outcome"])',
}
"""How to make a table of what people have in its place."""

PERSON = re.compile(
    r"(^|[_\W])(id|ids|uid|pid|mrn|ssn|nr|key)$|patient|person|subject|customer|member|user", re.IGNORECASE
)
"""Names of columns that may name persons."""


def open_table(table: object, schema: Schema, resources: Resources | None = None) -> Engine:
    """Open an engine over a table, whatever holds it."""
    allowed = resources or Resources()
    if is_spark_frame(table):
        _check_not_asked_for(allowed, _IN_SPARK)
        spark = SparkEngine(table, schema)
        return ProgressEngine(spark) if allowed.progress else spark
    if is_ibis_table(table):
        table = IbisTable(table, schema)
        table = table.relation or table
    engine: DuckDBEngine | WarehouseEngine
    if isinstance(table, duckdb.DuckDBPyRelation):
        _check_not_asked_for(allowed, _IN_DUCKDB)
        engine = DuckDBEngine(table, schema)
    else:
        spill = allowed.folder if resources else None
        engine = _opened(table, schema, connect(allowed.threads, allowed.memory, spill))
    return ProgressEngine(engine, engine.share) if allowed.progress else engine


def _check_not_asked_for(resources: Resources, where: str) -> None:
    if resources.are_asked_for:
        raise TableError(
            expected="no memory, threads or spill for a table that brings its own engine",
            got=repr(resources),
            hint=where,
        )


def _opened(table: object, schema: Schema, connection: duckdb.DuckDBPyConnection) -> "DuckDBEngine | WarehouseEngine":
    if isinstance(table, IbisTable):
        return _served(table, schema, connection)
    if not isinstance(table, str | Path):
        return DuckDBEngine(_frame(table, schema, connection), schema, connection=connection)
    place = _DRIVER.sub("postgresql://", str(table), count=1)
    if place.startswith(_POSTGRES):
        return _served(PostgresTable(place, schema), schema, connection)
    if place.startswith(SCHEMES):
        return DuckDBEngine(open_cloud(place, schema, connection), schema, connection=connection)
    _check_place(place)
    return DuckDBEngine(open_files(place, schema, connection), schema, connection=connection)


def _check_place(place: str) -> None:
    if not place or re.match(r"[A-Za-z][\w+.-]+:|.*password", place, re.IGNORECASE | re.DOTALL):
        raise TableError(
            problem="A vault cannot open this address, which is not shown because it may hold a password"
            if place
            else "The name of the table is empty",
            hint=f"write a string with postgresql:// for a table in PostgreSQL, and download anything else. {OPENS}",
        )


def column_families(place: str) -> Mapping[str, Family | None]:
    """Return the names of a table's columns, and what each one's type lets one do with it. No value is read.

    A .csv file has no types: there it is None, and a first line that looks like values is refused. Of many files, the
    first one's columns count.
    """
    place = _DRIVER.sub("postgresql://", place, count=1)
    if place.startswith(_POSTGRES):
        return families_at(place)
    if place.startswith(SCHEMES):
        return cloud_families(place, connect())
    _check_place(place)
    return file_families(place, connect())


def names_persons(table: object, schema: Schema) -> bool:
    """Return whether a frame has another column than the declared ones that is called as if it named persons.

    No cell is read. A file's first line may be a record, so that of a file nothing is returned.
    """
    if isinstance(table, str | Path) or nw.dependencies.is_polars_lazyframe(table):
        return False
    names: Sequence[object] = getattr(table, "column_names", None) or list(getattr(table, "columns", ()))
    declared = {table_column(column) for column in schema.columns}
    return any(isinstance(name, str) and name not in declared and bool(PERSON.search(name)) for name in names)


def _frame(table: object, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    if type(table).__name__ in _MAKES:
        made = _MAKES[type(table).__name__]
        raise TableError(
            problem=f"A vault cannot open a {type(table).__name__}", hint=f"make a table of it: {made}. {OPENS}"
        )
    if nw.dependencies.is_polars_lazyframe(table):
        table = collected(table, schema)
    try:
        columns = arrow_table(nw.from_native(table, eager_only=True), schema)
    except (TypeError, nw.exceptions.DuplicateError):
        twice = hasattr(table, "columns")
        raise TableError(
            problem=f"A vault cannot open this {type(table).__name__}"
            f"{': a column may stand in it twice' if twice else ', which is no table'}",
            hint=f"{'rename columns that stand twice. ' if twice else ''}{OPENS}",
        ) from None
    try:
        return connection.from_arrow(columns)
    except duckdb.Error:
        raise TableError(
            expected="columns of numbers or text",
            got=f"the types {', '.join(str(column.type) for column in columns.itercolumns())}",
            hint="convert the columns; DuckDB cannot read one of these types.",
        ) from None


def _served(
    table: PostgresTable | IbisTable, schema: Schema, connection: duckdb.DuckDBPyConnection
) -> "DuckDBEngine | WarehouseEngine":
    """Return an engine that leaves to a server what that can add up, and streams the rest."""
    from dpcausal.vault.engines.warehouse import WarehouseEngine  # noqa: PLC0415 (an extra)

    streamed = _streamed(table, schema, connection)
    return streamed if table.warehouse is None else WarehouseEngine(table.warehouse, schema, streamed)


def _streamed(table: PostgresTable | IbisTable, schema: Schema, connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    """Return an engine over a stream of Arrow batches that is opened anew for each pass."""

    @contextmanager
    def passes() -> Iterator[duckdb.DuckDBPyRelation]:
        with table.read() as stream:
            try:
                yield connection.from_arrow(stream)
            finally:  # any statement ends the last one, which may still be reading from the stream
                connection.execute("SELECT 1").fetchall()

    return DuckDBEngine(connection.from_arrow(table.columns), schema, connection=connection, passes=passes)
