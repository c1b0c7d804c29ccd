"""Data frames as Arrow tables.

What happens to a column is decided by its type alone, which is public, and what happens to a cell by that cell alone.
A type that is found by looking at values, as pandas' `object` columns invite, would let one row change the others.
"""

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpcausal.errors import EngineError, TableError, redact_errors
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import table_column
from dpcausal.vault.coercion import check_columns, columns_used, dated_columns


def arrow_table(frame: nw.DataFrame[Any], schema: Schema) -> pa.Table:
    """Return the declared columns of a frame, and no others."""
    names = columns_used(schema)
    check_columns(names, frame.columns)
    declared, dated = set(map(table_column, schema.columns)), dated_columns(schema)
    columns = {name: _column(frame[name]) for name in names}
    columns |= {name: _days(columns[name]) for name in dated}
    return pa.table({name: column if name in declared else _sortable(column) for name, column in columns.items()})


def collected(frame: Any, schema: Schema) -> Any:  # noqa: ANN401 (of polars, which is no dependency)
    """Return the declared columns of a lazy frame of polars, computed once."""
    with redact_errors(Exception, instead=_not_computed):
        present = frame.collect_schema().names()
    names = columns_used(schema)
    check_columns(names, present)
    with redact_errors(Exception, instead=_not_computed):
        return frame.select(names).collect(engine="streaming")


def _not_computed(_: Exception) -> EngineError:
    return EngineError(
        problem="polars could not compute the lazy frame, and its message is withheld because it may quote the table",
        hint="collect the frame where the table may be seen, and correct what fails there.",
    )


def _column(series: nw.Series[Any]) -> pa.ChunkedArray:
    native = series.to_native()
    if str(getattr(native, "dtype", "")) in ("object", "category"):
        return pa.chunked_array([_as_text(series)])
    try:
        column = native if isinstance(native, pa.ChunkedArray) else pa.chunked_array([series.to_arrow()])
    except Exception as error:  # noqa: BLE001 (texts that are not Unicode; a frame that cannot be read at all)
        if series.dtype == nw.String:
            return pa.chunked_array([_as_text(series)])
        raise _unreadable(series.name, f"{series.dtype}, and {type(error).__name__}") from None
    if pa.types.is_dictionary(column.type):
        try:
            column = column.cast(column.type.value_type)
        except pa.ArrowNotImplementedError:
            raise _unreadable(series.name, str(column.type)) from None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pa.chunked_array([valid_text(chunk) for chunk in column.chunks], pa.large_string())
    plain = pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type) or pa.types.is_null(column.type)
    if not plain or pa.types.is_interval(column.type):
        raise _unreadable(series.name, str(column.type))
    return column


def _unreadable(name: str, kind: str) -> TableError:
    wanted = f"a column {name!r} of numbers or text"
    return TableError(expected=wanted, got=f"the type {kind}", hint="convert the column to one of these.")


def valid_text(column: pa.Array) -> pa.Array:
    """Return text that DuckDB can read: bytes that are not Unicode are replaced, in the cells where they are."""
    try:
        column.validate(full=True)
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        cells = column.cast(pa.large_binary()).to_pylist()
        texts = (None if cell is None else cell.decode("utf-8", "replace") for cell in cells)
        return pa.array(texts, pa.large_string())


def _as_text(series: nw.Series[Any]) -> pa.Array:
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return pa.array([None if null else _text(cell) for cell, null in pairs], pa.string())


def _text(cell: object) -> str | None:
    """Return a cell of any class as text; None where it is missing."""
    try:
        if isinstance(cell, bytes):
            return cell.decode("utf-8", "replace")
        return (str(int(cell)) if isinstance(cell, bool) else str(cell)).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 (its class may do anything)
        return None


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that only names or orders units: times as their integers, since DuckDB refuses far-off ones."""
    if not pa.types.is_temporal(column.type):
        return column
    integers = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return pa.chunked_array([chunk.view(integers) for chunk in column.chunks], integers)


_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_YEARS = (-719_162, 2_932_896)
"""The first day of year 1 and the last of year 9999, in days since 1970-01-01."""


def _days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of dates, or of times without a zone, as dates that every engine reads; any other as it is."""
    times = pa.types.is_timestamp(column.type) and column.type.tz is None
    if not (times or pa.types.is_date(column.type)):
        return column
    per_day = _DAY[column.type.unit] if times else 1 if pa.types.is_date32(column.type) else _DAY["ms"]
    integers = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    return pa.chunked_array([_day_numbers(chunk.view(integers), per_day) for chunk in column.chunks], pa.date32())


def _day_numbers(chunk: pa.Array, per_day: int) -> pa.Array:
    days = np.clip(chunk.fill_null(0).to_numpy(zero_copy_only=False) // per_day, *_YEARS).astype(np.int32)
    return pa.array(days, mask=chunk.is_null().to_numpy(zero_copy_only=False)).view(pa.date32())
