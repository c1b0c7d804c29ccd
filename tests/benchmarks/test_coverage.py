"""A short form of `python -m benchmarks.coverage`: intervals cover, and those without privacy noise do not.

That standard errors are right is for `tests/statistics` to show, without a simulation.
"""

import dataclasses

import pytest

from benchmarks import coverage

pytestmark = pytest.mark.costly

RUNS = 20

CELLS = [
    coverage.Cell("difference_in_means", "record", "even", 400, 1.0, 0.0),
    coverage.Cell("difference_in_means", "record_within_arm", "yes_or_no", 400, 1.0, 0.0),
    coverage.Cell("stratification", "record", "confounded", 1000, 1.0, 0.0),
    coverage.Cell("exact_matching", "record", "confounded", 2000, 4.0, 1e-6),
    coverage.Cell("propensity_matching", "outcome", "scored", 1000, 1.0, 0.0),
    coverage.Cell("inverse_weighting", "record", "scored_risk", 2000, 4.0, 0.0),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.estimator}-{cell.outcome}")
def test_intervals_cover(cell: coverage.Cell) -> None:
    runs = [coverage.simulate((cell, (99, run))) for run in range(RUNS)]
    assert sum(run.covered for run in runs) / RUNS > 0.75  # 95 % less 4 standard errors


def test_intervals_without_privacy_noise_are_caught() -> None:
    """The mutant: the textbook interval on a noisy estimate."""
    cell = coverage.Cell("difference_in_means", "record", "skewed", 400, 0.5, 0.0)
    runs = [coverage.simulate((cell, (98, run))) for run in range(RUNS)]
    forgetful = sum(abs(run.error) <= 1.96 * run.sampling_sd for run in runs) / RUNS
    assert forgetful < 0.8


def test_a_summary_counts_what_happened() -> None:
    cell = coverage.Cell("difference_in_means", "record", "even", 400, 1.0, 0.0)
    hit = coverage.Run(covered=True, refused=False, error=0.1, width=1.0, sampling_sd=0.2, privacy_sd=0.3)
    miss = dataclasses.replace(hit, covered=False, error=-0.1)
    line = coverage.summary(cell, [hit, hit, hit, miss])
    assert (line["coverage"], line["bias"], line["rmse"], line["runs"]) == (0.75, 0.05, 0.1, 4)
