"""What an expert would write by hand in place of a release, for the same files: sums without noise, budget or door.

`fixed` gives the very integers that a vault adds up: missing values counted as declared, values clipped, on the same
grid. `plain` is the shortest text, which adds up columns as they stand, so that one NaN makes a sum NaN. Both run as
DuckDB comes, but for one thing that an expert has to know: it takes from a parquet file's statistics, which leave NaN
out, that there is none, unless told otherwise (duckdb/duckdb#25521). Second moments are also made in numpy.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.scale.data import COVARIATE, OUTCOME, VALUES
from dpcausal.queries import GRID
from dpcausal.queries.regression_moments import FINE

EDGES = (-1.6, -1.1, -0.7, -0.3, 0.0, 0.3, 0.7, 1.1, 1.6)
"""Where x0 is cut; with the values of g0 this makes a hundred strata."""

_ARM = "CASE WHEN treat = 1 THEN 1 ELSE 0 END AS arm"
_BATCH = 2**17


def connected(threads: int | None) -> duckdb.DuckDBPyConnection:
    """DuckDB as it comes."""
    return duckdb.connect(config={} if threads is None else {"threads": threads})


def fixed(query: str, folder: str, covariates: int, groups: int) -> str:
    """Return the same integers as the vault's."""
    columns = [_ARM, f"{_steps('y', OUTCOME)} AS z"]
    keys, sums = [], ["count(*)", "sum(z)", "sum(z * z)"]
    if query == "arm_totals":
        sums = sums[:2]
    elif query == "arm_moments":
        sums[2] = f"sum(({GRID**2} - z * z) >> {GRID.bit_length() - 1})"
    elif query == "moments":
        columns += [f"{_steps(f'x{place}', COVARIATE)} AS s{place}" for place in range(covariates)]
        coarse = GRID // FINE
        numbers = ["z", *(f"s{place}" for place in range(covariates))]
        rounded = [f"(({name} + {coarse // 2}) >> {coarse.bit_length() - 1}) AS {name}" for name in numbers]
        # In two steps, so that each number is made once and not once for each product.
        inner = f"SELECT arm, {', '.join(rounded)} FROM ({_select(columns, folder)})"  # noqa: S608 (public, made up)
        return f"SELECT arm, {', '.join(_products(numbers))} FROM ({inner}) GROUP BY arm"  # noqa: S608
    else:
        keys = [f"c{place}" for place in range(groups)]
        last = VALUES - 1
        columns += [f"CASE WHEN g{k} BETWEEN 0 AND {last} THEN g{k} ELSE {last} END AS c{k}" for k in range(groups)]
        if query == "strata":
            low, high = COVARIATE
            edges = [math.floor((edge - (low + high) / 2) * 2 * GRID / (high - low) + 0.5) for edge in EDGES]
            columns.append(f"{_bin(_steps('x0', COVARIATE), edges)} AS b")
            keys.append("b")
    return f"SELECT {', '.join([*keys, 'arm', *sums])} FROM ({_select(columns, folder)}) GROUP BY ALL"  # noqa: S608


def plain(query: str, folder: str, covariates: int, groups: int) -> str:
    """Return the shortest sums of the columns as they stand."""
    keys, sums = ["treat"], ["count(*)", "sum(y)", "sum(y * y)"]
    if query == "arm_totals":
        sums = sums[:2]
    elif query == "moments":
        sums = _products(["y", *(f"x{place}" for place in range(covariates))])
    elif query in ("strata", "groups"):
        keys += [f"g{place}" for place in range(groups)]
        keys += [f"{_bin('x0', EDGES)} AS b"] if query == "strata" else []
    return f"{_select([*keys, *sums], folder)} GROUP BY ALL"


def second_moments(connection: duckdb.DuckDBPyConnection, folder: str, covariates: int) -> NDArray[np.float64]:
    """Return sums of products of constant, outcome and covariates by arm, in float64: Arrow batches into NumPy.

    Values are measured from the middle of their range, NaN and NULL count as that middle, and values are clipped.
    """
    bounds = [OUTCOME, *[COVARIATE] * covariates]
    middles, halves = (np.array([[(high + sign * low) / 2] for low, high in bounds]) for sign in (1, -1))
    names = ["y", *(f"x{place}" for place in range(covariates))]
    total, treated = np.zeros((2, len(names) + 1, len(names) + 1))
    for batch in connection.sql(_select(["treat", *names], folder)).to_arrow_reader(_BATCH):
        numbers = np.ones((len(names) + 1, len(batch)))
        for line, name in zip(numbers[1:], names, strict=True):
            line[:] = batch.column(name).to_numpy(zero_copy_only=False)
        numbers[1:] -= middles
        np.nan_to_num(numbers, copy=False, nan=0.0)
        np.clip(numbers[1:], -halves, halves, out=numbers[1:])
        total += numbers @ numbers.T
        arm = numbers[:, batch.column("treat").to_numpy(zero_copy_only=False) == 1]
        treated += arm @ arm.T
    return np.array([total - treated, treated])


def _select(columns: Sequence[str], folder: str) -> str:
    return f"SELECT {', '.join(columns)} FROM read_parquet('{folder}/*.parquet', can_have_nan=true)"  # noqa: S608 (public, made up)


def _steps(name: str, bounds: tuple[float, float]) -> str:
    """Return a real column on the vault's grid; a missing value counts as the middle, which is 0."""
    low, high = bounds
    clipped = f"least(greatest({name}::DOUBLE, {_double(low)}), {_double(high)})"
    ticks_to_one, middle = _double(2 * GRID / (high - low)), _double((low + high) / 2)
    rounded = f"floor(({clipped} - {middle}) * {ticks_to_one} + {_double(0.5)})::BIGINT"
    return f"CASE WHEN {name} IS NULL OR isnan({name}) THEN 0 ELSE {rounded} END"


def _double(number: float) -> str:
    return f"'{number!r}'::DOUBLE"


def _bin(value: str, edges: Sequence[Any]) -> str:
    cases = " ".join(f"WHEN {value} >= {edge} THEN {place}" for place, edge in [*enumerate(edges, start=1)][::-1])
    return f"CASE {cases} ELSE 0 END"


def _products(names: Sequence[str]) -> list[str]:
    """Return sums of all products of two, the constant among them, in the order of pairs of places."""
    pairs = combinations_with_replacement(["", *names], 2)
    return [f"sum({one} * {other})" if one else f"sum({other})" if other else "count(*)" for one, other in pairs]
