"""Sums of products are the same integers as SQL and by a kernel over batches."""

import math

import pytest

from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateMoments, CovariateSums, Query, RegressionMoments
from dpcausal.testing import hostile_tables, standard_schema, synthetic_table
from dpcausal.vault.engines import adds_products
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.table import open_table

SCHEMA = standard_schema()
QUERIES: list[Query] = [
    query for kind in (RegressionMoments, CovariateMoments, CovariateSums) for query in kind.examples(SCHEMA)
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
