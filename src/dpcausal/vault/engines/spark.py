"""Adding up with Spark: tables that are spread over many machines, where their rows stay."""

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
import pyarrow as pa

from dpcausal.errors import EngineError, redact_errors
from dpcausal.vault.coercion import Family, check_columns, coerced, columns_used
from dpcausal.vault.engines import BATCH_ROWS, OUTSIDE, check_size, exact_ints, no_rows, ticks_in
from dpcausal.vault.engines.dialects import SPARK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from dpcausal.schema.schema import Schema
    from dpcausal.vault.engines import Batch, ExactInts, Kernel

Got = TypeVar("Got")

_HALF = 20
_MOST_SUMS = 20
"""How many expressions are added up in one pass, which reads the columns of these alone. Measured at a million rows: 40
in one pass took twice the processor time of two passes of 20, 60 more than three times that of three, 30 the same."""

_PROBES = 8
"""Tasks that look whether workers can run a kernel; Spark decides which workers get them."""

_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "char", "varchar"), "text"),
    **dict.fromkeys(("date", "timestamp_ntz"), "date"),
    "timestamp": "key",  # whose day depends on a time zone
    "boolean": "boolean",
}


def is_spark_frame(table: object) -> "TypeGuard[DataFrame]":
    """Return whether a table is a frame of Spark or Spark Connect; does not import Spark where nothing else has."""
    return isinstance(table, getattr(sys.modules.get("pyspark.sql"), "DataFrame", ()))


class SparkEngine:
    """A frame of Spark, or of Spark Connect, seen through a schema.

    Only sums, and rows where `collect` is asked for them, come to the driver. Every question reads the frame anew:

    - It must give the same rows at every pass. Write one that is sampled, or whose source still changes, to a
      table first; persist one that takes long to make.
    - It must not fail at any value, since failing tells of it: TRY_CAST where it casts.
    - Workers run the same versions of Python and of this package as this program does.

    Spark keeps a log of its own, which may quote rows when something fails: it is for whoever may see the table.

    Attributes:
        most_sql_features: See `adds_products`. SQL needs no Python on workers, and a pass for every 20 products.
    """

    most_sql_features = 10

    __slots__ = ("_checked", "_compared", "_frame", "_whole")

    def __init__(self, frame: "DataFrame", schema: "Schema") -> None:
        self._checked = False
        fields = _silenced(lambda: frame.schema.fields)
        names, used = [field.name for field in fields], columns_used(schema)
        check_columns(used, names)
        kinds = (field.dataType.simpleString() for field in fields)
        text = coerced(schema, {name: _family(kind) for name, kind in zip(names, kinds, strict=True)}, SPARK)

        def opened() -> "DataFrame":
            # By place, since a name may hold anything, and names that are not used may stand twice.
            renamed = frame.toDF(*map(SPARK.column, names)).select(*map(SPARK.column, used))
            return frame.sparkSession.sql(text, dpcausal_source=renamed)

        self._frame, self._whole = frame, _silenced(opened)
        outside = schema.units_may_be_outside
        self._compared = _silenced(lambda: self._whole.where(f"treatment < {OUTSIDE}")) if outside else self._whole

    def with_schema(self, schema: "Schema") -> "SparkEngine":
        """Return the same frame seen through another schema; see `with_schema` of the engines."""
        return SparkEngine(self._frame, schema)

    def check_workers(self) -> None:
        """Raise unless workers have this package in this version, and what it needs. The table is not read."""
        if self._checked:
            return
        own, failure = f"Python {sys.version_info.major}.{sys.version_info.minor}, dpcausal {version('dpcausal')}", ""
        try:
            numbers = self._frame.sparkSession.range(0, _PROBES, 1, _PROBES)
            found = {line[0] for line in numbers.mapInArrow(_probe(), "found STRING").collect()}
        except Exception as error:  # noqa: BLE001 (of Java, gRPC or a socket; it speaks of a made-up frame)
            found, failure = set(), _reason(str(error))
        if found != {own}:
            raise EngineError(
                problem=f"Spark workers need {own}, and have {failure or ', '.join(sorted(found))}",
                hint="install dpcausal on every worker, in the same Python (PYSPARK_PYTHON, spark.pyspark.python). "
                "Nothing was debited. Means, strata and regressions on up to ten features need no Python on workers.",
            )
        self._checked = True

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> "ExactInts":
        """Return sums over groups of rows; see `Engine.aggregate`.

        Spark adds up in 64 bits and fails beyond. So numbers, which are below 2^41 in size, are cut in two halves:
        the sums of 2^41 of either fit.
        """
        totals: ExactInts = np.zeros((*cells.values(), len(sums)), dtype=object)
        for start in range(0, len(sums), _MOST_SUMS):
            places = slice(start, start + _MOST_SUMS)
            for cell, added in self._added(cells, sums[places], whole=whole):
                totals[cell][places] = added
        return totals

    def _added(
        self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool
    ) -> "Iterator[tuple[tuple[int, ...], list[int]]]":
        """Yield each cell that has rows, with its sums, from one pass."""
        text, coerced = sums_query(cells, sums), self._whole if whole else self._compared
        for line in _silenced(lambda: coerced.sparkSession.sql(text, coerced=coerced).collect()):
            added = [int(value or 0) for value in line[len(cells) :]]
            pairs = zip(added[::2], added[1::2], strict=True)
            yield tuple(line[: len(cells)]), [(high << _HALF) + low for high, low in pairs]

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> "ExactInts":
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        total = exact_ints(kernel(no_rows(columns)))
        parts = partial(_folded, kernel)
        for line in _silenced(lambda: self._compared.select(*columns).mapInArrow(parts, "sums STRING").collect()):
            part = np.array([int(each) for each in line[0].split()], dtype=object)
            total = total + part.reshape(total.shape)
        return total

    def collect(
        self, columns: Sequence[str], limit: int, kernel: "Kernel | None" = None, *, whole: bool = False
    ) -> "Batch":
        """Return all rows at once; see `Engine.collect`."""
        check_size(int(self.aggregate({}, ["1"], whole=True)[0]), limit)
        names = list(columns if kernel is None else kernel(no_rows(columns)))

        def brought() -> pa.Table:
            rows = (self._whole if whole else self._compared).select(*columns)
            if kernel is None:
                return rows.toArrow()
            kinds = ", ".join(f"column_{place} BIGINT" for place in range(len(names)))
            return rows.mapInArrow(partial(_made, kernel), kinds).toArrow()

        found = _silenced(brought)
        return {name: ticks_in(found.column(place)) for place, name in enumerate(names)}

    def __repr__(self) -> str:
        return "SparkEngine"


def _probe() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what workers are asked: a function that is sent as it is, so that one without this package can run it."""

    def probe(given: Iterable[Any]) -> Iterator[Any]:
        import sys  # noqa: PLC0415 (on the worker)
        from importlib.metadata import version  # noqa: PLC0415

        import pyarrow  # noqa: PLC0415, ICN001

        import dpcausal.vault.engines.spark  # noqa: F401, PLC0415, PLW0406

        found = f"Python {sys.version_info.major}.{sys.version_info.minor}, dpcausal {version('dpcausal')}"
        for batch in given:
            yield pyarrow.RecordBatch.from_pydict({"found": [found] * batch.num_rows})

    return probe


def _reason(message: str) -> str:
    """Return why workers cannot run a kernel, from the message of the probe, which never sees the table."""
    missing = re.search(r"No module named '([\w.]+)'", message)
    if missing:
        return f"no module {missing[1]!r} there"
    return "another version of Python there" if "PYTHON_VERSION_MISMATCH" in message else "a probe that failed"


def _family(kind: str) -> Family:
    return _FAMILIES.get(kind.partition("(")[0].partition(" ")[0], "other")


def sums_query(cells: Mapping[str, int], sums: Sequence[str]) -> str:
    """Return the text of the query that adds up the halves of some expressions."""
    keys = ", ".join(cells)
    halves = ", ".join(f"SUM({half})" for expression in sums for half in _halves(expression))
    text = f"SELECT {keys}{', ' if keys else ''}{halves} FROM {{coerced}}"  # noqa: S608 (no outside text)
    return f"{text} GROUP BY {keys}" if keys else text


def _halves(expression: str) -> tuple[str, str]:
    whole = f"CAST({expression} AS BIGINT)"
    return f"shiftright({whole}, {_HALF})", f"{whole} & {2**_HALF - 1}"


def _batches(given: Iterable[pa.RecordBatch]) -> "Iterator[Batch]":
    """Yield rows as they come on a worker, no more at once than kernels are exact for, whatever Spark is set to."""
    for batch in given:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            piece = batch.slice(start, BATCH_ROWS)
            yield {name: ticks_in(piece.column(name)) for name in piece.schema.names}


def _folded(kernel: "Callable[[Batch], NDArray[Any]]", given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield one partition's sum, as text, since integers may be of any size; nothing for a partition without rows."""
    parts = (exact_ints(kernel(batch)) for batch in _batches(given))
    total = next(parts, None)
    if total is not None:
        for part in parts:
            total = total + part
        yield pa.RecordBatch.from_pydict({"sums": [" ".join(map(str, total.ravel()))]})


def _made(kernel: "Callable[[Batch], Batch]", given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in _batches(given):
        columns = kernel(batch).values()
        yield pa.RecordBatch.from_pydict(
            {f"column_{place}": pa.array(column, pa.int64()) for place, column in enumerate(columns)}
        )


_AT_WORK: ContextVar[bool] = ContextVar("at_work", default=False)


def _is_not_ours(_: logging.LogRecord) -> bool:
    return not _AT_WORK.get()


def _silenced(work: Callable[[], Got]) -> Got:
    """Return what Spark makes of some work, without its messages: they may quote a row."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 (an extra)

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):  # what errors are written to as they are made
        PySparkLogger.getLogger(name).addFilter(_is_not_ours)
    before = _AT_WORK.set(True)
    try:
        with redact_errors(Exception, instead=_failure):  # of Java, gRPC, Arrow or a socket
            return work()
    finally:
        _AT_WORK.reset(before)


def _failure(_: Exception) -> EngineError:
    return EngineError(
        problem="Spark could not add up the table, and its message is withheld because it may quote the table",
        hint="look into Spark's own log; check that its workers run the same Python and dpcausal as this program does.",
    )
