"""What one engine adds up for every query on a hostile table: `python -m benchmarks.scale.agreement FOLDER PARTITIONS`.

No partitions stand for DuckDB, any number for Spark with so many. Draws are left out: where an answer draws noise, or
puts units into blocks by lot, as it begins, it is asked here as if every draw had come out in one and the same way.
"""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.clock import clocked
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import (
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    BlockEffects,
    Cells,
    CovariateSums,
    Cut,
    EffectMoments,
    EffectWeights,
    InfluenceEffects,
    MatchedContrast,
    NoisyMatchedContrast,
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScoreCounts,
    Spline,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)
from dpcausal.testing import standard_schema
from dpcausal.vault.answers.block_effects import for_learners
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.learners import find_learner
from dpcausal.vault.table import open_table

SCHEMA = standard_schema("outcome")
GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6, protects="outcome")

_OF = ("age", "smoker")
_CUTS = (Cut("ward"), Cut("age", (30.0, 45.0, 60.0)), Cut("smoker"))
_SCORE, _CONTROL, _TREATED = (0.2, -0.7, 0.4), (0.1, 0.5, -0.3), (0.3, 0.4, -0.2)
_AT = ((30.0, "no"), (70.0, "yes"))

QUERIES: tuple[Query, ...] = (
    ArmTotals(),
    ArmMoments(),
    StratumContrasts(_CUTS, 3),
    StratumMatches(_CUTS, "smooth"),
    OutputPerturbedLogistic(_OF, 1_000.0),
    ObjectivePerturbedLogistic(_OF),
    WeightedArms(_OF, _SCORE, "ATE", 0.1),
    RegressionMoments(("ward", *_OF)),
    AugmentedScores(_OF, _SCORE, _CONTROL, _TREATED, "ATO", 0.1, 2.0),
    MatchedContrast(_OF, 5, None, 0.003),
    NoisyMatchedContrast(_OF, _SCORE, 5, None, 0.001, (0.05, 0.75, 0.2)),
    OutcomesBelow(3.0),
    SubgroupMoments(Cells(_CUTS)),
    EffectMoments(_OF, _SCORE, _CONTROL, _TREATED, Spline(["age"], 3), "residual", 0.1, 2.0),
    EffectWeights(_OF, _SCORE, _CONTROL, _TREATED, Spline(["age"], 3), 0.1, 0.5, 1_000.0),
    BlockEffects("linear", _OF, _AT, 50, 0.5),
    InfluenceEffects("linear", _OF, _AT, 0.05),
    StratumCounts(Cells(_CUTS)),
    ScoreCounts(_OF, _SCORE, (0.3, 0.5, 0.7)),
    CovariateSums(("ward", *_OF)),
    WeightedCovariates(("ward", "age"), _OF, _SCORE, "ATE", 0.1),
)
"""Each query once."""

_NUMBERS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.5, 1e16, 54.0, 10.0, 18.0, 90.0)
_TEXTS = (
    "A", " a", "", "nan", "inf", "1e400", "0x1", "1_0", "\u0661", "½", "true", "NULL", "'; DROP TABLE t; --", "a\x00b",
    "\uff41", "a\u0301", "\u202eba", "🏥", "\ufeffa", "\n", "+5", "1.", ".5", "1e1", " 54 ", "-0", "\uff15\uff14",
)  # fmt: skip
_ODD = 0.05


def write_hostile(folder: Path, rows: int) -> None:
    """A table in which one cell in twenty is strange, and one in a hundred is NULL; ages are written as text."""
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


class InOrder:
    """An engine whose rows, where they are seen side by side, come in one order."""

    def __init__(self, engine: Engine) -> None:
        self.aggregate, self.fold, self._engine = engine.aggregate, engine.fold, engine

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        """All rows, sorted by all of their columns."""
        batch = self._engine.collect(columns, limit, kernel, whole=whole)
        order = np.lexsort(list(batch.values()))
        return {name: column[order] for name, column in batch.items()}


@contextmanager
def without_draws() -> Iterator[None]:
    """Replace every draw inside an answer by a fixed one."""
    fixed: dict[str, Any] = {
        "cube": lambda _, dimensions, __: np.full(dimensions, 0.5),
        "laplace": lambda _, ticks, __: ticks,
        "randomised_response": lambda _, arms, __: arms,
        "shuffle": lambda _, size: np.arange(size),
    }
    with mock.patch.multiple(Sampler, **fixed):
        yield


def numbers(query: Query, engine: Engine) -> list[Any]:
    """All that a table says to a query, in order."""
    if isinstance(query, InfluenceEffects):  # what its networks are trained on: training them takes an hour
        columns = for_learners(query, SCHEMA, InOrder(engine))
        return [hashlib.sha256(column.tobytes()).hexdigest() for column in columns]
    if isinstance(query, BlockEffects):
        answer = exact_answer(query, SCHEMA, InOrder(engine), GUARANTEE, learner=find_learner("linear", {}))
    else:
        answer = exact_answer(query, SCHEMA, engine, GUARANTEE)
    return [*answer.ticks.items(), *((each.name, each.value) for each in answer.public_values), *answer.scales.items()]


def opened(folder: str, partitions: int) -> Engine:
    """DuckDB, or Spark with so many partitions."""
    if not partitions:
        return open_table(Path(folder, "hostile.parquet"), SCHEMA)
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    from dpcausal.vault.engines.spark import SparkEngine  # noqa: PLC0415

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    return SparkEngine(spark.read.parquet(folder).repartition(partitions), SCHEMA)


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
