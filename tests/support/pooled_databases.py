"""DuckDB's in-memory databases, used for one table after another: to make one takes 40 times as long as a small sum.

A table has a database of its own for as long as it is open, made by the library and with its settings, and so has a
synthetic population. When nothing refers to its connection any more, the next table takes its place there. What is
tested of connections themselves, in tests/vault, gets new ones.
"""

import os
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import duckdb

from dpcausal.vault import table
from dpcausal.vault.coercion import SOURCE
from dpcausal.vault.engines import memory
from dpcausal.vault.engines.duckdb import connect

_FREE: defaultdict[tuple[int, int | None], list[duckdb.DuckDBPyConnection]] = defaultdict(list)
"""Databases in which no table is open, by the process that made them and their number of threads."""

_SEES_FILES = "SELECT current_setting('enable_external_access')"
"""A database to which a file was attached does not, for good."""


def pooled_connection(
    threads: int | None = None, memory: str | None = None, spill: str | Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database in which no other table is open; see `connect`."""
    if memory is not None or spill is not None:
        return connect(threads, memory, spill)
    free = _FREE[os.getpid(), threads]
    database = free.pop() if free else connect(threads)
    if database.execute(_SEES_FILES).fetchall() != [(True,)]:
        database = connect(threads)
    connection = database.cursor()
    connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")  # as `connect` does
    # What another table left: a population, a view, and the optimizers that its queries switched off for all.
    connection.execute(f"DROP TABLE IF EXISTS coerced; DROP VIEW IF EXISTS {SOURCE}; RESET disabled_optimizers")
    weakref.finalize(connection, free.append, database).atexit = False
    return connection


@contextmanager
def pooled_databases() -> Iterator[None]:
    """Open tables in used databases until the end of the block."""
    with (
        mock.patch.object(table, "connect", pooled_connection),
        mock.patch.object(memory, "connect", pooled_connection),
    ):
        yield
