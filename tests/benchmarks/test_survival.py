"""The stored results on survival keep their promises, and a short simulation agrees with them."""

import json

import numpy as np
import pytest

from benchmarks.survival import HORIZON, RESULTS, Cell, censoring_rate, simulate, trial, truth
from benchmarks.survival_peers import breslow_tree, kaplan_meier


def test_stored_intervals_cover() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for cell in results["cells"]:
        assert cell["runs"] >= 400
        for name in ("rmst", "survival"):
            assert 0.93 <= cell[f"coverage, {name}"] <= 0.97
    assert results["null"]["log-rank uniform, p"] > 0.01


def test_simulated_trials_have_the_stated_censoring_and_truth() -> None:
    cell = Cell(100_000, "record")
    columns = trial(np.random.default_rng(1), cell)
    early = (columns["died"] == 0) & (columns["years"] < 5)
    assert early.mean() == pytest.approx(0.3, abs=0.01)
    assert censoring_rate(cell) > 0
    (control, mean), (treated, treated_mean) = (
        kaplan_meier(columns["years"][columns["arm"] == arm], columns["died"][columns["arm"] == arm], 5.0)
        for arm in (0, 1)
    )
    assert treated - control == pytest.approx(truth(cell)["survival"], abs=0.02)
    assert treated_mean - mean == pytest.approx(truth(cell)["rmst"], abs=0.05)


@pytest.mark.costly("benchmarks/results")
def test_a_few_simulated_trials_cover() -> None:
    runs = [simulate((Cell(2_000, "record"), (9, run))) for run in range(25)]
    assert sum(run.covered["rmst"] for run in runs) >= 21
    assert sum(run.covered["survival"] for run in runs) >= 21
    ours, theirs = (
        np.mean([run.errors[f"survival, {name}"] ** 2 for run in runs]) for name in ("dpcausal", "corrected DP-Surv, 2")
    )
    assert ours < theirs


def test_tree_of_hazards_is_kaplan_meier_where_noise_vanishes() -> None:
    columns = trial(np.random.default_rng(2), Cell(20_000, "record"))
    found = breslow_tree(np.random.default_rng(3), columns["years"], columns["died"], HORIZON, 1e6)
    assert found == pytest.approx(kaplan_meier(columns["years"], columns["died"], HORIZON), rel=0.01)
