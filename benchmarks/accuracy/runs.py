"""One estimate after another, each from a fresh vault with its own ledger and noise."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.accuracy.entries import ENTRIES, Entry
from benchmarks.datasets import BUDGET, DataSet, load
from dpcausal.errors import RefusedError
from dpcausal.vault.engines import Batch, ExactInts
from dpcausal.vault.engines.duckdb import DuckDBEngine


@dataclass(frozen=True)
class Cell:
    """One setting: which data, which estimator, which epsilon."""

    data: str
    entry: str
    epsilon: float


@dataclass(frozen=True)
class Run:
    """What one estimate gave; no width where there is no interval."""

    estimate: float
    covered: bool
    width: float | None
    opening_seconds: float
    seconds: float


class KeptEngine(DuckDBEngine):
    """The library's engine, which remembers the integers that it has read once.

    Planning a statement takes DuckDB longer than adding up a thousand rows, and a score's fit asks dozens of times. The
    integers are the same ones, so answers are too. Times are measured without this.
    """

    __slots__ = ("_columns", "_sums")

    def __init__(self, relation: duckdb.DuckDBPyRelation, schema: dpc.Schema) -> None:
        super().__init__(relation, schema)
        self._columns: dict[tuple[tuple[str, ...], bool], Batch] = {}
        self._sums: dict[str, ExactInts] = {}

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


@cache
def prepared(name: str, key: str, folder: str | None) -> tuple[DataSet, dpc.Schema, duckdb.DuckDBPyRelation]:
    """A data set with the columns of one entry."""
    data = ENTRIES[key].data(load(name, folder))
    return data, data.schema(ENTRIES[key].protects), data.relation()


def estimate(entry: Entry, epsilon: float, data: DataSet, schema: dpc.Schema, table: object) -> Run:
    """One estimate, from the opening of a vault to the interval."""
    start = time.perf_counter()
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=BUDGET)
    opened = time.perf_counter()
    effect = entry.make(data).estimate(vault, epsilon=epsilon, delta=entry.delta)
    done = time.perf_counter()
    try:
        low, high = effect.interval(0.95)
    except RefusedError:
        return Run(effect.estimate, covered=False, width=None, opening_seconds=opened - start, seconds=done - opened)
    covered = low <= data.truth <= high
    return Run(effect.estimate, covered, high - low, opened - start, done - opened)


@cache
def kept(name: str, key: str, folder: str | None) -> KeptEngine:
    """The engine of one entry, kept for all its repeats."""
    _, schema, table = prepared(name, key, folder)
    return KeptEngine(table, schema)


def run(task: tuple[Cell, str | None]) -> Run:
    """One estimate for one cell, from a table that is read once for all repeats."""
    cell, folder = task
    engine = kept(cell.data, cell.entry, folder)
    with patch("dpcausal.vault.door.open_table", lambda *_: engine):
        return estimate(ENTRIES[cell.entry], cell.epsilon, *prepared(cell.data, cell.entry, folder))


def timed(task: tuple[Cell, str | None]) -> Run:
    """One estimate for one cell, as the library does it for anybody."""
    cell, folder = task
    return estimate(ENTRIES[cell.entry], cell.epsilon, *prepared(cell.data, cell.entry, folder))
