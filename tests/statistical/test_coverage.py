"""A short form of `python -m benchmarks.coverage`: wide enough to pass always, narrow enough to see a wrong formula."""

import dataclasses

import pytest

from benchmarks import coverage
from dpcausal.schema import Protects

RUNS = 150


def runs_of(protects: Protects, outcome: str, n: int) -> list[coverage.Run]:
    cell = coverage.Cell("difference_in_means", protects, outcome, n, 1.0, 0.0)
    return [coverage.simulate((cell, (99, run))) for run in range(RUNS)]


@pytest.mark.parametrize(("protects", "outcome"), [("record", "even"), ("record_within_arm", "yes_or_no")])
def test_intervals_cover(protects: Protects, outcome: str) -> None:
    runs = runs_of(protects, outcome, 400)
    assert sum(run.covered for run in runs) / RUNS > 0.87  # 95 % less 4 standard errors


def test_intervals_that_forget_the_privacy_noise_are_caught() -> None:
    """The twin: the textbook interval on a noisy estimate."""
    cell = coverage.Cell("difference_in_means", "record", "skewed", 400, 0.5, 0.0)
    runs = [coverage.simulate((cell, (98, run))) for run in range(RUNS)]
    forgetful = sum(abs(run.error) <= 1.96 * run.sampling_sd for run in runs) / RUNS
    assert forgetful < 0.8


def test_a_summary_counts_what_happened() -> None:
    cell = coverage.Cell("difference_in_means", "record", "even", 400, 1.0, 0.0)
    hit = coverage.Run(covered=True, error=0.1, width=1.0, sampling_sd=0.2, privacy_sd=0.3)
    miss = dataclasses.replace(hit, covered=False, error=-0.1)
    line = coverage.summary(cell, [hit, hit, hit, miss])
    assert (line["coverage"], line["bias"], line["rmse"], line["runs"]) == (0.75, 0.05, 0.1, 4)
