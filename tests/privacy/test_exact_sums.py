"""The exact part of an answer is the same integer whatever the order, the threads, the batches or the way in."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.queries.coerced import OUTCOME
from dpcausal.sums.numbers import deficit
from dpcausal.sums.printing import sql
from dpcausal.vault.coercion import column_names
from dpcausal.vault.table import open_table

SIZE = 300_000
"""So many that DuckDB gives each thread a part, at 122,880 rows together."""

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("y", -2.5, 2.7, missing=0.1),
    covariates=[dpc.Real("x", 0, 1), dpc.Category("c", ["a", "b", "ç"])],
)


@pytest.fixture(scope="module")
def hostile() -> pa.Table:
    """Units, of which one in a hundred values is NULL, NaN, infinite, huge or unknown."""
    generator = np.random.default_rng(7)
    columns = {
        "treat": generator.integers(0, 2, SIZE).astype(float),
        "y": generator.standard_normal(SIZE),
        "x": generator.random(SIZE),
    }
    wrong = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 7.5])
    for name, values in columns.items():
        at = generator.random(SIZE) < 0.01
        columns[name] = np.where(at, generator.choice(wrong, SIZE), values)
    nulls = {name: generator.random(SIZE) < 0.005 for name in columns}
    texts = generator.choice(["a", "b", "ç", "unknown"], SIZE, p=[0.4, 0.4, 0.19, 0.01])
    arrays = {name: pa.array(values, mask=nulls[name]) for name, values in columns.items()}
    return pa.table(arrays | {"c": pa.array(texts, mask=generator.random(SIZE) < 0.005)})


def sums(table: object, threads: int) -> list[list[int]]:
    engine = open_table(table, SCHEMA, dpc.Resources(threads=threads))
    totals: list[list[int]] = engine.aggregate(
        {"treatment": 2}, [*column_names(SCHEMA), sql(deficit(OUTCOME)), "1"]
    ).tolist()
    return totals


def test_sums_do_not_depend_on_order_or_engine(hostile: pa.Table, tmp_path: Path) -> None:
    shuffled = hostile.take(np.random.default_rng(1).permutation(SIZE))
    pq.write_table(shuffled, tmp_path / "shuffled.parquet", row_group_size=10_007)
    expected = sums(hostile, threads=1)
    assert sum(line[-1] for line in expected) == SIZE
    for threads in (1, 2, 8):
        assert sums(tmp_path / "shuffled.parquet", threads) == expected
        assert sums(shuffled.to_pandas(), threads) == expected
        assert sums(pl.from_arrow(shuffled), threads) == expected
        assert sums(shuffled, threads) == expected


def test_float_sums_are_caught(hostile: pa.Table) -> None:
    """The mutant: the same clipped values added up as floats depend on their order."""
    values = pd.Series(hostile["y"].to_numpy()).fillna(0.1).clip(-2.5, 2.7).to_numpy()
    orders = [np.random.default_rng(seed).permutation(SIZE) for seed in range(8)]
    assert len({float(np.cumsum(values[order])[-1]) for order in orders}) > 1
