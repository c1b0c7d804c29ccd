"""Adding up with DuckDB: files and frames on one machine, larger than memory if need be."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import duckdb
import numpy as np

from dpcausal.errors import EngineError, TableError
from dpcausal.vault.coercion import SOURCE, Family, coerced
from dpcausal.vault.engines import integers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dpcausal.schema import Schema
    from dpcausal.vault.engines import Batch, Integers

_BATCH_ROWS = 65_536
_NUMBERS = frozenset({
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
    "FLOAT", "DOUBLE", "DECIMAL",
})  # fmt: skip
_WITHOUT_STATISTICS = "SET disabled_optimizers = 'statistics_propagation,filter_pushdown,join_filter_pushdown'"
"""DuckDB concludes from a file's statistics what a column cannot hold, and those of parquet files leave NaN out. Then
whether a NaN is seen as one, or its row at all, would depend on other rows (duckdb/duckdb#25521)."""


def connect(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A private in-memory DuckDB that fetches nothing and sees no variable of the program."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    return duckdb.connect(config=settings | ({} if threads is None else {"threads": threads}))


class DuckDBEngine:
    """A DuckDB relation seen through a schema."""

    __slots__ = ("_batch", "_coerced", "_lock", "_relation")

    def __init__(self, relation: duckdb.DuckDBPyRelation, schema: "Schema", batch: int = _BATCH_ROWS) -> None:
        self._batch = batch
        self._lock = threading.Lock()  # a relation answers one thread at a time
        types = zip(relation.columns, relation.types, strict=True)
        self._relation = relation
        self._coerced = coerced(schema, {name: _family(str(kind)) for name, kind in types})

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str]) -> "Integers":
        """Sums over groups of rows; see `Engine.aggregate`."""
        keys = ", ".join(cells)
        added = ", ".join(f"SUM({expression})" for expression in sums)
        text = f"SELECT {keys}{', ' if keys else ''}{added} FROM ({self._coerced})"  # noqa: S608 (no outside text)
        totals: Integers = np.zeros((*cells.values(), len(sums)), dtype=object)
        with self._lock, _silenced():
            for line in self._query(f"{text} GROUP BY {keys}" if keys else text).fetchall():
                totals[tuple(line[: len(cells)])] = [int(value or 0) for value in line[len(cells) :]]
        return totals

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> "Integers":
        """The sum of a kernel over batches; see `Engine.fold`."""
        nothing = {name: np.zeros(0, dtype=np.int64) for name in columns}
        total = integers(kernel(nothing))
        with self._lock, _silenced():
            for batch in self._query(self._select(columns)).to_arrow_reader(self._batch):
                arrays = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                total = total + integers(kernel(arrays))
        return total

    def collect(self, columns: Sequence[str], limit: int) -> "Batch":
        """All rows at once; see `Engine.collect`."""
        size = int(self.aggregate({}, ["1"])[0])
        if size > limit:
            raise TableError(
                expected=f"at most {limit:,} units for a question that must see them side by side",
                got=f"{size:,}",
                hint="ask a question that can be added up, such as a stratification.",
            )
        with self._lock, _silenced():
            whole = self._query(self._select(columns)).to_arrow_table()
            return {name: whole.column(name).to_numpy() for name in columns}

    def _select(self, columns: Sequence[str]) -> str:
        return f"SELECT {', '.join(columns)} FROM ({self._coerced})"  # noqa: S608 (no outside text)

    def _query(self, text: str) -> duckdb.DuckDBPyRelation:
        try:  # before each reading, since the connection may be somebody else's
            self._relation.query(SOURCE, _WITHOUT_STATISTICS)
        except duckdb.InvalidInputException as error:
            if "locked" not in str(error):
                raise
            raise TableError(
                expected="a DuckDB connection in which optimizers can be switched off",
                got="one whose configuration is locked",
                hint="open the table from a connection without lock_configuration.",
            ) from None
        return cast("duckdb.DuckDBPyRelation", self._relation.query(SOURCE, text))

    def __repr__(self) -> str:
        return "DuckDBEngine"


def _family(kind: str) -> Family:
    if kind.partition("(")[0] in _NUMBERS:
        return "number"
    if kind == "BOOLEAN":
        return "boolean"
    if kind in ("DATE", "UUID") or kind.startswith("TIMESTAMP"):
        return "key"
    return "text" if kind == "VARCHAR" or kind.startswith("ENUM") else "other"


@contextmanager
def _silenced() -> "Iterator[None]":
    """Keep DuckDB's own message in: it may quote a row."""
    try:
        yield
    except duckdb.Error:
        raise EngineError(
            expected="the engine to add up the table",
            got="a failure, whose message is withheld because it may quote the table",
            hint="check that the file or database is whole and readable, and that there is enough disk and memory.",
        ) from None
