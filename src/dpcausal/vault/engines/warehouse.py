"""Adding up in a warehouse: the server adds up, and no row leaves it."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import ibis
import numpy as np

from dpcausal.columns import Indicator
from dpcausal.real import Real
from dpcausal.treatment import table_column
from dpcausal.vault.coercion import Family, coerced, column_names, columns_behind
from dpcausal.vault.engines import OUTSIDE, place_expression
from dpcausal.vault.engines.expressions import IBIS, selected, stages, values

if TYPE_CHECKING:
    from ibis.expr import datatypes as dt
    from ibis.expr import types as ir
    from numpy.typing import NDArray

    from dpcausal.columns import Column
    from dpcausal.schema import Schema
    from dpcausal.treatment import EveryArm, Treatment
    from dpcausal.vault.engines import Batch, ExactInts
    from dpcausal.vault.engines.duckdb import DuckDBEngine

_MOST_DIGITS = 15
"""Of a decimal number, so that its nearest DOUBLE is one division of two whole numbers that a DOUBLE holds."""


@dataclass(frozen=True)
class Warehouse:
    """A table of a warehouse, and how queries are run there.

    Attributes:
        table: The table as an Ibis expression, with the declared columns that the warehouse may read.
        run: Runs a query, given as steps of which each selects from the one before it; returns the last one's lines.
        addend: The type of numbers that are added up. Sums of 64 bits wrap around in some warehouses and fail in
            others.
        by_name: Whether a step knows the one before it as a table named `step_0`, `step_1` and so on; otherwise it
            contains it.
    """

    table: "ir.Table"
    run: "Callable[[Sequence[ir.Table]], Sequence[Sequence[Any]]]"
    addend: str = "decimal(38, 0)"
    by_name: bool = False


class WarehouseEngine:
    """A table of a warehouse seen through a schema.

    Sums are added up by the warehouse. What needs the rows is streamed to DuckDB on this machine: kernels, units with
    several records, and sums over columns that warehouses do not read alike. Types and declarations decide on that.

    Attributes:
        most_sql_features: See `adds_products`. Warehouses run no Python.
    """

    most_sql_features = math.inf

    __slots__ = ("_families", "_here", "_schema", "_streamed", "_warehouse")

    def __init__(self, warehouse: Warehouse, schema: "Schema", streamed: "DuckDBEngine") -> None:
        """Open an engine over a table.

        Args:
            warehouse: The table.
            schema: What is public about it.
            streamed: The same table as DuckDB reads it.
        """
        self._warehouse, self._schema, self._streamed = warehouse, schema, streamed
        own = {name: _family(kind) for name, kind in warehouse.table.schema().items()}
        columns = dict(zip(column_names(schema), (*schema.columns, schema.treatment.every_arm), strict=True))
        self._here = frozenset(
            name for name, column in columns.items() if _read_alike(column, own.get(table_column(column), "other"))
        )
        read = {table_column(columns[name]) for name in self._here}
        self._families = {name: own[name] if name in read else each for name, each in streamed.families.items()}

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> "ExactInts":
        """Return sums over groups of rows; see `Engine.aggregate`."""
        outside = self._schema.units_may_be_outside and not whole
        used = set(column_names(self._schema)) & set(re.findall(r"\w+", " ".join((*cells, *sums))))
        used |= {"treatment"} if outside or not used else set()
        behind = columns_behind(self._schema, used)
        if self._schema.unit is not None or not behind <= self._here:
            return self._streamed.aggregate(cells, sums, whole=whole)
        totals: ExactInts = np.zeros((math.prod(cells.values()), len(sums)), dtype=object)
        for line in self._warehouse.run(self._steps(used, outside, cells, sums)):
            at, *added = map(int, (each or 0 for each in line))
            totals[at] = added
        return totals.reshape(*cells.values(), len(sums))

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> "ExactInts":
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        return self._streamed.fold(columns, kernel)

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: "Callable[[Batch], Batch] | None" = None,
        *,
        whole: bool = False,
    ) -> "Batch":
        """Return all rows at once; see `Engine.collect`."""
        return self._streamed.collect(columns, limit, kernel, whole=whole)

    def with_schema(self, schema: "Schema") -> Self:
        """Return the same table seen through another schema; see `SchemaEngine.with_schema`."""
        return type(self)(self._warehouse, schema, self._streamed.with_schema(schema))

    def share(self, units: int) -> float | None:
        """Return how much of the pass under way is done, where that is known."""
        return self._streamed.share(units)

    @property
    def streamed(self) -> "DuckDBEngine":
        """The same table as DuckDB reads it."""
        return self._streamed

    def _steps(self, used: set[str], outside: bool, cells: Mapping[str, int], sums: Sequence[str]) -> "list[ir.Table]":
        """Return what becomes of the table step by step until it is coerced, and the sums of that."""
        steps: list[ir.Table] = []
        table = self._warehouse.table
        folded, *rest = stages(coerced(self._schema, self._families, IBIS, only=used))
        for group in ([folded], rest):
            for columns in group:
                table = selected(table, columns)
            # Of numbers the first step is only another name, and is left in one with the next ones.
            if group is rest or self._has_text(columns_behind(self._schema, used)):
                steps.append(table)
                table = self._named(table, len(steps) - 1)
        rows = table.filter(table["treatment"] < OUTSIDE) if outside else table
        place, *numbers = values([place_expression(cells), *sums], rows)
        addend, added = self._warehouse.addend, {}
        for at, number in enumerate(numbers):
            total = rows.count() if sums[at] == "1" else number.cast(addend).sum()
            added[f"sum_{at}"] = total.cast("string")  # so that none is too wide for what a driver makes of it
        if cells:
            return [*steps, rows.group_by(place=place).aggregate(**added)]
        whole = rows.aggregate(**added)
        return [*steps, whole.select(place=place, **{name: whole[name] for name in added})]

    def _has_text(self, used: Collection[str]) -> bool:
        columns = dict(zip(column_names(self._schema), (*self._schema.columns, self._schema.treatment), strict=True))
        return any(self._families[table_column(columns[name])] == "text" for name in used)

    def _named(self, table: "ir.Table", place: int) -> "ir.Table":
        """Return a step as the next one knows it."""
        return ibis.table(table.schema(), name=f"step_{place}") if self._warehouse.by_name else table

    def __repr__(self) -> str:
        return "WarehouseEngine"


def _family(kind: "dt.DataType") -> Family:
    """Return what a column's type lets one do with it in a warehouse."""
    if kind.is_boolean():
        return "boolean"
    if kind.is_integer():
        return "integer" if kind.is_signed_integer() or kind.nbytes < 8 else "other"
    if kind.is_decimal():
        return "number" if kind.precision and kind.precision <= _MOST_DIGITS else "other"
    if kind.is_floating():
        return "number" if kind.nbytes >= 4 else "other"
    return "text" if kind.is_string() or kind.is_unknown() else "other"


def _read_alike(column: "Column | Treatment | EveryArm | Indicator", family: Family) -> bool:
    """Return whether every warehouse reads a column as DuckDB does: numbers as such, and listed texts.

    Numbers and dates in texts are not: warehouses differ in what they take for one, and some fail at the others.
    """
    held = column.of if isinstance(column, Indicator) else column
    if isinstance(held, Real) or not isinstance(held.values[0], str):
        return family in ("integer", "number", "boolean") and not (isinstance(held, Real) and held.since)
    return family == "text" and all(_is_text(way) for ways in held.spellings for way in ways)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
