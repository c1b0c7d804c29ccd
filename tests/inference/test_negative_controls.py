"""Calibration by negative controls finds the bias and its spread."""

from dataclasses import replace

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError

SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("y", 0, 1))
PLAN = replace(dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0), noise=(), sampling_sd=0.1)


def controls(estimates: np.ndarray) -> list[dpc.Effect]:
    return [replace(PLAN, estimate=float(estimate)) for estimate in estimates]


def test_bias_and_its_spread_are_found() -> None:
    random = np.random.default_rng(0)
    found = dpc.calibrate_effect(replace(PLAN, estimate=1.0), controls(random.normal(0.5, np.hypot(0.3, 0.1), 2_000)))
    assert found.bias == pytest.approx(0.5, abs=0.03)
    assert found.bias_sd == pytest.approx(0.3, abs=0.02)
    assert found.estimate == pytest.approx(0.5, abs=0.03)
    assert found.standard_error == pytest.approx(np.hypot(0.3, 0.1), abs=0.02)
    assert found.p_value(found.interval()[0]) == pytest.approx(0.05)
    assert "negative controls" in str(found)


def test_controls_without_bias_change_little() -> None:
    random = np.random.default_rng(1)
    found = dpc.calibrate_effect(PLAN, controls(random.normal(0, 0.1, 200)))
    assert found.bias == pytest.approx(0, abs=0.03)
    assert found.standard_error < 0.12


def test_calibrated_intervals_cover() -> None:
    random = np.random.default_rng(2)
    covered, plain = 0, 0
    for _ in range(400):
        biased = random.normal(0.1, np.hypot(0.1, 0.1), 31)
        found = dpc.calibrate_effect(replace(PLAN, estimate=float(biased[0])), controls(biased[1:]))
        low, high = found.interval()
        covered += low <= 0 <= high
        plain += abs(biased[0]) < 1.96 * 0.1
    assert 0.92 <= covered / 400 <= 0.98
    assert plain / 400 < 0.8


def test_too_few_controls_are_refused() -> None:
    with pytest.raises(RefusedError):
        dpc.calibrate_effect(PLAN, controls(np.zeros(4)))
    with pytest.raises(RefusedError):
        dpc.calibrate_effect(PLAN, [replace(PLAN, sampling_sd=None)] * 10)
