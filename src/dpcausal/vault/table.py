"""Anything that holds a table, opened for an engine. Only the declared columns are ever touched."""

import csv
import gzip
from pathlib import Path

import duckdb
import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.errors import TableError
from dpcausal.schema import Schema
from dpcausal.vault.coercion import check_columns, columns_used
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from dpcausal.vault.frames import arrow_table

_TABLES = "a pandas, polars or pyarrow table, a DuckDB relation, or a path to a .parquet or .csv file"


def open_table(table: object, schema: Schema, threads: int | None = None) -> DuckDBEngine:
    """An engine over a frame, a file or a DuckDB relation."""
    if isinstance(table, duckdb.DuckDBPyRelation):
        return DuckDBEngine(table, schema)
    if isinstance(table, str | Path):
        return DuckDBEngine(_file(Path(table), schema, connect(threads)), schema)
    try:
        columns = arrow_table(nw.from_native(table, eager_only=True), schema)
    except (TypeError, nw.exceptions.DuplicateError):
        raise TableError(
            expected=f"{_TABLES}, each column once",
            got=type(table).__name__,
            hint="convert it to one of these; collect a lazy frame first, and rename columns that stand twice.",
        ) from None
    try:
        return DuckDBEngine(connect(threads).from_arrow(columns), schema)
    except duckdb.Error:
        raise TableError(
            expected="columns of numbers or text",
            got=f"the types {', '.join(str(column.type) for column in columns.itercolumns())}",
            hint="convert the columns; DuckDB cannot read one of these types.",
        ) from None


def _file(path: Path, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    if not path.is_file():
        raise TableError(expected="a file", got=f"no file at {str(path)!r}", hint="check the path and working folder.")
    if not path.name.endswith((".parquet", ".csv", ".csv.gz")):
        raise TableError(expected=_TABLES, got=f"the file {path.name!r}", hint="write the table in one of these.")
    try:
        return (_parquet if path.suffix == ".parquet" else _csv)(path, schema, connection)
    except (duckdb.Error, pa.ArrowException, csv.Error, OSError):
        raise TableError(
            expected=f"a readable table in {path.name!r}",
            got="a file that cannot be read",
            hint="check that the file is whole and is what its name says.",
        ) from None


def _parquet(path: Path, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """A parquet file; without times in milliseconds, at which DuckDB fails if one of them lies far off."""
    types = {field.name: field.type for field in pq.read_schema(path)}
    for name in (schema.unit.name, schema.unit.by) if schema.unit else ():
        if name in types and pa.types.is_timestamp(types[name]) and types[name].unit == "ms":
            raise TableError(
                expected=f"a column {name!r} with times in microseconds, or dates, numbers or text",
                got=f"the type {types[name]}",
                hint="write the file with microseconds, for instance with coerce_timestamps='us' in pyarrow.",
            )
    # Without this DuckDB takes it from the file's statistics that a column has no NaN, and one cell decides on others.
    return connection.sql("SELECT * FROM read_parquet($path, can_have_nan=true)", params={"path": str(path)})


def _csv(path: Path, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """A csv file as text throughout: nothing is guessed from its rows, and no row can make reading it fail.

    Columns that are not declared may have any names, none, or the same: they only keep their place.
    """
    with (gzip.open if path.suffix == ".gz" else open)(
        path, "rt", encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        header = next(csv.reader(lines), [])
    used = columns_used(schema)
    check_columns(used, header)
    names = [name if name in used else f"undeclared {place}" for place, name in enumerate(header)]
    return connection.read_csv(
        str(path), header=True, columns=dict.fromkeys(names, "VARCHAR"), auto_detect=False, sep=",", quotechar='"',
        escapechar='"', strict_mode=False, null_padding=True, ignore_errors=True, parallel=False,
    )  # fmt: skip
