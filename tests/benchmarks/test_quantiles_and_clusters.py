"""Short forms of `benchmarks.quantiles` and `benchmarks.clusters`, and the pages that show their results."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from benchmarks import clusters, quantiles
from benchmarks.array_engine import ArrayEngine
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import ArmOutcomeCounts, ClusterMoments, Query
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

ROOT = Path(__file__).parents[2]
RUNS = 40


def published(name: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text("utf-8"))["cells"]
    return lines


@pytest.mark.parametrize("name", ["quantiles", "clusters"])
def test_published_intervals_cover(name: str) -> None:
    lines = published(name)
    assert min(line["runs"] for line in lines) >= 400
    coverage = np.array([line["coverage"] for line in lines])
    assert 0.945 < coverage.mean() < 0.97
    # A cell of 400 runs is within 3.5 standard errors of an interval that covers 94 to 97 %.
    assert coverage.min() > 0.94 - 3.5 * 0.0119
    assert coverage.max() < 0.97 + 3.5 * 0.0085


def test_quantile_intervals_cover() -> None:
    cell = quantiles.Cell("skewed", "record", 2_000, 1.0)
    runs = [quantiles.simulate((cell, (99, run))) for run in range(RUNS)]
    inside = np.array([np.abs(run.errors) <= np.array(run.halves) for run in runs])
    assert inside.mean() > 0.88
    lines: list[dict[str, Any]] = quantiles.summary(cell, runs)
    assert all(line["coverage"] > 0.8 for line in lines)


def test_cluster_intervals_cover_and_those_that_forget_clusters_do_not() -> None:
    cell = clusters.Cell(0.1, 10, 100, "record", 1.0)
    runs = [clusters.simulate((cell, (99, run))) for run in range(RUNS)]
    assert np.mean([run.covered for run in runs]) > 0.84
    assert np.mean([run.forgetful for run in runs]) < 0.75


def test_array_engine_has_the_integers_of_duckdb() -> None:
    random = np.random.default_rng(1)
    arm, cluster, y = random.integers(0, 2, 500), random.integers(0, 4, 500), random.normal(50, 30, 500)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("y", 0, 100),
        covariates=[dpc.Category("c", ["p", "q", "r", "s"])],
    )
    table = pa.table({"arm": arm, "y": y, "c": [schema.covariates[0].values[each] for each in cluster]})  # type: ignore[union-attr]
    whole = open_table(connect(threads=1).from_arrow(table), schema)
    fast: Any = ArrayEngine(y, {"treatment": arm, "covariate_0": cluster}, dpc.Real("y", 0, 100))
    queries: list[Query] = [ArmOutcomeCounts([10.0, 33.3, 70.0]), ClusterMoments("c", ["q", "s"])]
    for query in queries:
        one, other = (exact_answer(query, schema, each, dpc.Guarantee(epsilon=1)).ticks for each in (whole, fast))
        assert one == other
