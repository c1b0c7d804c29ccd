"""What one engine adds up for every query on a hostile table: `python -m benchmarks.scale.agreement FOLDER PARTITIONS`.

No partitions stand for DuckDB, any number for Spark with so many. Draws are left out: where an answer draws noise, or
puts units into blocks by lot, as it begins, it is asked here as if every draw had come out in one and the same way.
"""

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.clock import clocked
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES as KINDS
from dpcausal.queries import Query
from dpcausal.testing import standard_schema
from dpcausal.vault.engines import Engine
from dpcausal.vault.table import open_table
from tests.support.engines import without_draws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = standard_schema("outcome", complete=False)
GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6, protects="outcome")

QUERIES: tuple[Query, ...] = tuple(each for kind in KINDS.values() for each in kind.examples(SCHEMA)[:1])
"""Each query once."""

_NUMBERS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.5, 1e16, 54.0, 10.0, 18.0, 90.0)
_TEXTS = (
    "A", " a", "", "nan", "inf", "1e400", "0x1", "1_0", "\u0661", "½", "true", "NULL", "'; DROP TABLE t; --", "a\x00b",
    "\uff41", "a\u0301", "\u202eba", "🏥", "\ufeffa", "\n", "+5", "1.", ".5", "1e1", " 54 ", "-0", "\uff15\uff14",
)  # fmt: skip
_ODD = 0.05


def write_hostile(folder: Path, rows: int) -> None:
    """Write a table in which one cell in twenty is strange and one in a hundred is NULL; ages are written as text."""
    random = np.random.default_rng(5)
    ages = [f"{age:.3f}" for age in random.uniform(10, 100, 1_000)]
    columns = {
        "treat": _cells(random, rows, [0.0, 1.0], _NUMBERS, pa.float64()),
        "score": _cells(random, rows, random.uniform(-1, 11, 10_000).tolist(), _NUMBERS, pa.float64()),
        "ward": _cells(random, rows, ["a", "b", "c"], _TEXTS, pa.string()),
        "age": _cells(random, rows, ages, _TEXTS, pa.string()),
        "smoker": _cells(random, rows, ["no", "yes"], _TEXTS, pa.string()),
    }
    pq.write_table(pa.table(columns), folder / "hostile.parquet", row_group_size=50_021)


def _cells(
    random: np.random.Generator, rows: int, usual: Sequence[Any], strange: Sequence[Any], kind: pa.DataType
) -> pa.Array:
    values = pa.array([*usual, *strange], kind)
    odd = random.random(rows) < _ODD
    places = np.where(odd, len(usual) + random.integers(0, len(strange), rows), random.integers(0, len(usual), rows))
    return values.take(pa.array(places, mask=random.random(rows) < 0.01))


def numbers(query: Query, engine: Engine) -> list[Any]:
    """All that a table says to a query, in order."""
    answer = exact_answer(query, SCHEMA, engine, GUARANTEE)
    return [*answer.ticks.items(), *((each.name, each.value) for each in answer.public_values), *answer.scales.items()]


def opened(folder: str, partitions: int) -> Engine:
    """DuckDB, or Spark with so many partitions."""
    if not partitions:
        return open_table(Path(folder, "hostile.parquet"), SCHEMA)
    from dpcausal.vault.engines.spark import SparkEngine  # noqa: PLC0415 (an extra)

    return SparkEngine(session().read.parquet(folder).repartition(partitions), SCHEMA)


def session() -> "SparkSession":
    """Return Spark on this machine."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def main() -> None:
    engine = opened(sys.argv[1], int(sys.argv[2]))
    engine.aggregate({}, ["1"])  # so that starting up is not counted
    found = {}
    with without_draws():
        for query in QUERIES:
            said, cost = clocked(lambda query=query: numbers(query, engine))  # type: ignore[misc]
            found[query.name] = {"said": said, **cost}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
