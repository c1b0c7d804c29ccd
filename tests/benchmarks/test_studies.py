"""Short forms of `python -m benchmarks.studies`: what the figures claim, on small tables."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.datasets import load, synth
from benchmarks.studies import figures, matching, weighting
from benchmarks.studies.setup import Setup
from dpcausal.queries import MatchedContrast

FOLDER = os.environ.get("DPCAUSAL_DATA")


@pytest.mark.parametrize("effect", weighting.EFFECTS)
def test_noise_in_the_score_biases_as_the_corrected_formula_says_and_not_as_printed(effect: float) -> None:
    found = weighting.noisy(np.random.default_rng(3), effect, 0.2, 1000, trials=10)
    assert abs(found.bias - found.corrected_bias) < 4 * found.bias_se
    assert abs(found.bias - found.printed_bias) > 20 * found.bias_se
    assert found.bias * found.printed_bias < 0  # not even the sign
    assert abs(found.bias_of_debiased) < 4 * found.bias_of_debiased_se


def test_covariates_are_within_their_public_length() -> None:
    generator = np.random.default_rng(4)
    units = weighting.World.draw(generator, 50, 2.0).units(generator, 2000)
    assert np.linalg.norm(units.x, axis=1).max() <= 1 + 1e-12


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


@pytest.mark.skipif(FOLDER is None, reason="DPCAUSAL_DATA, a folder with ihdp and lalonde, is not set")
@pytest.mark.parametrize(("name", "n"), [("Lalonde", 445), ("IHDP", 747)])
def test_matching_without_privacy_finds_the_published_effect(name: str, n: int) -> None:
    table = load(name, FOLDER)
    assert table.n == n
    assert matching.non_private(table, 5) == pytest.approx(table.truth, rel=0.15)
