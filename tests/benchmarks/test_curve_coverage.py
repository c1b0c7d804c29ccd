"""A short form of `python -m benchmarks.curve_coverage`: intervals cover, and those without privacy noise do not."""

from dataclasses import replace

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks import curve_coverage
from tests.support.slow import sampled

pytestmark = pytest.mark.costly

RUNS = 40

CELLS = [
    curve_coverage.Cell("subgroups", 2_000, 1.0, 0.0),
    curve_coverage.Cell("subgroups_adjusted", 5_000, 2.0, 1e-6),
    curve_coverage.Cell("r_learner_linear", 5_000, 1.0, 1e-6),
]


@pytest.mark.parametrize("cell", sampled(CELLS, len(CELLS)), ids=lambda cell: cell.study)
def test_intervals_cover(cell: curve_coverage.Cell) -> None:
    runs = [curve_coverage.simulate((cell, (0, run))) for run in range(RUNS)]
    assert sum(every for _, every, _, _ in runs) >= 30
    assert np.mean([share for share, *_ in runs]) > 0.87


def test_intervals_without_privacy_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgets:
        @staticmethod
        def estimate(source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.EffectCurve:
            curve = dpc.SubgroupEffects(by=["site"]).estimate(source, epsilon=epsilon, delta=delta)
            return replace(curve, privacy=tuple(tuple(0.0 for _ in line) for line in curve.privacy))

    monkeypatch.setitem(curve_coverage.STUDIES, "subgroups", (Forgets(), curve_coverage.by_site, False))
    cell = curve_coverage.Cell("subgroups", 2_000, 0.5, 0.0)
    runs = [curve_coverage.simulate((cell, (0, run))) for run in range(RUNS)]
    assert sum(every for _, every, _, _ in runs) < 20
