"""Engines compute exact aggregates. An engine has three verbs and no opinion on privacy."""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import EngineError, TableError
from dpcausal.schema.mapping import ColumnMapping
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s

OUTSIDE = 2
"""The code of the treatment column for units outside the comparison."""


ExactInts = NDArray[np.object_]
"""Exact Python integers, of any size."""

Batch = Mapping[str, Int64s]
"""Some rows, column by column, as the integers that coercion made of them."""

BATCH_ROWS = 65_536
"""The most rows that a kernel sees at once; products that they add up in floating point are exact for so many."""


MOST_UNITS_IN_FLOATING_POINT = 2**33
"""So many numbers of up to GRID = 2^20 have no partial sum beyond 2^53, in any order."""


class TickExpression(str):
    """An SQL expression of whole numbers from -GRID to GRID, and the same numbers in floating point.

    Sums of these are exact in floating point for `MOST_UNITS_IN_FLOATING_POINT` units, so that an engine may add them
    up as such where that is faster. To an engine that does not, this is an expression like any other.

    Attributes:
        floating: The expression for coerced numbers that are DOUBLE. All steps must be exact there: products of two
            ticks are below 2^53, and so is what is multiplied by a power of two.
    """

    __slots__ = ("floating",)

    floating: str

    def __new__(cls, text: str, floating: str | None = None) -> Self:  # noqa: D102
        made = super().__new__(cls, text)
        made.floating = text if floating is None else floating
        return made


def exact_ints(values: NDArray[Any]) -> ExactInts:
    """Return numbers without fractions as exact integers."""
    return np.array([int(value) for value in values.ravel()], dtype=object).reshape(values.shape)


def ticks_in(column: Any) -> Int64s:  # noqa: ANN401 (of Arrow, which has no types)
    """Return the integers in an Arrow column, wide enough for products."""
    ticks: Int64s = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return ticks


def no_rows(columns: Sequence[str]) -> Batch:
    """Return what a kernel is given to see the shape of what it makes."""
    return {name: np.zeros(0, dtype=np.int64) for name in columns}


def compared(rows: Batch) -> Batch:
    """Return those of some rows that are in the comparison."""
    chosen = rows["treatment"] < OUTSIDE
    return {name: column[chosen] for name, column in rows.items()}


def place_expression(cells: Mapping[str, int]) -> str:
    """Return the place of a row's cell among all, as an SQL expression."""
    place = ""
    for key, size in cells.items():
        place = f"({place}) * {size} + {key}" if place else key
    return place or "0"


def check_size(size: int, limit: int) -> None:
    """Raise if a table has more units than may be seen side by side."""
    if size > limit:
        raise TableError(
            expected=f"at most {limit:,} units for a question that must see them side by side",
            got=f"{size:,}",
            hint="ask a question that can be added up, such as a stratification.",
        )


Kernel = Callable[[Batch], Batch]
"""What makes of some rows, as columns, the numbers that are wanted of them, as columns of its own."""


class Engine(Protocol):
    """A coerced table that can add up integers exactly: the result does not depend on order, threads or batches.

    Only units in the comparison are read, unless `whole` asks for those outside too.
    """

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows.

        Args:
            cells: The columns to group by, each with the number of its public codes 0, 1, …
            sums: Integer SQL expressions in the coerced columns. These have 32 bits: cast before multiplying. `Ticks`
                may be added up in floating point.
            whole: Whether units outside the comparison are read too.

        Returns:
            The sums, with one axis for each grouping column and a last one for the expressions; 0 where no row is.
        """
        ...

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """Return the sum over batches of what a kernel makes of each: an array of integers of one shape."""
        ...

    def collect(
        self, columns: Sequence[str], limit: int, kernel: Kernel | None = None, *, whole: bool = False
    ) -> Batch:
        """Return all rows at once, in any order, for what cannot be added up, such as matching.

        Args:
            limit: The most units that a table may have to be read so; a larger one is refused. Public.
            kernel: What makes of some rows the numbers that are wanted, row by row, as columns of its own; the rows
                themselves if left out. Engines run it where the rows are, and bring nothing else from there.
            whole: Whether units outside the comparison are read too.
        """
        ...


def with_schema(engine: Engine, schema: Schema) -> Engine:
    """Return the same table seen through another schema of the same columns, such as one with narrower bounds."""
    seen_through: Callable[[Schema], Engine] | None = getattr(engine, "with_schema", None)
    if seen_through is None:
        raise EngineError(
            expected="an engine with the method with_schema",
            got=type(engine).__name__,
            hint="open another vault on the same table and ledger, with that schema: narrower bounds, or required=[…].",
        )
    return seen_through(schema)


def adds_products(engine: Engine, features: int) -> bool:
    """Return whether an engine adds up products of so many features as SQL, rather than by a kernel over batches.

    Both give the same integers. An engine says by `most_sql_features` up to how many features SQL is the cheaper way,
    or the only one where the rows are; an engine that does not say is given a kernel.
    """
    return features <= getattr(engine, "most_sql_features", 0)


def check_workers(engine: Engine) -> None:
    """Raise if a kernel cannot run where an engine's rows are. The table is not read."""
    check = getattr(engine, "check_workers", None)
    if check is not None:
        check()


class ObservedEngine:
    """An engine that passes every reading on to another one, inside a context of its own."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _reading(self, verb: str) -> AbstractContextManager[object]:
        """Return the context of one reading, given the name of the verb; by default nothing happens in it."""
        del verb
        return nullcontext()

    @property
    def most_sql_features(self) -> float:
        """Up to how many features products are added up as SQL; see `adds_products`."""
        most: float = getattr(self._engine, "most_sql_features", 0)
        return most

    def check_workers(self) -> None:
        """Raise if a kernel cannot run where the rows are; see `check_workers`."""
        check_workers(self._engine)

    def with_schema(self, schema: Schema) -> Self:
        """Return the same table seen through another schema; see `with_schema`."""
        other = copy.copy(self)
        other._engine = with_schema(self._engine, schema)  # noqa: SLF001 (its own copy)
        return other

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows; see `Engine.aggregate`."""
        with self._reading("aggregate"):
            return self._engine.aggregate(cells, sums, whole=whole)

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """Return the sum of a kernel over batches; see `Engine.fold`."""
        with self._reading("fold"):
            return self._engine.fold(columns, kernel)

    def collect(
        self, columns: Sequence[str], limit: int, kernel: Kernel | None = None, *, whole: bool = False
    ) -> Batch:
        """Return all rows at once; see `Engine.collect`."""
        with self._reading("collect"):
            return self._engine.collect(columns, limit, kernel, whole=whole)


class MappedEngine(ObservedEngine):
    """An engine over a table with names and codes of its own, seen through schemas that have others."""

    __slots__ = ("_mapping",)

    def __init__(self, engine: Engine, mapping: ColumnMapping) -> None:
        super().__init__(engine)
        self._mapping = mapping

    def with_schema(self, schema: Schema) -> Self:
        """Return the same table seen through another schema; see `with_schema`."""
        return super().with_schema(self._mapping.local(schema))
