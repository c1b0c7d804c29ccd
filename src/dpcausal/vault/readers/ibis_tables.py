"""Tables of Ibis: expressions over the tables of a warehouse, which adds up what it can."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from dpcausal.errors import EngineError, TableError, redact_errors
from dpcausal.vault.coercion import SOURCE, Family, check_columns, columns_used
from dpcausal.vault.engines import BATCH_ROWS
from dpcausal.vault.readers.frames import valid_text

if TYPE_CHECKING:
    import duckdb
    from ibis.expr import datatypes as dt
    from ibis.expr import types as ir

    from dpcausal.schema.schema import Schema
    from dpcausal.vault.engines.warehouse import Warehouse

_ADDING = ("bigquery", "clickhouse", "databricks", "postgres", "snowflake", "trino")
"""Warehouses that add up themselves, by Ibis's names. Rows of any other are streamed."""


def is_ibis_table(table: object) -> "TypeGuard[ir.Table]":
    """Return whether a table is an expression of Ibis; does not import Ibis where nothing else has."""
    return isinstance(table, getattr(sys.modules.get("ibis.expr.types"), "Table", ()))


class IbisTable:
    """The declared columns of a table expression.

    Every pass runs the expression anew. It must give the same rows at every pass, and fail at no value.
    """

    __slots__ = ("_backend", "_table", "columns")

    def __init__(self, table: "ir.Table", schema: "Schema") -> None:
        used = columns_used(schema)
        with _silenced():
            self._backend, kinds = table.get_backend(), table.schema()
        check_columns(used, list(kinds))
        for name in used:
            if not (kinds[name].is_numeric() or kinds[name].is_boolean() or kinds[name].is_string()):
                raise TableError(
                    problem=f"The column {name!r} must hold numbers, booleans or text, and has the type {kinds[name]}",
                    hint="convert it in the expression: a date to the number of days since another one, a key to text.",
                )
        self._table = table.select(*used)
        self.columns = self._table.schema().to_pyarrow().empty_table()

    @property
    def relation(self) -> "duckdb.DuckDBPyRelation | None":
        """The same table for DuckDB's own engine, if that is where it is; otherwise None."""
        if self._backend.name != "duckdb":
            return None
        with _silenced():
            self._backend._run_pre_execute_hooks(self._table)  # noqa: SLF001 (makes tables in memory known to DuckDB)
            relation: duckdb.DuckDBPyRelation = self._backend.con.sql(self._backend.compile(self._table))
        return relation

    @property
    def warehouse(self) -> "Warehouse | None":
        """The table for sums that the warehouse adds up; None if it does not."""
        from dpcausal.vault.engines.warehouse import Warehouse  # noqa: PLC0415 (an extra)

        if self._backend.name not in _ADDING:
            return None
        families = {name: _family(kind) for name, kind in self._table.schema().items()}
        return Warehouse(families, self._backend.name, self._lines)

    @contextmanager
    def read(self) -> Iterator[object]:
        """Return the stream for one pass."""
        with _silenced():
            found = self._backend.to_pyarrow_batches(self._table, chunk_size=BATCH_ROWS)
        with found:  # an error while batches come passes through DuckDB, which withholds it
            kinds = pa.schema([(field.name, _as_sent(field.type)) for field in found.schema])
            yield pa.RecordBatchReader.from_batches(kinds, (_readable(batch, kinds) for batch in found))

    def _lines(self, text: str, names: Sequence[str]) -> list[Sequence[Any]]:
        """Return the lines of a query; see `Warehouse`."""
        with _silenced():
            found = self._backend.to_pyarrow(query_of(self._table, text, names))
        return [tuple(line.values()) for line in found.to_pylist()]

    def __repr__(self) -> str:
        return "IbisTable"


def query_of(table: "ir.Table", text: str, names: Sequence[str]) -> "ir.Table":
    """Return a query of a table, given as a text that Ibis passes on as it is, as an expression of Ibis."""
    import ibis  # noqa: PLC0415 (an extra)
    from ibis.expr import operations as ops  # noqa: PLC0415

    source = table.alias(SOURCE).op()
    return ops.SQLStringView(source, text, ibis.schema(dict.fromkeys(names, "string"))).to_expr()


def _family(kind: "dt.DataType") -> Family:
    """Return what a column's type lets one do with it in a warehouse."""
    from dpcausal.vault.engines.warehouse import MOST_DIGITS  # noqa: PLC0415 (an extra)

    if kind.is_boolean():
        return "boolean"
    if kind.is_integer():
        return "integer" if kind.is_signed_integer() or kind.nbytes < 8 else "other"
    if kind.is_decimal():
        return "number" if kind.precision and kind.precision <= MOST_DIGITS else "other"
    if kind.is_floating():
        return "number" if kind.nbytes >= 4 else "other"
    return "text" if kind.is_string() else "other"


def _as_sent(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else kind


def _readable(batch: pa.RecordBatch, kinds: pa.Schema) -> pa.RecordBatch:
    """Return a batch whose texts DuckDB can read, whatever bytes they are made of."""
    columns = [
        valid_text(column) if pa.types.is_large_string(field.type) else column
        for column, field in zip(batch.columns, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=kinds)


def _silenced() -> AbstractContextManager[None]:
    """Keep the driver's own message in: it may quote a row, or an address with its password."""
    return redact_errors(Exception, instead=_failure)


def _failure(_: Exception) -> EngineError:
    return EngineError(
        problem="The warehouse could not add up the table, and its message is withheld because it may quote the table",
        hint="look into the warehouse's own log; check the table's name, your right to read it, and the connection.",
    )
