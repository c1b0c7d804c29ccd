"""Engines for tests: rows in one order, answers without draws, tables read once, noise drawn again and again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self
from unittest import mock

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpcausal.audit.tables import Unmetered
from dpcausal.schema.schema import Schema
from dpcausal.vault.engines import Batch, Engine, ExactInts, with_schema
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.noise import Sampler
from tests.support.pooled_databases import pooled_connection


class InOrder:
    """An engine that returns rows in one order."""

    def __init__(self, engine: Engine) -> None:
        self.aggregate, self.fold, self._engine = engine.aggregate, engine.fold, engine
        self.most_sql_features = getattr(engine, "most_sql_features", 0)

    def with_schema(self, schema: Schema) -> "InOrder":
        """See `with_schema` of the engines."""
        return InOrder(with_schema(self._engine, schema))

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        """Return all rows, sorted by all of their columns."""
        batch = self._engine.collect(columns, limit, kernel, whole=whole)
        order = np.lexsort(list(batch.values()))
        return {name: column[order] for name, column in batch.items()}


@contextmanager
def without_draws() -> Iterator[None]:
    """Replace every draw inside an answer by a fixed one."""
    fixed: dict[str, Any] = {
        "cube": lambda _, dimensions, __: np.full(dimensions, 0.5),
        "ball": lambda _, dimensions, __: np.full(dimensions, 0.5),
        "laplace": lambda _, ticks, __: ticks,
        "randomised_response": lambda _, arms, __: arms,
    }
    with mock.patch.multiple(Sampler, **fixed):
        yield


_MOST_SCHEMAS = 16
"""Noise gives covariates other scales, and so a table another schema, at each draw: few are asked again."""


class CachedEngine(DuckDBEngine):
    """The library's engine with a cache of the integers that it has read, for each of the last schemas.

    Planning a statement takes DuckDB longer than adding up a thousand rows, and a score's fit asks dozens of times. The
    integers are the same ones, so answers are too. Times are measured without this.
    """

    __slots__ = ("_cached", "_columns", "_sums")

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        schema: Schema,
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> None:
        super().__init__(relation, schema, connection=connection)
        self._columns: dict[tuple[tuple[str, ...], bool], Batch] = {}
        self._sums: dict[str, ExactInts] = {}
        self._cached = {schema: (self._columns, self._sums)}

    @classmethod
    def of(cls, table: object, schema: Schema) -> Self:
        """Return an engine over an Arrow table with a connection of its own."""
        connection = pooled_connection(threads=1)
        return cls(connection.from_arrow(table), schema, connection=connection)

    def with_schema(self, schema: Schema) -> Self:
        """See `with_schema` of the engines."""
        other = super().with_schema(schema)
        other._columns, other._sums = self._cached.pop(schema, ({}, {}))
        self._cached[schema] = other._columns, other._sums
        if len(self._cached) > _MOST_SCHEMAS:
            del self._cached[next(iter(self._cached))]
        return other

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """See `Engine.aggregate`."""
        key = f"{dict(cells)} {list(sums)} {whole}"
        if key not in self._sums:
            self._sums[key] = super().aggregate(cells, sums, whole=whole)
        return self._sums[key].copy()

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """See `Engine.fold`."""
        totals = kernel(self.collect(columns, 2**25))
        return np.array([int(value) for value in totals.ravel()], dtype=object).reshape(totals.shape)

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        """See `Engine.collect`."""
        key = tuple(columns), whole
        if key not in self._columns:
            self._columns[key] = super().collect(columns, limit, whole=whole)
        return kernel(self._columns[key]) if kernel else self._columns[key]


def fresh_noise(table: object, schema: Schema) -> Unmetered:
    """Return a source that reads a table once and draws fresh noise at each release, for nothing.

    A vault answers the same question once and for all; to see the law of its noise by vaults, each draw takes a new
    ledger and another reading of the table, 30 times the work.
    """
    return Unmetered(CachedEngine.of(table, schema), schema)
