"""Data frames as Arrow tables.

What happens to a column is decided by its type alone, which is public, and what happens to a cell by that cell alone.
A type that is found by looking at values, as pandas' `object` columns invite, would let one row change the others.
"""

from typing import Any

import narwhals as nw
import pyarrow as pa

from dpcausal.errors import TableError
from dpcausal.schema import Schema
from dpcausal.vault.coercion import check_columns, columns_used


def arrow_table(frame: nw.DataFrame[Any], schema: Schema) -> pa.Table:
    """The declared columns of a frame, and no others."""
    names = columns_used(schema)
    check_columns(names, frame.columns)
    declared = {column.name for column in schema.columns}
    columns = {name: _column(frame[name]) for name in names}
    return pa.table({name: column if name in declared else _sortable(column) for name, column in columns.items()})


def _column(series: nw.Series[Any]) -> pa.Array:
    if str(getattr(series.to_native(), "dtype", "")) in ("object", "category"):
        return _as_text(series)
    try:
        column = series.to_arrow()
    except Exception as error:  # noqa: BLE001 (texts that are not Unicode; a frame that cannot be read at all)
        if series.dtype == nw.String:
            return _as_text(series)
        raise TableError(
            expected=f"a column {series.name!r} that Arrow can read",
            got=f"the type {series.dtype}, and {type(error).__name__}",
            hint="convert the column to numbers or text.",
        ) from None
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _valid_text(column) if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else column


def _valid_text(column: pa.Array) -> pa.Array:
    """Text that DuckDB can read: bytes that are not Unicode are replaced, in the cells where they are."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.cast(pa.large_binary()).to_pylist()
        return pa.array([None if cell is None else cell.decode("utf-8", "replace") for cell in cells], pa.string())
    return column


def _as_text(series: nw.Series[Any]) -> pa.Array:
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return pa.array([None if null else _text(cell) for cell, null in pairs], pa.string())


def _text(cell: object) -> str | None:
    """A cell of any class as text; None where it has nothing to say."""
    try:
        if isinstance(cell, bytes):
            return cell.decode("utf-8", "replace")
        return (str(int(cell)) if isinstance(cell, bool) else str(cell)).encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 (its class may do anything)
        return None


def _sortable(column: pa.Array) -> pa.Array:
    """A column that only names or orders units: times as the integers they are, since DuckDB refuses far-off ones."""
    if not pa.types.is_temporal(column.type) or pa.types.is_interval(column.type):
        return column
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
