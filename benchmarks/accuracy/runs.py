"""One estimate after another, each from a fresh vault with its own ledger and noise."""

import time
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import duckdb

import dpcausal as dpc
from benchmarks.accuracy.entries import ENTRIES, Entry
from benchmarks.datasets import BUDGET, DataSet, load
from dpcausal.errors import RefusedError
from tests.support.engines import CachedEngine


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


@cache
def prepared(name: str, key: str, folder: str | None) -> tuple[DataSet, dpc.Schema, duckdb.DuckDBPyRelation]:
    """Return a data set with the columns of one entry."""
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
def cached_engine(name: str, key: str, folder: str | None) -> CachedEngine:
    """Return the engine of one entry, one for all its repeats."""
    _, schema, table = prepared(name, key, folder)
    return CachedEngine(table, schema)


def run(task: tuple[Cell, str | None]) -> Run:
    """One estimate for one cell, from a table that is read once for all repeats."""
    cell, folder = task
    engine = cached_engine(cell.data, cell.entry, folder)
    with patch("dpcausal.vault.door.open_table", lambda *_: engine):
        return estimate(ENTRIES[cell.entry], cell.epsilon, *prepared(cell.data, cell.entry, folder))


def timed(task: tuple[Cell, str | None]) -> Run:
    """One estimate for one cell, as the library does it for anybody."""
    cell, folder = task
    return estimate(ENTRIES[cell.entry], cell.epsilon, *prepared(cell.data, cell.entry, folder))
