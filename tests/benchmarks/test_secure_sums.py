"""Secure sums beside one table: the stored result, and what can be checked without chance."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.coverage import even
from benchmarks.parts import PUBLISHED
from benchmarks.secure_sums import PLAIN, SITES, drawn, honest_of, sources
from dpcausal.calibration import Noise, NoiseShare
from dpcausal.release import Noisy
from dpcausal.vault.noise import Sampler


@pytest.fixture
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(_: Sampler, ticks: Sequence[int], __: NoiseShare) -> list[int]:
        return list(ticks)

    def added(_: Sampler, ticks: Sequence[int], __: Noise) -> Noisy:
        return Noisy(tuple(ticks))

    monkeypatch.setattr(Sampler, "add_noise_share", shared)
    monkeypatch.setattr(Sampler, "add_noise", added)


@pytest.mark.usefixtures("_no_noise")
@pytest.mark.parametrize("sites", [3, 12])
def test_estimate_over_sites_is_that_of_one_table(sites: int) -> None:
    study = drawn(even, np.random.default_rng(4), 2_000)
    secure, one = (dpc.DifferenceInMeans().estimate(source, epsilon=1.0) for source in sources(study, PLAIN, sites))
    assert secure.estimate == pytest.approx(one.estimate, abs=1e-9)
    ratio = math.sqrt(sites / honest_of(sites))
    assert secure.privacy_sd == pytest.approx(ratio * (one.privacy_sd or 0), rel=1e-6)


def test_stored_result_shows_the_precision_of_nearly_one_table() -> None:
    stored = json.loads((PUBLISHED / "secure_sums.json").read_text(encoding="utf-8"))
    assert {line["sites"] for line in stored["privacy"]} == set(SITES)
    for line in stored["privacy"]:
        assert line["tables"] >= 200
        assert line["privacy_sd_ratio"] == pytest.approx(line["expected_ratio"], rel=0.06)
        assert line["expected_ratio"] <= 1.25 < line["own_noise_ratio"]
    covered = [line["coverage"] for line in stored["coverage"]]
    runs = sum(line["runs"] * (1 - line["refused"]) for line in stored["coverage"])
    assert 0.93 < np.mean(covered) < 0.975
    assert min(covered) > 0.95 - 4 * math.sqrt(0.05 * 0.95 / (runs / len(covered)))
