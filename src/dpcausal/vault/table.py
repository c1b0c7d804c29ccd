"""Anything that holds a table, opened for an engine. Only the declared columns are ever touched."""

import csv
import gzip
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pyarrow as pa

from dpcausal.errors import TableError
from dpcausal.schema import Schema
from dpcausal.vault.coercion import check_columns, columns_used
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect

_TABLES = "a pandas, polars or pyarrow table, a DuckDB relation, or a path to a .parquet or .csv file"


def open_table(table: object, schema: Schema, threads: int | None = None) -> DuckDBEngine:
    """An engine over a frame, a file or a DuckDB relation."""
    if isinstance(table, duckdb.DuckDBPyRelation):
        return DuckDBEngine(table, schema)
    if isinstance(table, str | Path):
        return DuckDBEngine(_file(Path(table), connect(threads)), schema)
    return DuckDBEngine(connect(threads).from_arrow(_arrow_table(table, columns_used(schema))), schema)


def _file(path: Path, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    if not path.is_file() or not path.name.endswith((".parquet", ".csv", ".csv.gz")):
        raise TableError(
            expected=_TABLES, got=f"the path {str(path)!r}", hint="check that the file exists and how its name ends."
        )
    try:
        return connection.read_parquet(str(path)) if path.suffix == ".parquet" else _csv(path, connection)
    except (duckdb.Error, csv.Error, OSError):
        raise TableError(
            expected=f"a readable table in {path.name!r}",
            got="a file that cannot be read",
            hint="check that the file is whole and is what its name says.",
        ) from None


def _csv(path: Path, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """A csv file as text throughout: nothing is guessed from its rows, and no row can make reading it fail."""
    with (gzip.open if path.suffix == ".gz" else open)(
        path, "rt", encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        header = next(csv.reader(lines), [])
    return connection.read_csv(
        str(path), header=True, columns=dict.fromkeys(header, "VARCHAR"), auto_detect=False, sep=",", quotechar='"',
        escapechar='"', strict_mode=False, null_padding=True, ignore_errors=True, parallel=False,
    )  # fmt: skip


def _arrow_table(table: object, names: tuple[str, ...]) -> pa.Table:
    try:
        frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    except TypeError:
        raise TableError(
            expected=_TABLES, got=type(table).__name__, hint="convert it to one of these; collect a lazy frame first."
        ) from None
    check_columns(names, frame.columns)
    return pa.table({name: _arrow_column(frame[name]) for name in names})


def _arrow_column(series: nw.Series[Any]) -> pa.Array:
    """A column for Arrow; as text where its type says nothing, or where Arrow finds fault with a value."""
    if series.dtype == nw.Object:
        return _as_text(series.to_list())
    try:
        column = series.to_arrow()
    except Exception:  # noqa: BLE001 (whatever a value provokes, the answer is the same)
        return _as_text(series.to_list())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return _as_text(column.cast(pa.binary()).to_pylist())
    return column


def _as_text(cells: list[object]) -> pa.Array:
    return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: object) -> str | None:
    """A cell of any type as text; None where there is nothing to say."""
    if cell is None or isinstance(cell, bool):
        return None if cell is None else str(int(cell))
    try:
        return (cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "replace")).decode("utf-8", "replace")
    except Exception:  # noqa: BLE001 (a cell of any class at all)
        return None
