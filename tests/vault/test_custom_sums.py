"""Sums that a study describes are the same integers wherever a table is, and are added up there."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import CustomSums, Cut
from dpcausal.schema.schema import Schema
from dpcausal.vault.engines import Engine
from dpcausal.vault.table import open_table
from tests.estimators.test_formula_estimator import SCHEMA, SLOPE
from tests.sums.agreement import disagreements
from tests.support.conformance.sums import OpenEngine
from tests.support.open_engines import OPENED, Counting, NotHereError, signed_integers
from tests.vault.on_spark import MARKS, frame_of

OTHERS = CustomSums(
    {
        "above": "where(dose >= 12.5, 3 - centred(score))",
        "clipped": "clip(centred(dose) * centred(score), -90.5, 200)",
        "contrast": "centred(treat) * (2 * centred(score) - centred(dose) / 3)",
        "women": "where(sex == 'f', deficit(score) + centred(dose)**2)",
        "between": "where(between(score, 20, 40), centred(dose))",
    },
    ["treat", "sex", Cut("dose", [10, 25])],
)
QUERIES = [SLOPE.query(SCHEMA), OTHERS]


def hostile(rows: int = 2_000) -> pa.Table:
    """Return a table of which many cells are absent, out of range or no numbers."""
    random = np.random.default_rng(3)
    strange = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 40.0, 100.0, 12.5])

    def numbers(low: float, high: float) -> pa.Array:
        usual = random.uniform(low, high, rows)
        cells = np.where(random.random(rows) < 0.2, random.choice(strange, rows), usual)
        return pa.array(cells, mask=random.random(rows) < 0.05)

    return pa.table(
        {
            "treat": pa.array(random.integers(-1, 3, rows), mask=random.random(rows) < 0.05),
            "score": numbers(-5, 105),
            "dose": numbers(-2, 42),
            "sex": pa.array(random.choice(["f", "m", "F", "", "x"], rows)),
        }
    )


@pytest.fixture(
    params=[
        "duckdb",
        *(pytest.param(name, marks=pytest.mark.xdist_group("postgresql")) for name in ("postgresql", "clickhouse")),
        pytest.param("spark", marks=[pytest.mark.costly, *MARKS]),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenEngine]:
    if request.param == "duckdb":  # a file of DuckDB's own

        def in_file(table: pa.Table, schema: Schema) -> Engine:
            with duckdb.connect(str(tmp_path / "clinic.duckdb")) as database:
                database.from_arrow(table).create("visits")
            return open_table(f"{tmp_path / 'clinic.duckdb'}#visits", schema)

        yield in_file
    elif request.param == "spark":
        session = request.getfixturevalue("spark")
        yield lambda table, schema: open_table(frame_of(session, signed_integers(table), 3), schema)
    else:
        with ExitStack() as stack:
            try:
                engine = stack.enter_context(OPENED[request.param]())
            except (NotHereError, ImportError) as error:
                pytest.skip(str(error))
            yield engine


def answers(engine: Engine) -> list[dict[str, int]]:
    return [dict(exact_answer(query, SCHEMA, engine, dpc.Guarantee(epsilon=1)).ticks) for query in QUERIES]


def test_described_sums_are_the_same_integers_wherever_the_table_is(opened: OpenEngine) -> None:
    counts: Counter[str] = Counter()
    engine = opened(hostile(), SCHEMA)
    assert answers(Counting(engine, counts)) == answers(open_table(hostile(), SCHEMA))
    assert counts["streamed"] == 0  # no row left the warehouse


def test_described_sums_are_the_integers_of_numpy() -> None:
    assert disagreements(open_table(hostile(), SCHEMA), SCHEMA, QUERIES, ["l1"]) == []
