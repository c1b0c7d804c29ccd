"""Noise of any number of parts, as secure sums have it: all ways to compute intervals agree with its exact law."""

import math

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.uncertainty.anytime import with_noise
from dpcausal.uncertainty.interval import (
    NoiseTerm,
    beyond,
    critical_values,
    half_width,
    inverted_half_width,
    simulated_sums,
    standard_noise,
)
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise

PARTS = [1.25, 1.5, 3.4, 12.5]
DRAWS = 100_000


@pytest.mark.parametrize("parts", PARTS)
def test_simulated_noise_has_the_quantiles_of_its_exact_law(parts: float) -> None:
    term = NoiseTerm("laplace", 1.0, parts)
    exact = inverted_half_width(1e-3, [term], 0.95)
    one, sums = standard_noise("laplace", parts, 1, DRAWS) * math.sqrt(2), simulated_sums([parts, 2.0], DRAWS)
    assert half_width(0.0, [term], 0.95) == pytest.approx(exact, rel=0.02)
    assert float(np.quantile(np.abs(one), 0.95)) == pytest.approx(exact, rel=0.02)
    assert float(np.quantile(np.abs(sums[:, 0]), 0.95)) == pytest.approx(exact, rel=0.02)
    assert critical_values("laplace", np.array([1.0]), 0.95, parts)[0] * math.sqrt(2) == pytest.approx(exact, rel=0.02)
    assert one.var() == pytest.approx(2, rel=0.03)
    assert sums.var(axis=0) == pytest.approx([2, 2], rel=0.03)


def test_characteristic_function_is_that_of_gamma_differences() -> None:
    generator, parts = np.random.default_rng(1), 1.5
    drawn = (generator.gamma(parts, 1, 400_000) - generator.gamma(parts, 1, 400_000)) / math.sqrt(parts)
    term = NoiseTerm("laplace", 1.0, parts)
    for distance in (0.5, 2.0, 4.0):
        assert beyond(distance, 0.0, [term]) == pytest.approx(float((drawn > distance).mean()), abs=0.004)


@pytest.mark.parametrize("parts", PARTS)
def test_anytime_widths_are_those_of_the_exact_law_or_wider(parts: float) -> None:
    term = NoiseTerm("laplace", 1.0, parts)
    exact = inverted_half_width(0.3, [term], 0.95)
    assert exact <= with_noise(0.3, 9.0, [term], 0.05) < 1.06 * exact


def test_simultaneous_intervals_take_noise_of_any_parts() -> None:
    def times(parts: float) -> float:
        noise = (JointNoise("laplace", (1.0, 0.0), parts), JointNoise("laplace", (0.0, 1.0), parts))
        return JointEstimate(("a", "b"), (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)), noise).simultaneous(0.99)

    assert times(2) - 0.05 < times(1.5) < times(1) + 0.05
    assert times(1) > times(2) + 0.1


@pytest.mark.parametrize("estimator", [dpc.DifferenceInMeans(), dpc.RegressionAdjustment(covariates=["smoker"])])
def test_rehearsal_of_a_secure_sum_has_its_noise(estimator: dpc.DifferenceInMeans) -> None:
    """The smoker declares what a missing value means: only one table alone counts missing values."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Binary("smoker", missing=0)]
    )
    one = estimator.estimate(dpc.Rehearsal(schema, n=5_000), epsilon=1.0)
    secure = estimator.estimate(dpc.Rehearsal(schema, n=5_000, parts=1.5, sites=12), epsilon=1.0)
    assert secure.privacy_sd == pytest.approx(math.sqrt(1.5) * (one.privacy_sd or 0), rel=0.01)
    assert max(term.parts for term in secure.noise) == 1.5  # small terms may be merged into one with heavier tails
