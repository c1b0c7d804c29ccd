"""Spark for tests: sessions, a Spark Connect server, hostile tables, and answers whose noise is fixed.

`python -m tests.vault.on_spark <address> <file>` prints the answers to a few queries by way of a Spark Connect server.
"""

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import (
    ArmMoments,
    ArmRegressionMoments,
    CellMoments,
    Cut,
    MatchedContrast,
    MetricMoments,
    Query,
    RegressionMoments,
)
from dpcausal.vault.context import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.engines.spark import SparkEngine
from tests.support.engines import InOrder, without_draws
from tests.support.ports import reserved_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARKS = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

SMALL = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 20, missing=10),
    covariates=[dpc.Binary("x"), dpc.Real("age", 20, 60)],
    entry="x",
)
REMOTE: list[Query] = [
    ArmMoments(),
    CellMoments([Cut("x")]),
    MetricMoments([["y"], ["age", "x"]], [1, 1]),
    RegressionMoments(["x", "age"]),
    ArmRegressionMoments(["x", "age"]),
    MatchedContrast(["x"], 5, None, 0.01),
]
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # which begins sooner, and is soon over
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

inf, nan = float("inf"), float("nan")
NUMBERS = [0.0, -0.0, 1.0, 7.25, 10.0, 20.0, 54.0, nan, inf, -inf, 1e308, -1e308, 5e-324, 1e16, None]
TEXTS = [
    "0", "1", "a", "A", " a", "a ", "", "33", " 41.5\n", "5e1", "+27", "nan", "-NaN", "nan(7)", "inf", "-Infinity",
    "1e400", "-0", "1_0", "0x1", "0x1p3", "1d", "2.5f", "\u0661", "½", "'", '"', "\\n", "a\\b", "${x}", "{x}", "%",
    "a\x00b", "é", "e\u0301", "\ufeff1", "1\u2028", "🏥", "\n", "x" * 3_000, None,
]  # fmt: skip


def hostile_table(size: int = 400) -> pa.Table:
    """A table for `SCHEMA`, of which many cells are not as declared."""
    draw = random.Random(11)  # noqa: S311

    def cells(usual: Callable[[], object], strange: Sequence[Any]) -> list[Any]:
        return [usual() if draw.random() < 0.7 else draw.choice(strange) for _ in range(size)]

    return pa.table(
        {
            "t": pa.array(cells(lambda: draw.randint(0, 1), [0, 1, 127, -128, None]), pa.int8()),
            "y": pa.array(cells(lambda: draw.uniform(-2, 22), NUMBERS), pa.float64()),
            "x": pa.array(cells(lambda: draw.choice("01"), TEXTS), pa.string()),
            "age": pa.array(cells(lambda: repr(draw.uniform(18, 65)), TEXTS), pa.string()),
        }
    )


def answer(query: Query, engine: Engine) -> Answer:
    """What an engine makes of a query where all draws are fixed."""
    with without_draws():
        return exact_answer(query, SCHEMA, InOrder(engine), dpc.Guarantee(epsilon=1.0, delta=1e-6))


def sizes(batch: Batch) -> NDArray[np.int64]:
    """A kernel: how many units there are, and how many batches larger than kernels are exact for."""
    size = len(batch["outcome"])
    return np.array([size, size > 65_536])


@contextmanager
def settings(spark: "SparkSession", changed: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {name: str(spark.conf.get(name)) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def frame_of(spark: "SparkSession", table: pa.Table, partitions: int = 1) -> "DataFrame":
    """A frame of so many partitions, made once."""
    return spark.createDataFrame(table).repartition(partitions).cache()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server of its own, on this machine only and with no more life than the test."""
    import pyspark  # noqa: PLC0415 (an extra)

    port = reserved_port()
    configured = SETTINGS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder),
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in configured.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home)}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)  # noqa: S603
    try:
        _wait_for(port, server, 200)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(port: int, server: "subprocess.Popen[bytes]", seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("no Spark Connect server came up")


def as_json(answers: Sequence[Answer]) -> str:
    return json.dumps(
        [[dict(each.ticks), [value.value for value in each.public_values], dict(each.scales)] for each in answers]
    )


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    engine = SparkEngine(session.read.parquet(sys.argv[2]).repartition(3), SCHEMA)
    sys.stdout.write(as_json([answer(query, engine) for query in REMOTE]))
