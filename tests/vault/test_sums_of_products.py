"""Sums of products are the same integers as SQL and by a kernel over batches."""

import math

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, CovariateMoments, CovariateSums, InstrumentMoments, Query, RegressionMoments
from dpcausal.sums.adding import addends
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import totals
from dpcausal.sums.numbers import Shift, Ticks
from dpcausal.testing import hostile_tables, standard_schema, synthetic_table
from dpcausal.vault.adding import _Products
from dpcausal.vault.engines import BATCH_ROWS, adds_products, exact_ints
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.table import open_table

SCHEMA = standard_schema()
QUERIES: list[Query] = [
    query
    for kind in (RegressionMoments, InstrumentMoments, CovariateMoments, CovariateSums)
    for query in kind.examples(SCHEMA)
]
TABLES = hostile_tables(SCHEMA, 40) | {"usual": synthetic_table(SCHEMA, 3_000)}


@pytest.mark.parametrize("name", TABLES)
def test_sql_and_kernel_give_the_same_integers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, promised = open_table(TABLES[name], SCHEMA), Guarantee(epsilon=1.0)
    for query in QUERIES:
        monkeypatch.setattr(DuckDBEngine, "most_sql_features", 0)
        folded = exact_answer(query, SCHEMA, engine, promised)
        monkeypatch.setattr(DuckDBEngine, "most_sql_features", math.inf)
        monkeypatch.setattr(DuckDBEngine, "fold", None)
        assert exact_answer(query, SCHEMA, engine, promised) == folded
        monkeypatch.undo()


def test_the_way_depends_on_the_engine_and_the_number_of_features_alone() -> None:
    engine = open_table(TABLES["usual"], SCHEMA)
    for each in (engine, ProgressEngine(engine)):
        assert [adds_products(each, features) for features in (1, 2)] == [True, False]
    assert not adds_products(object(), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("units", [0, 1, BATCH_ROWS])
def test_products_of_a_whole_batch_at_the_ends_of_their_ranges_are_exact(units: int) -> None:
    generator = np.random.default_rng(units)
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(4)]
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), covariates)
    (sums,) = RegressionMoments([each.name for each in covariates]).sums(schema, "record", "l1")
    ends = np.array([-GRID, -GRID + 511, GRID - 512, GRID])  # within half a coarser tick of which they are rounded
    batch = {name: generator.choice(ends, units) for name in sums.columns}
    batch["treatment"], batch["outcome"] = generator.integers(0, 2, units), np.full(units, GRID)
    wanted = addends(sums)
    products = _Products.of(wanted)
    assert products.exact
    assert wanted.totals(exact_ints(products.added(batch))) == totals(sums, batch)


def test_products_beyond_floating_point_are_left_to_sql() -> None:
    """Sums of a batch of products of 2^38 need more than 53 bits, and would be rounded."""
    small, large = (
        _Products.of(addends(Sums({}, {"product": Shift(Ticks("outcome"), bits) * Shift(Ticks("covariate_0"), bits)})))
        for bits in (2, 1)
    )
    assert (small.exact, large.exact) == (True, False)
