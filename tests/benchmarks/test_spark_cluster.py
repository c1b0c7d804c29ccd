"""A Spark cluster of several processes, one of which is killed in mid-query, gives the integers that DuckDB gives."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import cluster

pytestmark = pytest.mark.xdist_group("spark")

SAMPLE = ("arm_moments", "regression_moments", "effect_moments", "matched_contrast")
"""Sums as SQL, with one grouping and with many numbers; sums by a kernel on workers; rows that are brought."""

MOST_SECONDS = 1_200
"""Most of it on a busy machine: alone it takes one or two minutes."""


@pytest.mark.costly("src", "benchmarks")  # it starts another Python
def test_a_cluster_whose_worker_is_killed_gives_the_same_integers() -> None:
    pytest.importorskip("pyspark.sql", reason="no Spark: pip install 'dpcausal[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("no Java, which Spark runs on")
    words = ["--rows", "8000", "--kills", "1", "--queries", *SAMPLE, "--json"]
    command = [sys.executable, "-m", "benchmarks.scale.cluster", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            told, complaint = process.communicate(timeout=MOST_SECONDS)
        finally:
            process.terminate()  # which ends the cluster
    assert process.returncode == 0, complaint
    found = json.loads(told)
    assert found["queries"] == len(SAMPLE)
    assert found["differing"] == []
    (tasks,) = found["killed"].values()
    assert min(tasks.values()) >= 1
    assert tasks["ended"] + tasks["at_work"] <= found["partitions"]


def stored() -> dict[str, Any]:
    file = Path(__file__).parents[2] / "benchmarks" / "results" / "spark_cluster.json"
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


def test_the_stored_run_killed_workers_and_lost_nothing() -> None:
    found = stored()
    assert found["differing"] == []
    assert found["queries"] == len(cluster.SAMPLE)
    assert len(found["killed"]) == cluster.KILLS
    assert all(tasks["ended"] and tasks["at_work"] for tasks in found["killed"].values())


def test_page_shows_the_stored_run() -> None:
    found, page = stored(), (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    said = " ".join(page.split())
    assert f"{found['queries']} queries on {found['rows']:,} hostile rows" in said
    assert f"{len(found['killed'])} workers were killed in mid-query" in said
    assert f"no result of more than {found['largest_result_mb']} MB" in said
    assert f"at most {found['driver_heap_mb']} MB" in said
