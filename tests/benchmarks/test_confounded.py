"""The stored results of `benchmarks.confounded` keep their promises, and a short simulation agrees with them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.array_engine import ArrayEngine, ticks
from benchmarks.confounded import OUTCOME, RESULTS, Cell, X, Y, simulate
from dpcausal import Guarantee
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import WeightedCounts
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

STORED = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_stored_intervals_cover_with_weights_and_not_without() -> None:
    for cell in STORED["cells"]:
        assert cell["runs"] >= 400
        covered = [cell[name] for name in cell if name.startswith("coverage")]
        if cell["weights"]:
            assert min(covered) >= 0.93
            assert cell["n"] < 20_000 or max(covered) <= 0.98
        elif cell["n"] >= 5_000:
            assert max(covered) < 0.5


@pytest.mark.parametrize("topic", ["survival", "quantiles"])
def test_a_few_weighted_tables_cover(topic: str) -> None:
    runs = [simulate((Cell(topic, 5_000, "ATO"), (9, run))) for run in range(12)]
    inside = [abs(run.errors[name]) <= run.halves[name] for run in runs for name in run.errors]
    assert np.mean(inside) > 0.8


def test_array_engine_folds_the_integers_of_duckdb() -> None:
    random = np.random.default_rng(1)
    arm, k, x, y = (
        random.integers(0, 2, 300),
        random.integers(0, 2, 300),
        random.uniform(-1, 1, 300),
        np.arange(300) / 3,
    )
    whole = open_table(connect(threads=1).from_arrow(pa.table({"arm": arm, "k": k, "x": x, "y": y})), OUTCOME)
    fast = ArrayEngine(y, {"treatment": arm, "covariate_0": ticks(x, X), "covariate_1": k}, Y)
    query = WeightedCounts(["x", "k"], [0.1, 2.0, -1.0], "ATE", 0.1, [30.0, 60.0])
    one, other = (exact_answer(query, OUTCOME, each, Guarantee(epsilon=1)).ticks for each in (whole, fast))
    assert one == other
