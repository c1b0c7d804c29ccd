"""Spark gives the integers that DuckDB gives, however rows are spread, and when it fails it tells nothing of them."""

import logging
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.queries import (
    QUERIES,
    CovariateMoments,
    CovariateSums,
    EffectWeights,
    Fourier,
    MetricMoments,
    Query,
    RegressionMoments,
)
from dpcausal.vault.engines import Batch, Engine, ExactInts, ticks_in
from dpcausal.vault.engines.spark import SparkEngine, is_spark_frame
from dpcausal.vault.table import open_table
from tests.support.conformance import check_engine
from tests.support.open_engines import signed_integers
from tests.vault.on_spark import (
    MARKS,
    REMOTE,
    SCHEMA,
    SMALL,
    answer,
    as_json,
    connect_server,
    frame_of,
    hostile_table,
    settings,
    sizes,
)
from tests.vault.sql_texts import THREE_ARMS, corners, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.costly("src"), *MARKS]  # one test starts another Python

MARKER = "xyzzy-4711"

EXAMPLES: list[Query] = [each for query in QUERIES.values() for each in query.examples(SCHEMA)[-1:]]


@pytest.fixture(scope="module")
def duck() -> Engine:
    return open_table(hostile_table(), SCHEMA)


@pytest.fixture(scope="module")
def spread(spark: "SparkSession") -> list[SparkEngine]:
    """The hostile table in 1, 3 and 7 parts."""
    return [SparkEngine(frame_of(spark, hostile_table(), parts), SCHEMA) for parts in (1, 3, 7)]


def test_spark_conforms(spark: "SparkSession") -> None:
    """Random schemas are for `python -m checks.engines`: Spark compiles each for seconds."""
    check_engine(lambda table, schema: SparkEngine(frame_of(spark, signed_integers(table), 3), schema), schemas=0)


@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.name)
def test_every_query_has_the_same_answer(query: Query, duck: Engine, spread: list[SparkEngine]) -> None:
    assert answer(query, spread[EXAMPLES.index(query) % 3]) == answer(query, duck)


@pytest.mark.slow
@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.name)
def test_no_spread_of_rows_changes_the_answer(query: Query, duck: Engine, spread: list[SparkEngine]) -> None:
    expected = answer(query, duck)
    assert [answer(query, engine) == expected for engine in spread] == [True] * 3


def test_products_of_cells_that_are_far_out_are_the_same_integers(spark: "SparkSession") -> None:
    table, sums = corners(), distinct(THREE_ARMS, MetricMoments.examples(THREE_ARMS))
    engines = SparkEngine(frame_of(spark, table, 3), THREE_ARMS), open_table(table, THREE_ARMS)
    stage = [column.name for column in THREE_ARMS.covariates].index("stage")
    cells = {"arm": 4, f"covariate_{stage}": 4}
    found, expected = (engine.aggregate(cells, sums, whole=True) for engine in engines)
    assert (found == expected).all()


def test_a_solver_that_reads_rows_at_every_step_has_the_same_answer(
    duck: Engine, spread: list[SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = EffectWeights(["x"], [0.5, -1.25], [0.1, 0.2], [-0.3, 1], Fourier(["age"], 2.0, 3, 1), 0.1, 0.25, 30.0)
    expected = answer(query, duck)
    monkeypatch.setattr("dpcausal.vault.answers.logistic.MAX_ROWS_IN_MEMORY", 0)
    assert answer(query, spread[1]) == expected


@pytest.mark.parametrize("most", [0, 3])
@pytest.mark.parametrize("kind", [RegressionMoments, CovariateMoments, CovariateSums])
def test_products_are_the_same_as_sql_and_by_a_kernel(
    kind: type[Query], most: int, duck: Engine, spread: list[SparkEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkEngine, "most_sql_features", most)
    if most:
        monkeypatch.setattr(SparkEngine, "fold", None)
    query = kind(["x"])  # type: ignore[call-arg]
    assert answer(query, spread[1]) == answer(query, duck)


def test_many_sums_take_several_passes_and_are_the_same(duck: Engine, spread: list[SparkEngine]) -> None:
    sums = ["1", *(f"outcome + {place}" for place in range(44))]
    for cells in ({}, {"treatment": 2}):
        assert (spread[1].aggregate(cells, sums) == duck.aggregate(cells, sums)).all()


def test_workers_are_probed_before_the_debit(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    vault = dpc.Vault(frame_of(spark, hostile_table(), 1), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    weighting = dpc.InverseWeighting(covariates=["age"])

    def probe(_: Any) -> Iterator[Any]:
        import absent_4711  # type: ignore[import-not-found]  # noqa: PLC0415

        yield absent_4711

    monkeypatch.setattr("dpcausal.vault.engines.spark._probe", lambda: probe)
    with pytest.raises(EngineError, match="no module 'absent_4711' there"):
        weighting.estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0
    dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)  # needs no Python there
    monkeypatch.undo()
    weighting.estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon > 1


# Sums, beyond any size.

MANY = 2**22 + 9
ODD = "(2 * (CAST(outcome AS BIGINT) * outcome) - 1)"


def odd_sum(engine: Engine) -> int:
    """The sum of many equal odd numbers: one that no 64 bits and no floating-point number can hold."""
    return int(engine.aggregate({"treatment": 2}, [ODD])[0, 0])


EXACT = MANY * (2 * (2**20 - 1) ** 2 - 1)


@pytest.fixture(scope="module")
def many(spark: "SparkSession") -> "DataFrame":
    """Units whose outcome is one step below the largest."""
    return spark.range(MANY).selectExpr("0 AS t", f"CAST({10 - 5 / 2**20!r} AS DOUBLE) AS y")


def test_sums_are_exact_beyond_64_bits(many: "DataFrame") -> None:
    assert odd_sum(SparkEngine(many, SMALL)) == EXACT > 2**63


class Undivided(SparkEngine):
    """Adds up as Spark does."""

    kind = "BIGINT"

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:  # noqa: ARG002
        text = f"SELECT SUM(CAST({sums[0]} AS {self.kind})) FROM {{coerced}}"
        return np.array([[self._whole.sparkSession.sql(text, coerced=self._whole).collect()[0][0]]])


class Doubles(Undivided):
    """Adds up in floating point."""

    kind = "DOUBLE"


def test_sums_in_floating_point_or_in_64_bits_would_be_caught(many: "DataFrame") -> None:
    assert odd_sum(Doubles(many, SMALL)) != EXACT
    with pytest.raises(Exception, match="overflow"):
        odd_sum(Undivided(many, SMALL))


# Batches.


class Uncut(SparkEngine):
    """Takes batches as they come."""

    def fold(self, columns: Sequence[str], kernel: "Callable[[Batch], NDArray[Any]]") -> ExactInts:
        def parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                whole, large = kernel({name: ticks_in(batch.column(name)) for name in columns})
                yield pa.RecordBatch.from_pydict({"whole": [int(whole)], "large": [int(large)]})

        lines = self._whole.select(*columns).mapInArrow(parts, "whole BIGINT, large BIGINT").collect()
        return np.asarray(np.array(lines, dtype=object).sum(axis=0))


def test_kernels_see_batches_they_are_exact_for(spark: "SparkSession") -> None:
    frame = spark.range(150_000).selectExpr("0 AS t", "1.0D AS y").coalesce(1)
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "-1"}):
        assert SparkEngine(frame, SMALL).fold(["outcome"], sizes).tolist() == [150_000, 0]
        assert Uncut(frame, SMALL).fold(["outcome"], sizes).tolist() == [150_000, 1]


def test_partitions_without_rows_and_empty_frames_add_up(spark: "SparkSession") -> None:
    few = spark.createDataFrame([(1, 5.0), (0, 10.0)], "t INT, y DOUBLE")
    assert SparkEngine(few.repartition(5), SMALL).fold(["outcome"], sizes).tolist() == [2, 0]
    for empty in (few.limit(0), spark.createDataFrame([], "t INT, y DOUBLE")):
        engine = SparkEngine(empty, SMALL)
        assert engine.aggregate({"treatment": 2}, ["outcome", "1"]).tolist() == [[0, 0], [0, 0]]
        assert engine.fold(["outcome"], sizes).tolist() == [0, 0]
        assert engine.collect(["outcome"], 0, lambda batch: {"twice": 2 * batch["outcome"]})["twice"].tolist() == []


def test_collecting_has_a_public_limit_and_brings_only_what_a_kernel_makes(spread: list[SparkEngine]) -> None:
    plain = spread[2].collect(["outcome", "treatment"], 400)
    made = spread[2].collect(["outcome", "treatment"], 400, lambda batch: {"a `b`": batch["outcome"] - 1})
    assert {values.dtype for values in (*plain.values(), *made.values())} == {np.dtype(np.int64)}
    assert list(made) == ["a `b`"]
    assert sorted(made["a `b`"]) == sorted(plain["outcome"] - 1)
    with pytest.raises(TableError, match="at most 399 units"):
        spread[2].collect(["outcome"], 399)


# What is said.


def failing(spark: "SparkSession") -> "DataFrame":
    """A frame that fails at one row, with a message that quotes it."""
    texts = spark.createDataFrame([(0, "1"), (1, MARKER)], "t INT, y STRING")
    return texts.select("t", texts["y"].cast("double").alias("y"))


def failing_kernel(batch: Batch) -> "NDArray[np.int64]":
    if len(batch["outcome"]):
        raise ValueError(f"{MARKER} {batch['outcome']}")
    return np.zeros(1, dtype=np.int64)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What Spark writes, in Python, of its errors."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [
        logging.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j", None)
    ]
    for logger in loggers:
        logger.addHandler(handler)
    yield lines
    for logger in loggers:
        logger.removeHandler(handler)


def test_a_failing_engine_does_not_say_what_it_saw(spark: "SparkSession", said: list[str]) -> None:
    engine, whole = SparkEngine(failing(spark), SMALL), SparkEngine(spark.sql("SELECT 0 AS t, 1.0D AS y"), SMALL)
    attempts: list[Callable[[], object]] = [
        lambda: engine.aggregate({}, ["outcome"]),
        lambda: engine.fold(["outcome"], sizes),
        lambda: engine.collect(["outcome"], 10),
        lambda: whole.fold(["outcome"], failing_kernel),
        lambda: whole.collect(["outcome"], 10, lambda batch: {"a": failing_kernel(batch)}),
    ]
    for attempt in attempts:
        with pytest.raises(EngineError) as caught:
            attempt()
        assert caught.value.__cause__ is caught.value.__context__ is None
        trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        assert MARKER not in "".join(trace.format())
    assert said == []


def test_what_spark_says_itself_would_be_caught(spark: "SparkSession", said: list[str]) -> None:
    with pytest.raises(Exception, match=MARKER):
        failing(spark).collect()
    assert any(MARKER in line for line in said)


# Ways in.


def test_frames_of_spark_are_known_without_importing_it(spark: "SparkSession") -> None:
    assert is_spark_frame(spark.range(1))
    assert not any(map(is_spark_frame, [pa.table({}), None, "table.parquet", spark]))
    code = "from dpcausal.vault.engines.spark import *; import sys; print(is_spark_frame(1), 'pyspark' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.split() == ["False", "False"]


def test_a_vault_opens_a_spark_frame(spark: "SparkSession") -> None:
    vault = dpc.Vault(frame_of(spark, hostile_table(), 3), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    effect = dpc.DifferenceInMeans().estimate(vault, epsilon=9.0)
    assert vault.n == 400
    assert -20 < effect.estimate < 20


@pytest.mark.slow  # it starts a second Java
def test_spark_connect_gives_the_same_answers(spark: "SparkSession", duck: Engine, tmp_path: Path) -> None:
    pq.write_table(hostile_table(), tmp_path / "table.parquet")
    with connect_server(tmp_path) as address:
        command = [sys.executable, "-m", "tests.vault.on_spark", address, str(tmp_path / "table.parquet")]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert told.stdout == as_json([answer(query, duck) for query in REMOTE]), told.stderr
