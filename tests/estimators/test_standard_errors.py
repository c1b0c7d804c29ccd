"""Reported standard errors against how far estimates really scatter."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.queries.calibration import Noise
from dpcausal.release import Noisy
from dpcausal.vault.noise import Sampler
from tests.support.engines import fresh_noise

Array = NDArray[np.float64]

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -2, 2),
    covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)],
)
OF = ["a", "b"]
DECLARED = replace(  # without counts of covariates, so that a table is read once
    SCHEMA, covariates=[dpc.Real(name, -1, 1, typical=(-0.9, 0.9), transform="linear") for name in OF]
)


@pytest.fixture(autouse=True)
def noise_from_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)

    def seeded(_: Sampler, ticks: Sequence[int], noise: Noise) -> Noisy:
        draw = random.laplace if noise.family == "laplace" else random.normal
        pairs = zip(ticks, noise.scales, strict=True)
        return Noisy(tuple(tick + round(draw(0.0, float(scale or 0.0))) for tick, scale in pairs))

    monkeypatch.setattr(Sampler, "add_noise", seeded)


def table(n: int, seed: int, *, apart: float = 1.0, noise: float = 0.3) -> pa.Table:
    """Arms that differ in both covariates by `apart`, and an effect of 0.2 + 0.2 a."""
    random = np.random.default_rng(seed)
    a, b = random.uniform(-1, 1, (2, n))
    t = (random.random(n) < 1 / (1 + np.exp(-apart * (a + b)))).astype(int)
    y = 0.4 * a + 0.4 * b + (0.2 + 0.2 * a) * t + random.normal(0, noise, n)
    return pa.table({"t": t, "y": y, "a": a, "b": b})


def ratio(told: Sequence[float] | Array, found: Sequence[float] | Array) -> float:
    """What is told of how much estimates scatter, as a share of how much they do."""
    return float(np.median(told) / np.std(found))


def test_regression_sampling_sd_matches_the_spread_of_estimates() -> None:
    estimator = dpc.RegressionAdjustment(covariates=OF)
    effects = [
        estimator.estimate(fresh_noise(table(1_500, seed), DECLARED), epsilon=100.0, delta=0.01) for seed in range(50)
    ]
    assert max(effect.privacy_sd for effect in effects) < 0.5 * min(effect.sampling_sd or 0 for effect in effects)
    assert 0.8 < ratio([effect.standard_error or 0 for effect in effects], [each.estimate for each in effects]) < 1.25


@pytest.mark.slow  # tests/statistics compares the same without chance
def test_regression_noise_sd_matches_the_spread_of_estimates() -> None:
    """Most of it in the adjustment: the noise in the arms' totals, which is told apart from it, is a small part."""
    source, estimator = fresh_noise(table(20_000, 0, apart=2.0), DECLARED), dpc.RegressionAdjustment(covariates=OF)
    effects = [estimator.estimate(source, epsilon=1.0) for _ in range(200)]
    totals, *others = effects[0].noise
    assert totals.variance < 0.2 * sum(each.variance for each in others)
    assert 0.8 < ratio([effect.privacy_sd for effect in effects], [each.estimate for each in effects]) < 1.3


PROFILES = {"a": np.array([-0.8, 0.0, 0.8]), "b": np.array([0.5, 0.0, -0.5])}


@pytest.mark.parametrize("kind", [dpc.RLearner, dpc.DRLearner])
def test_learner_errors_match_the_spread_of_estimates(kind: type[dpc.RLearner | dpc.DRLearner]) -> None:
    """Sampling and privacy noise together, in a trial, at three profiles."""
    learner = kind(OF, dpc.Polynomial(OF), propensity=0.5)
    curves = [
        learner.estimate(fresh_noise(table(3_000, seed, apart=0.0), DECLARED), epsilon=6.0, delta=1e-3)
        for seed in range(40)
    ]
    effects = np.array([curve.effect(PROFILES) for curve in curves])
    parts = np.array([curve.standard_errors(PROFILES) for curve in curves])
    told = np.hypot(parts[:, 0], parts[:, 1])
    for place in range(3):
        assert 0.75 < ratio(told[:, place], effects[:, place]) < 1.4
    assert np.median(parts[:, 0]) > 0.4 * np.median(told)  # neither part hides behind the other
    assert np.median(parts[:, 1]) > 0.3 * np.median(told)
