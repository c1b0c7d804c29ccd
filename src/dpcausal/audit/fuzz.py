"""Checks on hostile tables: all but noisy numbers depends on public things, and each unit is read by itself."""

import contextlib
import io
import logging
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from dpcausal.audit.finding import Finding
from dpcausal.audit.hostile import Layout, Two, listed_neighbours, listed_strangers, neighbours, strangers
from dpcausal.audit.spy import SpyVault
from dpcausal.audit.targets import TARGETS, Target
from dpcausal.errors import DpcausalError, TableError
from dpcausal.schema.schema import Schema
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.numerics.matching import matched
from dpcausal.vault.table import open_table


def check_shape(pairs: int, start: int = 0, targets: Sequence[Target] = TARGETS) -> Finding:
    """Check that two tables of the same public layout look the same, but for noisy numbers.

    Every third estimator asks both, in turns. Errors, their texts, warnings, log lines, printed lines, how often and in
    what way the table is read, and the shape of what is released must be the same.

    Args:
        pairs: How many pairs of tables to try beyond those that are listed.
        start: Where hypothesis starts; runs with different starts try different tables.
    """
    _warm_up()

    def same(two: Two) -> bool:
        seen = []
        for cells in (two.one, two.other):
            with _way_in(two.layout, two.layout.frame(cells)) as table:
                seen.append(_observed(table, two.layout.schema, targets[two.layout.turn :: 3]))
        if seen[0] != seen[1]:
            raise AssertionError(_difference(*seen))
        return len(seen[0][0]) > 1

    return _tried("shape", listed_strangers(), strangers(), same, pairs, start)


@cache
def _warm_up() -> None:
    """Compile the matcher: numba logs what it compiles, the first time only."""
    numbers = np.array([0, 1], dtype=np.int64)
    matched(numbers, numbers, 1, (1, 1))


def check_record_independence(pairs: int, start: int = 0) -> Finding:
    """Check that replacing one record changes the integers of one unit at most. Exact: it cannot fail by chance."""

    def alone(two: Two) -> bool:
        read = []
        for cells in (two.one, two.other):
            with _way_in(two.layout, two.layout.frame(cells)) as table:
                read.append(_integers(table, two.layout.schema))
        if (read[0] is None) != (read[1] is None):
            raise AssertionError(f"one of two neighbours is refused: {two}")
        if read[0] is None or read[1] is None:
            return False
        changed = (read[0] - read[1]).total(), (read[1] - read[0]).total()
        if max(changed) > 1 or read[0].total() != read[1].total():
            raise AssertionError(f"{changed} units changed: {two}")
        return True

    return _tried("record_independence", listed_neighbours(), neighbours(), alone, pairs, start)


def _tried(  # noqa: PLR0913, PLR0917 (two callers fill them in)
    check: str,
    listed: Iterable[Two],
    strategy: st.SearchStrategy[Two],
    holds: Callable[[Two], bool],
    pairs: int,
    start: int,
) -> Finding:
    """Try a rule, which returns whether a pair was read or refused for its types, on listed pairs and many more.

    Which pairs hypothesis makes depends on its version and on constants in the package, so a mutant may be missed by
    all of them. The listed ones are always the same.
    """
    read: list[bool] = []
    set_hypothesis_home_dir(tempfile.gettempdir())  # else it leaves a folder where the user is
    slow = settings(
        max_examples=pairs,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    fault = ""
    try:
        read += map(holds, listed)
        seed(start)(slow(given(strategy)(lambda two: read.append(holds(two)))))()
    except Exception as error:  # noqa: BLE001 (whatever a table provokes is what is looked for)
        # What does not happen every time comes wrapped.
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        fault = f"{type(first).__name__}: {first}"[:2000]
    numbers = {"tables": 2 * len(read), "refused": 2 * read.count(False)}
    fault = fault or ("" if any(read) else "every table was refused")
    detail = (
        fault or f"{numbers['tables']:,} tables in pairs, of which {numbers['refused']:,} were refused for their types"
    )
    return Finding(check, f"hostile tables, part {start + 1}", not fault, detail, numbers)


@contextlib.contextmanager
def _way_in(layout: Layout, frame: Any) -> Iterator[object]:  # noqa: ANN401 (frames of several libraries)
    if layout.way != "file":
        yield frame
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        pq.write_table(frame, file)
        yield file


def _integers(table: object, schema: Schema) -> Counter[tuple[int, ...]] | None:
    """Return the integers that a table's units become, in no order; None where it is refused for its types."""
    try:
        ticks = open_table(table, schema, Resources(threads=1)).collect(column_names(schema), 10**6, whole=True)
    except TableError:
        return None
    return Counter(zip(*(column.tolist() for column in ticks.values()), strict=True))


def _observed(table: object, schema: Schema, targets: Sequence[Target]) -> tuple[list[object], list[str], str]:
    """Return all that can be seen of a table apart from the noisy numbers."""
    lines = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        _logged(lines),
        contextlib.redirect_stdout(lines),
        contextlib.redirect_stderr(lines),
    ):
        warnings.simplefilter("always")
        seen = list(_asked(table, schema, targets))
    return seen, [str(each.message) for each in warned], lines.getvalue()


def _asked(table: object, schema: Schema, targets: Sequence[Target]) -> Iterator[object]:
    try:
        vault = SpyVault(table, schema)
    except DpcausalError as error:
        yield type(error).__name__, error.problem.replace(str(table), "")
        return
    yield repr(vault), vault.n, vault.arm_sizes if schema.protects == "record" else None
    undeclared = (None, schema.treatment.undeclared)  # what is proved for more is proved for two arms only
    asking = [
        each
        for each in targets
        if each.protects == schema.protects and each.undeclared in undeclared
        if schema.outcome_may_be_missing or not each.counts_missing
    ]
    for target in asking:
        read = len(vault.readings)
        releases = target.releases(vault)
        shapes = [
            (each.names, each.family, [scale is None for scale in each.scales], sorted(each.public_values))
            for each in releases
        ]
        finite = all(math.isfinite(value) for each in releases for value in each.values)
        yield target.name, shapes, finite, [verb for verb, _ in vault.readings[read:]]


@contextlib.contextmanager
def _logged(lines: io.StringIO) -> Iterator[None]:
    handler, root = logging.StreamHandler(lines), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _difference(one: Any, other: Any) -> str:  # noqa: ANN401
    for a, b in zip((*one[0], one[1:]), (*other[0], other[1:]), strict=False):
        if a != b:
            return f"{a} against {b}"
    return f"{one} against {other}"
