"""Whether a Spark cluster whose workers are killed adds up the same integers as DuckDB, and what its driver holds.

A master and three workers run as processes of this machine. While a query has tasks at work, one worker is killed with
its executor, and another one is started after the query. Results of more than 1 MB fail, so that no rows can reach the
driver, except for matching, which needs one line of each unit there.

`python -m benchmarks.scale.cluster --json`
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.progress import progress
from benchmarks.scale.agreement import QUERIES, SCHEMA, numbers, opened, write_hostile
from dpcausal.queries import MatchedContrast, NoisyMatchedContrast, Query
from dpcausal.vault.engines.spark import SparkEngine
from tests.support.engines import without_draws
from tests.support.ports import reserved_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS, PARTITIONS, ROWS, KILLS = 3, 12, 140_000, 5
SAMPLE = (
    *("arm_moments", "cell_moments", "metric_moments", "regression_moments", "arm_regression_moments", "event_counts"),
    *("outcome_counts", "subgroup_moments", "cluster_moments", "stratum_contrasts"),  # these are added up as SQL
    *("effect_moments", "weighted_covariates", "effect_weights", "objective_perturbed_logistic", "matched_contrast"),
)
COLLECTING = (MatchedContrast, NoisyMatchedContrast)
_PACKAGE = "org.apache.spark.deploy"
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass
class Cluster:
    """A master and its workers, each a process in a group of its own, in which its executor is too."""

    folder: Path
    master: str
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self, kind: str, *words: str) -> None:
        """Start a daemon, whose log goes into the folder."""
        import pyspark  # noqa: PLC0415 (an extra)

        home = Path(pyspark.__file__).parent
        own = {"SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "128m", "SPARK_DAEMON_JAVA_OPTS": _SMALL}
        own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": self.folder, "PYSPARK_PYTHON": sys.executable}
        command = [str(home / "bin" / "spark-class"), f"{_PACKAGE}.{kind}", "--host", "127.0.0.1", "--webui-port", "0"]
        with (self.folder / f"{len(self.running)}.log").open("wb") as log:
            self.running.append(
                subprocess.Popen(  # noqa: S603
                    [*command, *words],
                    cwd=self.folder,
                    env=os.environ | {name: str(value) for name, value in own.items()},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def start_worker(self) -> None:
        """Start a worker of one core."""
        self.start("worker.Worker", "--cores", "1", "--memory", "600m", "--work-dir", str(self.folder), self.master)

    def kill(self, place: int) -> None:
        """End a daemon and all that it started, at once."""
        daemon = self.running.pop(place)
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A standalone cluster on this machine only."""
    port = reserved_port()
    made = Cluster(folder, f"spark://127.0.0.1:{port}")
    try:
        made.start("master.Master", "--port", str(port))
        for _ in range(WORKERS):
            made.start_worker()
        yield made
    finally:
        while made.running:
            made.kill(-1)


def session(master: str, largest: str) -> "SparkSession":
    """Return a session whose driver takes results of at most this size, once all workers are there."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings: dict[str, bool | float | int | str | None] = {
        "spark.cores.max": str(WORKERS),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": _SMALL,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.maxResultSize": largest,
        "spark.driver.memory": "512m",
        "spark.executor.extraJavaOptions": _SMALL,
        "spark.executor.memory": "512m",
        "spark.log.level": "OFF",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.sql.adaptive.enabled": "false",  # it would put so small a table into one partition
        "spark.sql.shuffle.partitions": str(WORKERS),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


@dataclass
class Killer:
    """Kills a worker as soon as a stage of several tasks has ended some of them and has others at work."""

    spark: "SparkSession"
    kill: Callable[[], None]
    tasks: dict[str, int] = field(default_factory=dict)

    def during(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 (as it comes)
        """Return what some work gives; a worker is killed meanwhile."""
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,))
        watch.start()
        try:
            return work()
        finally:
            over.set()
            watch.join()

    def _watch(self, over: threading.Event) -> None:
        status = self.spark.sparkContext.statusTracker()
        while not over.wait(0.005):
            for stage in status.getActiveStageIds():
                found = status.getStageInfo(stage)
                if found and found.numTasks == PARTITIONS and found.numCompletedTasks and found.numActiveTasks:
                    self.kill()
                    self.tasks = {"ended": found.numCompletedTasks, "at_work": found.numActiveTasks}
                    return


def asked(folder: Path, queries: Sequence[Query], kills: int, largest: str) -> dict[str, Any]:
    """Ask a new cluster; so many workers are killed, in queries that are spread over all."""
    lines: dict[str, Any] = {}
    killed: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory(prefix="dpcausal-spark-") as place, cluster(Path(place)) as made:
        spark = session(made.master, largest)
        frame = spark.read.parquet(str(folder)).repartition(PARTITIONS)
        engine = SparkEngine(frame, SCHEMA)
        engine.aggregate({}, ["1"])
        for at, query in enumerate(progress(queries, len(queries), "queries on the cluster")):
            killer = Killer(spark, lambda: made.kill(1))
            if len(killed) < kills and at * kills >= len(killed) * len(queries):
                lines[query.name] = killer.during(lambda query=query: numbers(query, engine))  # type: ignore[misc]
            else:
                lines[query.name] = numbers(query, engine)
            if killer.tasks:
                killed[query.name] = killer.tasks
                made.start_worker()
        heap = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # noqa: SLF001
        pools = heap.getMemoryPoolMXBeans()
        peak = sum(pool.getPeakUsage().getUsed() for pool in pools if str(pool.getType().name()) == "HEAP")
        spark.stop()
    return {"numbers": lines, "killed": killed, "driver_heap_mb": round(peak / 1e6)}


def measure(rows: int, kills: int, kinds: Sequence[str]) -> dict[str, Any]:
    """Compare the queries that are named with DuckDB."""
    chosen = [query for query in QUERIES if query.name in kinds]
    bring = [query for query in chosen if isinstance(query, COLLECTING)]
    add = [query for query in chosen if query not in bring]
    with tempfile.TemporaryDirectory(prefix="dpcausal-cluster-") as name, without_draws():
        folder = Path(name)
        write_hostile(folder, rows)
        engine, begun = opened(name, 0), time.perf_counter()
        expected = {query.name: numbers(query, engine) for query in chosen}
        duckdb_seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        found = asked(folder, add, kills, "1m")
        brought = asked(folder, bring, 0, "256m") if bring else {"numbers": {}}
        seconds = time.perf_counter() - begun
    said = found["numbers"] | brought["numbers"]
    return {
        "workers": WORKERS,
        "partitions": PARTITIONS,
        "rows": rows,
        "queries": len(chosen),
        "integers": sum(len(each) for each in expected.values()),
        "differing": sorted(name for name, each in expected.items() if said[name] != each),
        "killed": found["killed"],
        "largest_result_mb": 1,
        "driver_heap_mb": found["driver_heap_mb"],
        "queries_that_bring_lines": [query.name for query in bring],
        "seconds": round(seconds),
        "duckdb_seconds": round(duckdb_seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kills", type=int, default=KILLS, help="workers that are killed, each in a query of its own")
    parser.add_argument("--queries", nargs="*", default=SAMPLE, help="names of queries")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no daemon is left
    found = measure(chosen.rows, chosen.kills, chosen.queries)
    print(
        json.dumps(found, indent=1) if chosen.json else "\n".join(f"{name}: {value}" for name, value in found.items())
    )
    sys.exit(bool(found["differing"]) or len(found["killed"]) != chosen.kills)


if __name__ == "__main__":
    main()
