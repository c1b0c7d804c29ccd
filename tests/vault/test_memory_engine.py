"""The engine over columns in memory gives the integers of the one that reads them from a table."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, Query, seen_by
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.coercion import column_names
from dpcausal.vault.context import AnswerContext
from dpcausal.vault.engines import Engine, with_schema
from dpcausal.vault.engines.memory import MemoryEngine
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", arms=("a", "b", "c"), compare="b"),
    outcome=dpc.Real("y", 0, 20),
    covariates=[dpc.Binary("x"), dpc.Real("age", 20, 60), dpc.Category("ward", ["n", "s", "w"])],
    entry="ward",
)
SUMS = [each for query in QUERIES.values() for each in query.examples(SCHEMA) if not each.draws]


def drawn(size: int = 400) -> pa.Table:
    random = np.random.default_rng(5)
    outcomes = random.normal(9, 6, size)
    return pa.table(
        {
            "t": random.choice(["a", "b", "c", "?"], size),
            "y": np.where(random.random(size) < 0.1, np.nan, outcomes),
            "x": random.choice([0.0, 1.0, np.nan], size, p=[0.5, 0.4, 0.1]),
            "age": np.where(random.random(size) < 0.1, np.nan, random.normal(40, 15, size)),
            "ward": random.choice(["n", "s", "w", "elsewhere"], size),
        }
    )


@pytest.fixture(scope="module")
def table() -> Engine:
    return open_table(drawn(), SCHEMA)


@cache
def in_memory(table: Engine, schema: dpc.Schema) -> tuple[Engine, Engine]:
    """Return the table seen through a schema, and the same in memory."""
    engine = table if schema is SCHEMA else with_schema(table, schema)
    return engine, MemoryEngine(engine.collect(column_names(schema), 400, whole=True))


@pytest.mark.parametrize("query", SUMS, ids=lambda query: query.name)
def test_both_engines_give_the_same_integers(query: Query, table: Engine) -> None:
    schema = seen_by(query, SCHEMA)
    guarantee = Guarantee(epsilon=1.0, delta=1e-6)
    found = [
        ANSWERS[type(query)](AnswerContext(query, schema, each, guarantee, None)).ticks  # type: ignore[arg-type]
        for each in in_memory(table, schema)  # type: ignore[arg-type]
    ]
    assert found[0] == found[1]
    assert any(found[0].values())
