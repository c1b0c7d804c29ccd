"""Short forms of `python -m benchmarks.studies`: what the figures claim, on small tables."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.studies import exact_matching, weighting
from benchmarks.studies.tables import cells
from dpcausal.queries import GRID
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.vault.answers.stratum_matches import smooth_bound

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
