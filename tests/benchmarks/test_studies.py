"""Short forms of `python -m benchmarks.studies`: what the figures claim, on small tables."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.datasets import load, synth
from benchmarks.studies import exact_matching, figures, matching
from benchmarks.studies.setup import Setup
from benchmarks.studies.tables import cells
from dpcausal.queries import GRID, MatchedContrast
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.vault.answers.stratum_matches import smooth_bound

FOLDER = os.environ.get("DPCAUSAL_DATA")
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize(("n", "imbalance"), [(500, None), (10_000, 0.0), (10_000, 4.0), (100_000, None)])
def test_the_printed_smooth_sensitivity_lies_below_the_corrected_one(n: int, imbalance: float | None) -> None:
    table = cells(np.random.default_rng(1), n, 100, imbalance)
    printed, corrected, ours, largest = exact_matching.sensitivities(table)
    assert printed <= corrected
    assert ours < printed < largest
    assert n < 100_000 or printed < corrected / 2


def test_the_printed_smooth_sensitivity_is_not_smooth_and_the_corrected_one_is() -> None:
    beta, here, there = 0.1, np.array([[1, 5]]), np.array([[1, 4]])  # one unit moves to another stratum

    def change(*, corrected: bool) -> float:
        both = (exact_matching.smoothed(sizes, 1000, beta, corrected=corrected) for sizes in (here, there))
        return abs(math.log(next(both) / next(both)))

    assert change(corrected=False) > 1.4 * beta
    assert change(corrected=True) <= beta + 1e-12


def test_exact_matching_needs_five_times_the_noise_of_stratification() -> None:
    table = cells(np.random.default_rng(2), 10_000, 100)
    share = 0.7
    bound = smooth_bound(exact_matching.sizes_of(table), table.n, smoothness(share, 1e-5)) / (2 * GRID * table.n)
    capped = dpc.Stratification(by=["x"]).estimate(table.vault(), epsilon=1.0)
    assert math.sqrt(2) * 2 * bound / share > 5 * capped.privacy_sd


def test_stored_result_has_the_same_noise_ratio() -> None:
    stored = json.loads((RESULTS / "study_exact_matching.json").read_text(encoding="utf-8"))
    assert stored["ratio_at_epsilon_1"] >= 5
    assert min(line["repeats"] for line in stored["errors"]) >= 100


def test_the_adaptive_limit_minimises_the_error_model_and_is_the_library_s() -> None:
    table = synth(n=400, dimensions=3, seed=5)
    larger, most = matching.crowding(table)
    epsilon, error = 1.0, 0.015
    best = math.sqrt(epsilon * error * larger * most / math.sqrt(2))

    def model(k: float) -> float:
        return 2 * k**2 / epsilon**2 + (error * larger * most / k) ** 2

    assert min((best * step for step in np.linspace(0.5, 2, 31)), key=model) == pytest.approx(best, rel=0.03)
    assert model(best) < model(best * 2**-0.25)  # the printed one
    query = MatchedContrast(table.names, 5, None, error)
    public = table.vault("outcome").release(query, dpc.Guarantee(epsilon=epsilon, protects="outcome")).public_values
    corrected = matching.adaptive_limit(epsilon, error, larger, most, printed=False)
    assert max(public["limit_0"], public["limit_1"]) == pytest.approx(corrected)
    assert matching.adaptive_limit(epsilon, error, larger, most, printed=True) < corrected


def test_all_splits_add_up_and_the_paper_s_is_among_them() -> None:
    found = [setting.estimator.split for setting in matching.splits(["x"], 1)]
    assert all(math.isclose(sum(split), 1) and min(split) > 0 for split in found)
    assert (0.1, 0.7, 0.2) in found
    assert len(found) == 2 * 36


def test_a_short_study_prints_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"ERRORS": (0.01, 0.1), "NEIGHBOURS": (1, 5), "EPSILONS": (0.5, 1.0), "SPLIT_EPSILONS": (1.5,)}
    for name, values in few.items():
        monkeypatch.setattr(matching, name, values)
    monkeypatch.setattr(matching, "synth", lambda: synth(n=100, dimensions=2))
    result = matching.run(Setup(quick=True, repeats=1))
    assert any(line.startswith("Synth, record level, by split") for line in matching.text(result))
    figures.draw(result, tmp_path)
    assert {path.stem.removeprefix("study_matching_") for path in tmp_path.iterdir()} == {
        "outcome",
        "record",
        "splits",
        "limits",
    }


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("Lalonde", 445),
        pytest.param("IHDP", 747, marks=pytest.mark.skipif(FOLDER is None, reason="DPCAUSAL_DATA names no folder")),
    ],
)
def test_matching_without_privacy_finds_the_published_effect(name: str, n: int) -> None:
    table = load(name, FOLDER)
    assert table.n == n
    assert matching.non_private(table, 5) == pytest.approx(table.truth, rel=0.15)
