"""An engine over a coerced table that is in memory already: that of a synthetic population, which nobody is in."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcausal.vault.engines import (
    BATCH_ROWS,
    OUTSIDE,
    Batch,
    ExactInts,
    Kernel,
    check_size,
    compared,
    exact_ints,
    no_rows,
    place_expression,
)
from dpcausal.vault.engines.duckdb import connect

_NAME = "coerced"


class MemoryEngine:
    """Columns of integers as coercion makes them: `treatment`, `outcome`, `covariate_0` and so on, and `arm`."""

    __slots__ = ("_columns", "_connection", "_lock")

    most_sql_features = 0

    def __init__(self, columns: Batch) -> None:
        self._columns = columns
        self._connection = connect(threads=1)
        self._lock = threading.Lock()  # a connection answers one thread at a time
        table = pa.Table.from_arrays([_arrow(column) for column in columns.values()], names=list(columns))
        self._connection.from_arrow(table).create(_NAME)

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows; see `Engine.aggregate`."""
        place, added = place_expression(cells), ", ".join(f"SUM({number})" for number in sums)
        chosen = "TRUE" if whole else f"treatment < {OUTSIDE}"
        text = f"SELECT {place}, {added} FROM {_NAME} WHERE {chosen} GROUP BY 1"  # noqa: S608
        with self._lock:
            found = self._connection.execute(text).fetchall()
        totals: ExactInts = np.zeros((math.prod(cells.values()), len(sums)), dtype=object)
        for at, *line in found:
            totals[at] = [int(value or 0) for value in line]
        return totals.reshape(*cells.values(), len(sums))

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        rows = self._rows(columns, whole=False)
        total = exact_ints(kernel(no_rows(columns)))
        for start in range(0, len(rows[columns[0]]), BATCH_ROWS):
            batch = {name: column[start : start + BATCH_ROWS] for name, column in rows.items()}
            total = total + exact_ints(kernel(batch))
        return total

    def collect(
        self, columns: Sequence[str], limit: int, kernel: Kernel | None = None, *, whole: bool = False
    ) -> Batch:
        """Return all rows at once; see `Engine.collect`."""
        check_size(len(self._columns["treatment"]), limit)
        rows = self._rows(columns, whole=whole)
        return kernel(rows) if kernel else rows

    def _rows(self, columns: Sequence[str], *, whole: bool) -> Batch:
        rows = self._columns if whole else compared(self._columns)
        return {name: rows[name] for name in columns}


def _arrow(column: NDArray[Any]) -> pa.Array:
    """Return integers as Arrow has them, by their buffer: pa.array() loads pandas to ask whether they are a Series."""
    codes = np.ascontiguousarray(column, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
