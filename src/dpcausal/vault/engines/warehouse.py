"""Adding up in a warehouse: the server adds up, and no row leaves it."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sqlglot
from sqlglot import expressions as sge

from dpcausal.schema.columns import Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import table_column
from dpcausal.vault.coercion import Family, coerced, column_names, columns_behind
from dpcausal.vault.engines import OUTSIDE, place_expression
from dpcausal.vault.engines.expressions import WAREHOUSE, parsed, printed
from dpcausal.vault.engines.ranges import Rules, query_ranges, source_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcausal.schema.columns import Column
    from dpcausal.schema.schema import Schema
    from dpcausal.schema.treatment import EveryArm, Treatment
    from dpcausal.vault.engines import Batch, ExactInts, Kernel
    from dpcausal.vault.engines.duckdb import DuckDBEngine
    from dpcausal.vault.engines.ranges import Kind

_NUMBERS: tuple[Family, ...] = ("integer", "number", "boolean")

MOST_DIGITS = 15
"""Of a decimal number, so that its nearest DOUBLE is one division of two whole numbers that a DOUBLE holds."""


@dataclass(frozen=True)
class Warehouse:
    """A table of a warehouse, and how queries are run there.

    Attributes:
        families: The declared columns that the warehouse may read, each with what its type lets one do with it.
        dialect: How the warehouse spells SQL, by sqlglot's name.
        run: Runs a query of the table, which it knows as `dpcausal_source`; returns its lines, given the names of its
            columns, which are texts.
    """

    families: Mapping[str, Family]
    dialect: str
    run: Callable[[str, Sequence[str]], Sequence[Sequence[Any]]]


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
        """Open an engine over a table."""
        self._warehouse, self._schema, self._streamed = warehouse, schema, streamed
        own = warehouse.families
        columns = dict(zip(column_names(schema), (*schema.columns, schema.treatment.every_arm), strict=True))
        self._here = frozenset(
            name for name, column in columns.items() if _read_alike(column, own.get(table_column(column), "other"))
        )
        read = {table_column(columns[name]) for name in self._here}
        if schema.claim is not None:
            bucket = schema.claim.layer.column
            if own.get(bucket, "other") not in _NUMBERS:
                self._here = frozenset()
            read |= {bucket} if self._here else set()
        self._families = {name: own[name] if name in read else each for name, each in streamed.families.items()}

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> "ExactInts":
        """Return sums over groups of rows; see `Engine.aggregate`."""
        if self._schema.unit is not None or not self._behind(cells, sums, whole=whole) <= self._here:
            return self._streamed.aggregate(cells, sums, whole=whole)
        totals: ExactInts = np.zeros((math.prod(cells.values()), len(sums)), dtype=object)
        names = ["place", *(f"sum_{at}" for at in range(len(sums)))]
        for line in self._warehouse.run(self.query(cells, sums, whole=whole), names):
            at, *added = map(int, (each or 0 for each in line))
            totals[at] = added
        return totals.reshape(*cells.values(), len(sums))

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> "ExactInts":
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        return self._streamed.fold(columns, kernel)

    def collect(
        self, columns: Sequence[str], limit: int, kernel: "Kernel | None" = None, *, whole: bool = False
    ) -> "Batch":
        """Return all rows at once; see `Engine.collect`."""
        return self._streamed.collect(columns, limit, kernel, whole=whole)

    def with_schema(self, schema: "Schema") -> Self:
        """Return the same table seen through another schema; see `with_schema` of the engines."""
        return type(self)(self._warehouse, schema, self._streamed.with_schema(schema))

    def share(self, units: int) -> float | None:
        """Return how much of the pass under way is done, where that is known."""
        return self._streamed.share(units)

    @property
    def streamed(self) -> "DuckDBEngine":
        """The same table as DuckDB reads it."""
        return self._streamed

    def query(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> str:
        """Return the text of the query that adds up, for columns that the warehouse reads.

        The text is read again as the warehouse's own SQL, and every number in it is shown to be within its type.
        """
        dialect, used = self._warehouse.dialect, self._used(cells, sums, whole=whole)
        rows = parsed(coerced(self._schema, self._families, WAREHOUSE, only=used))
        if dialect == "postgres":
            _compute_once(rows)
        # A sum of 64-bit integers is a numeric in PostgreSQL. Elsewhere it wraps around or fails.
        addend: tuple[Kind, str] = ("wide", "BIGINT") if dialect == "postgres" else ("decimal", "DECIMAL(38, 0)")
        added = ["COUNT(*)" if each == "1" else f"SUM(CAST({each} AS {addend[1]}))" for each in sums]
        # As texts, so that none is too wide for what a driver makes of it.
        columns = [f"CAST({each} AS TEXT) AS sum_{at}" for at, each in enumerate(added)]
        select = parsed(f"SELECT CAST({place_expression(cells)} AS TEXT) AS place, {', '.join(columns)}")
        select = select.from_(rows.subquery("rows"))
        select = select.where(f"treatment < {OUTSIDE}") if self._outside and not whole else select
        text = printed(select.group_by("1") if cells else select, dialect)
        read = {name: self._families[name] for name in self._warehouse.families}
        query_ranges(sqlglot.parse_one(text, dialect=dialect), source_columns(read), Rules({addend[0]: 2**62}))
        return text

    def _used(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool) -> set[str]:
        """Return the coerced columns that a query reads."""
        used = set(column_names(self._schema)) & set(re.findall(r"\w+", " ".join((*cells, *sums))))
        return used | ({"treatment"} if (self._outside and not whole) or not used else set())

    def _behind(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool) -> frozenset[str]:
        """Return the coerced columns whose cells decide on those that a query reads."""
        return columns_behind(self._schema, self._used(cells, sums, whole=whole))

    @property
    def _outside(self) -> bool:
        return self._schema.units_may_be_outside

    def __repr__(self) -> str:
        return "WarehouseEngine"


def _compute_once(rows: sge.Select) -> None:
    """Have PostgreSQL compute coerced columns and folded texts once a row.

    Without OFFSET 0 its planner would put them wherever they are used.
    """
    for select in rows.find_all(sge.Select):
        if select is rows or any(each.find(sge.Anonymous) for each in select.expressions):
            select.set("offset", sge.Offset(expression=sge.Literal.number(0)))


def _read_alike(column: "Column | Treatment | EveryArm | Indicator", family: Family) -> bool:
    """Return whether every warehouse reads a column as DuckDB does: numbers as such, and listed texts.

    Numbers and dates in texts are not: warehouses differ in what they take for one, and some fail at the others.
    """
    held = column.of if isinstance(column, Indicator) else column
    if isinstance(held, Real) or not isinstance(held.values[0], str):
        return family in _NUMBERS and not (isinstance(held, Real) and held.since)
    return family == "text" and all(_is_text(way) for ways in held.spellings for way in ways)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
