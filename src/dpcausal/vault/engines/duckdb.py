"""Adding up with DuckDB: files, frames and streams on one machine, larger than memory if need be."""

import copy
import math
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import duckdb
import numpy as np
import pyarrow as pa

from dpcausal.errors import EngineError, TableError, redact_errors
from dpcausal.vault.coercion import SOURCE, Family, coerced
from dpcausal.vault.engines import (
    BATCH_ROWS,
    MOST_UNITS_IN_FLOATING_POINT,
    OUTSIDE,
    TickExpression,
    check_size,
    compared,
    exact_ints,
    no_rows,
    place_expression,
    ticks_in,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from dpcausal.schema.schema import Schema
    from dpcausal.vault.engines import Batch, ExactInts, Kernel

Passes = Callable[[], AbstractContextManager[duckdb.DuckDBPyRelation]]
"""The table anew for each pass, for one that can be read only once, such as a stream; left when the pass is over."""

_THREAD_MEMORY = 125_000_000
"""Bytes. What DuckDB advises for each thread. With much less a sort that spills fails before it can begin to."""

_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "number"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL"), "wide number"),
    **dict.fromkeys(("DATE", "TIMESTAMP"), "date"),
    "UUID": "key",
    **dict.fromkeys(("VARCHAR", "ENUM"), "text"),
    "BOOLEAN": "boolean",
}
_WITHOUT_STATISTICS = "SET disabled_optimizers = 'statistics_propagation,filter_pushdown,join_filter_pushdown'"
"""DuckDB concludes from a file's statistics what a column cannot hold, and those of parquet files leave NaN out. Then
whether a NaN is seen as one, or its row at all, would depend on other rows (duckdb/duckdb#25521)."""


def connect(
    threads: int | None = None, memory: str | None = None, spill: str | Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a private in-memory DuckDB that fetches nothing and sees no variable of the program.

    Args:
        threads: How many cores it uses; as many as there are, or as the memory is enough for, if left out.
        memory: The most that it holds in memory; DuckDB's own default if left out.
        spill: Where to make the folder for what does not fit, which only its user may read, and which goes with the
            connection; DuckDB's own default, `.tmp` where the process runs, if left out.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "preserve_insertion_order": False,  # no sum depends on it, and DuckDB would hold rows back to keep it
    }
    settings |= {} if threads is None else {"threads": threads}
    connection = duckdb.connect(config=settings | ({} if memory is None else {"memory_limit": memory}))
    if spill is not None:
        connection.execute("SET temp_directory = $folder", {"folder": _private_folder(spill, connection)})
    # So that its share can be asked for. The order matters: DuckDB would print the progress even of a SET that is slow.
    with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets it has no bar, and no share
        connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")
    if memory is not None:
        # Otherwise each thread holds a whole row group of a parquet file, which may be of any size.
        connection.execute("SET disable_parquet_prefetching = true")
        if threads is None:
            asked = "SELECT current_setting('threads'), parse_formatted_bytes($memory)"
            ((usual, size),) = connection.execute(asked, {"memory": memory}).fetchall()
            connection.execute(f"SET threads = {max(1, min(usual, size // _THREAD_MEMORY))}")
    return connection


def _private_folder(within: str | Path, owner: object) -> str:
    """Return a folder that only this user may read, and that is removed when its owner is gone."""
    try:
        folder = tempfile.mkdtemp(prefix="dpcausal-", dir=within)
    except OSError:
        raise TableError(
            problem=f"No folder can be made in {str(within)!r} for what does not fit into memory",
            hint="name a folder that exists and that you may write to: Resources(spill=…).",
        ) from None
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


class DuckDBEngine:
    """A DuckDB relation seen through a schema.

    Attributes:
        most_sql_features: See `adds_products`. Measured: with one feature SQL takes 0.86 of a kernel's time, with three
            1.2, with ten 2.
    """

    most_sql_features = 1

    __slots__ = (
        "_batch",
        "_connection",
        "_families",
        "_lock",
        "_outside",
        "_passes",
        "_schema",
        "_seen",
        "_streams",
        "_units",
        "_view",
    )

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        schema: "Schema",
        batch: int = BATCH_ROWS,
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
        passes: Passes | None = None,
    ) -> None:
        """Open an engine over a relation.

        Args:
            relation: The table; with `passes` only its columns.
            batch: How many rows a kernel sees at once.
            connection: Where the relation comes from, if that is a connection of our own: it is kept open, and tells
                how far a pass is.
            passes: What gives the table for each pass, if it is not the relation itself.
        """
        self._batch, self._connection = batch, connection
        self._lock = threading.Lock()  # a relation answers one thread at a time
        self._passes = passes or (lambda: nullcontext(relation))
        self._seen: int | None = None
        self._streams = passes is not None
        self._units: int | None = None
        self._view = connection if passes is None and connection is not None and _has_view(relation) else None
        self._schema, self._families = schema, families_of(relation)
        self._outside = schema.units_may_be_outside
        self._coerced()  # raises now what it would raise later

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> "ExactInts":
        """Return sums over groups of rows; see `Engine.aggregate`."""
        text = self.query(cells, sums, whole=whole, floating=self._may_float(sums))
        totals: ExactInts = np.zeros((math.prod(cells.values()), len(sums)), dtype=object)
        for at, *line in self._fetched(text):
            totals[at] = [int(value or 0) for value in line]
        if whole and "1" in sums:
            self._units = int(totals[:, sums.index("1")].sum())
        return totals.reshape(*cells.values(), len(sums))

    def query(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool, floating: bool) -> str:
        """Return the text of the query that adds up, in floating point or not."""
        place = _place(cells)
        numbers = [each.floating if floating and isinstance(each, TickExpression) else each for each in sums]
        added = ", ".join("COUNT(*)" if number == "1" else f"SUM({number})" for number in numbers)
        compared = f"treatment < {OUTSIDE}" if self._outside and not whole else "TRUE"
        source = self._coerced(place, compared, *numbers, floating=floating)
        text = f"SELECT {place}, {added} FROM ({source}) WHERE {compared}"  # noqa: S608 (no outside text)
        return f"{text} GROUP BY ALL" if cells else text

    def _may_float(self, sums: Sequence[str]) -> bool:
        """Return whether sums are exact in floating point: by their expressions and the number of units, all public."""
        if self._streams or self._schema.unit is not None:  # sending or sorting rows takes longer than adding them up
            return False
        if not may_be_floating(sums):
            return False
        if self._units is None:
            self.aggregate({}, ["1"], whole=True)
        return self._units is not None and self._units <= MOST_UNITS_IN_FLOATING_POINT

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> "ExactInts":
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        total = exact_ints(kernel(no_rows(columns)))
        with closing(self._batches(columns)) as batches:
            for batch in batches:
                total = total + exact_ints(kernel(batch))
        return total

    def collect(
        self, columns: Sequence[str], limit: int, kernel: "Kernel | None" = None, *, whole: bool = False
    ) -> "Batch":
        """Return all rows at once; see `Engine.collect`."""
        check_size(int(self.aggregate({}, ["1"], whole=True)[0]), limit)
        make = kernel or (lambda batch: {name: batch[name] for name in columns})
        with closing(self._batches(columns, whole=whole)) as batches:
            parts = [make(no_rows(columns)), *map(make, batches)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def with_schema(self, schema: "Schema") -> Self:
        """Return the same table seen through another schema; see `with_schema` of the engines."""
        other = copy.copy(self)  # which shares the lock: a relation answers one thread at a time
        other._schema, other._outside = schema, schema.units_may_be_outside  # noqa: SLF001 (its own copy)
        other._coerced()  # noqa: SLF001 (its own copy)
        return other

    @property
    def families(self) -> Mapping[str, Family]:
        """What the table's columns' types let one do with them."""
        return self._families

    def look(self, text: str) -> list[Any]:
        """Return what a query of the table as it stands gives, for `vault.readers.inspection` alone."""
        with self._query(text) as found:
            return found.fetchall()

    def share(self, units: int) -> float | None:
        """Return how much of the pass under way is done, where that is known: of n units, or as DuckDB estimates."""
        if self._seen is not None:
            return self._seen / units if self._seen and units else None
        done = self._connection.query_progress() if self._connection else -1.0
        return done / 100 if done >= 0 else None

    def _batches(self, columns: Sequence[str], *, whole: bool = False) -> "Generator[Batch, None, None]":
        """Yield some rows at a time. Those outside the comparison too, so that progress shows nothing of them."""
        read = columns if whole or not self._outside else tuple(dict.fromkeys((*columns, "treatment")))
        with self._query(self._select(read)) as found:
            self._seen = seen = 0
            try:
                with found.to_arrow_reader(self._batch) as reader:
                    for batch in reader:
                        rows = {name: ticks_in(batch.column(name)) for name in read}
                        yield rows if read is columns else compared(rows)
                        self._seen = seen = seen + batch.num_rows
            finally:
                self._seen = None

    def _select(self, columns: Sequence[str]) -> str:
        return f"SELECT {', '.join(columns)} FROM ({self._coerced(*columns)})"  # noqa: S608 (no outside text)

    def _coerced(self, *expressions: str, floating: bool = False) -> str:
        """Return the coerced table with only the columns in some expressions: DuckDB is slow to plan a long text."""
        used = re.findall(r"\w+", " ".join(expressions))
        return coerced(self._schema, self._families, only=used, floating=floating)

    def _fetched(self, text: str) -> list[tuple[Any, ...]]:
        """Return all of a small result; from a view where there is one: DuckDB parses and binds its text only once."""
        if self._view is None:
            with self._query(text) as found:
                return found.fetchall()
        with self._lock, _silenced():
            self._view.execute(_WITHOUT_STATISTICS)
            return self._view.execute(text).fetchall()

    @contextmanager
    def _query(self, text: str) -> "Iterator[duckdb.DuckDBPyRelation]":
        """Return one pass over the table; from a view where there is one, which DuckDB plans in half the time."""
        if self._view is not None:
            with self._lock, _silenced():
                self._view.execute(_WITHOUT_STATISTICS)
                yield self._view.sql(text)
            return
        with self._lock, _silenced(), self._passes() as relation:
            try:  # before each reading, since the connection may be somebody else's
                relation.query(SOURCE, _WITHOUT_STATISTICS)
            except duckdb.InvalidInputException as error:
                if "locked" not in str(error):
                    raise
                raise TableError(
                    problem="The configuration of this DuckDB connection is locked, so that its optimizers cannot be "
                    "switched off",
                    hint="open the table from a connection without lock_configuration.",
                ) from None
            yield cast("duckdb.DuckDBPyRelation", relation.query(SOURCE, text))

    def __repr__(self) -> str:
        return "DuckDBEngine"


def may_be_floating(sums: Sequence[str]) -> bool:
    """Return whether all of some expressions can be added up in floating point, and it is of use for one of them."""
    return all(each == "1" or isinstance(each, TickExpression) for each in sums) and not set(sums) <= {"1"}


def _has_view(relation: duckdb.DuckDBPyRelation) -> bool:
    """Make a relation of a connection of our own a view of it; return whether it can be one."""
    try:
        relation.create_view(SOURCE, replace=True)
    except duckdb.Error:
        return False
    return True


def _place(cells: Mapping[str, int]) -> str:
    """Return the place of a row's cell among all, as an SQL expression. DuckDB is fastest with keys of one byte."""
    return f"CAST({place_expression(cells)} AS {'TINYINT' if math.prod(cells.values()) <= 127 else 'BIGINT'})"


def families_of(relation: duckdb.DuckDBPyRelation) -> dict[str, Family]:
    """Return the columns of a relation, each with what its type lets one do with it."""
    return {name: _family(str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _family(kind: str) -> Family:
    if kind.endswith("]"):
        return "other"
    return _FAMILIES.get(kind.partition("(")[0]) or ("key" if kind.startswith("TIMESTAMP") else "other")


def _silenced() -> AbstractContextManager[None]:
    """Keep DuckDB's own message in: it may quote a row. While batches are read it comes in an error of Arrow's."""
    return redact_errors(duckdb.Error, pa.ArrowException, OSError, instead=_failure)


def _failure(_: Exception) -> EngineError:
    return EngineError(
        problem="The engine could not add up the table, and its message is withheld because it may quote the table",
        hint="check that the file or database is whole and readable, and that there is enough disk and memory.",
    )
