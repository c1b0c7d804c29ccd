"""Intervals of effects that vary cover, in a run short enough for every change; and one that forgets noise does not."""

from dataclasses import replace

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import curve_coverage

RUNS = 60


@pytest.mark.parametrize(
    "cell",
    [
        curve_coverage.Cell("subgroups", 2_000, 1.0, 0.0),
        curve_coverage.Cell("subgroups_adjusted", 5_000, 2.0, 1e-6),
        curve_coverage.Cell("r_learner_linear", 5_000, 1.0, 1e-6),
        curve_coverage.Cell("blocks_linear", 5_000, 2.0, 1e-6),
    ],
    ids=lambda cell: cell.study,
)
def test_intervals_cover(cell: curve_coverage.Cell) -> None:
    """Even at 93 %, that fewer than 45 of 60 studies hold altogether has a chance of less than one in a million."""
    runs = [curve_coverage.simulate((cell, (0, run))) for run in range(RUNS)]
    assert sum(every for _, every, _, _ in runs) >= 45
    assert np.mean([share for share, *_ in runs]) > 0.88


def test_intervals_without_privacy_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgets:
        @staticmethod
        def estimate(source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.EffectCurve:
            curve = dpc.SubgroupEffects(by=["site"]).estimate(source, epsilon=epsilon, delta=delta)
            return replace(curve, privacy=tuple(tuple(0.0 for _ in line) for line in curve.privacy))

    monkeypatch.setitem(curve_coverage.STUDIES, "subgroups", (Forgets(), curve_coverage.by_site, False))
    cell = curve_coverage.Cell("subgroups", 2_000, 0.5, 0.0)
    runs = [curve_coverage.simulate((cell, (0, run))) for run in range(RUNS)]
    assert sum(every for _, every, _, _ in runs) < 30
