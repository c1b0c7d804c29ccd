"""Made-up tables that can be taken apart: put together from units that the engine has read one by one.

Thousands of small tables are made of a few kinds of unit. Sums over a table are sums over its units, so each kind is
read by the real engine once, and a table's sums are added up here. That this gives what the engine gives for the whole
table is itself one of the audit's checks (`determinism`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpcausal.audit.neighbours import Record
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import Query
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Receipt, Release
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import listed_values
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.coercion import column_names
from dpcausal.vault.context import Answer, AnswerContext, seen_through
from dpcausal.vault.door import Sampler, Vault
from dpcausal.vault.engines import Batch, Engine, ExactInts, compared, exact_ints, with_schema
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect


class UnitKind:
    """One unit, as the engine reads it."""

    def __init__(self, engine: Engine, schema: Schema) -> None:
        self._engine = engine
        self._sums: dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...], bool], ExactInts] = {}
        whole = self._engine.collect(column_names(schema), 1, whole=True)
        self.ticks = {name: column[0] for name, column in whole.items()}
        self._others: dict[Schema, UnitKind] = {}

    def with_schema(self, schema: Schema) -> "UnitKind":
        """Return the same unit seen through another schema; it is read through each schema once."""
        if schema not in self._others:
            self._others[schema] = UnitKind(with_schema(self._engine, schema), schema)
        return self._others[schema]

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return the sums over this unit alone."""
        key = tuple(cells.items()), tuple(sums), whole
        if key not in self._sums:
            self._sums[key] = self._engine.aggregate(cells, sums, whole=whole)
        return self._sums[key]


class Assembled:
    """An engine over a table put together from kinds of unit."""

    def __init__(self, kinds: Sequence[UnitKind]) -> None:
        self.kinds = tuple(kinds)

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of units; see `Engine.aggregate`."""
        each = [kind.aggregate(cells, sums, whole=whole) for kind in self.kinds]
        total: ExactInts = np.sum(each, axis=0, dtype=object)
        return total

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """Return what a kernel makes of all units; see `Engine.fold`."""
        return exact_ints(kernel(self.collect(columns, len(self.kinds))))

    def collect(
        self,
        columns: Sequence[str],
        limit: int,  # noqa: ARG002 (tables here are small)
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        """Return all units at once; see `Engine.collect`."""
        read = self._ticks if whole else compared(self._ticks)
        units = {name: read[name] for name in columns}
        return kernel(units) if kernel else units

    def with_schema(self, schema: Schema) -> "Assembled":
        """Return the same units seen through another schema; see `with_schema` of the engines."""
        return Assembled([kind.with_schema(schema) for kind in self.kinds])

    @cached_property
    def _ticks(self) -> dict[str, Int64s]:
        return {name: np.array([kind.ticks[name] for kind in self.kinds]) for name in self.kinds[0].ticks}


class Catalogue:
    """All kinds of unit met so far, each read once."""

    def __init__(self, schema: Schema) -> None:
        self._schema, self._connection = schema, connect(threads=1)
        self._kinds: dict[str, UnitKind] = {}

    def assemble(self, units: Sequence[Record]) -> Assembled:
        """Return the table of these units."""
        return Assembled([self._kind(unit) for unit in units])

    def _kind(self, unit: Record) -> UnitKind:
        if (key := repr(unit)) not in self._kinds:
            self._kinds[key] = UnitKind(self._engine(table_of([unit], self._schema)), self._schema)
        return self._kinds[key]

    def _engine(self, table: pa.Table) -> Engine:
        """Open a table with a view in a database schema of its own, which is read faster than a relation."""
        connection, name = self._connection.cursor(), f"kind_{len(self._kinds)}"
        connection.execute(f"CREATE SCHEMA {name}; USE {name}")
        return DuckDBEngine(connection.from_arrow(table), self._schema, connection=connection)


CATALOGUES: dict[Schema, Catalogue] = {}
"""The catalogues of this process."""


def catalogue_of(schema: Schema) -> Catalogue:
    """Return the one catalogue of this process for a schema."""
    if schema not in CATALOGUES:
        CATALOGUES[schema] = Catalogue(schema)
    return CATALOGUES[schema]


class Unmetered(Vault):
    """A vault without a ledger, which draws fresh noise whenever it is asked: for made-up tables only.

    What is checked, how a query is answered and where noise comes from is the vault's own.
    """

    __slots__ = ()

    def __init__(self, engine: Engine, schema: Schema, sampler: Sampler | None = None) -> None:
        self._schema, self._engine, self._sampler = schema, engine, sampler or Sampler()
        self._caveats = ()
        self._count()

    @property
    def rule(self) -> Rule:
        """How prices would add up."""
        return "additive"

    def answered(self, query: Query) -> tuple[Guarantee, ...]:  # noqa: ARG002 (as every source has it)
        """Return no guarantees: nothing is stored."""
        return ()

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return a noisy answer without a debit."""
        self._check(query, guarantee)
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta)
        return self._answer(query, guarantee, calibrate(query, self._schema, guarantee), receipt)

    def many(self, query: Query, guarantee: Guarantee, runs: int) -> Array:
        """Return the numbers of so many noisy answers, in ticks, one line each: one exact answer, noise many times.

        For queries whose answers are exact; those that draw noise inside have to be asked again and again.
        """
        noise = calibrate(query, self._schema, guarantee)
        answer = ANSWERS[type(query)](self._context(query, guarantee))
        ticks, sized = answer.in_order(noise), answer.sized(noise)
        drawn = self._sampler.add_noise(ticks * runs, replace(sized, scales=sized.scales * runs))
        return np.array(drawn.ticks, dtype=float).reshape(runs, len(ticks))


def exact_answer(
    query: Query, schema: Schema, engine: Engine, guarantee: Guarantee, *, sampler: Sampler | None = None
) -> Answer:
    """Return the answer before noise, which in production never leaves the vault."""
    seen, table = seen_through(query, schema, engine)
    return ANSWERS[type(query)](AnswerContext(query, seen, table, guarantee, sampler or Sampler()))


def table_of(units: Sequence[Record], schema: Schema) -> pa.Table:
    """Return units as a table, with numbers as doubles and all else as text."""
    columns = {}
    for column in schema.columns:
        text = any(isinstance(value, str) for value in listed_values(column))
        columns[column.name] = pa.array([unit[column.name] for unit in units], pa.string() if text else pa.float64())
    return pa.table(columns)
