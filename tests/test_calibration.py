from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.calibration import calibrate, float_above, gaussian_sd
from dpcausal.guarantee import exact
from dpcausal.queries import ArmMoments, ArmTotals, Cut, Query, StratumContrasts
from dpcausal.schema import PROTECTS, Protects


@pytest.mark.parametrize("query", [ArmTotals(), ArmMoments(), StratumContrasts([Cut("x")], 3)])
@pytest.mark.parametrize("protects", PROTECTS)
@given(epsilon=st.floats(1e-6, 100))
def test_laplace_scales_never_round_below_what_epsilon_needs(query: Query, protects: Protects, epsilon: float) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 3),
        covariates=[dpc.Binary("x")],
        protects=protects,
    )
    noise = calibrate(query, schema, dpc.Guarantee(epsilon=epsilon, protects=protects))
    for scale, at in zip(noise.scales, noise.sensitivity.coordinates, strict=True):
        assert (at.weight or 0) * noise.sensitivity.bound / Fraction(scale or 0) <= exact(epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (4.0, 1e-5), (20.0, 1e-3)])
def test_gaussian_sd_is_safe_and_tight(epsilon: float, delta: float) -> None:
    sd = gaussian_sd(epsilon, delta)
    needed = dp_accounting.get_sigma_gaussian(epsilon, delta)  # the continuous Gaussian's exact curve
    assert needed <= sd <= 1.15 * needed


def test_a_gaussian_release_is_charged_what_its_noise_gives() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 3))
    noise = calibrate(ArmMoments(), schema, dpc.Guarantee(epsilon=1.0, delta=1e-6))
    for scale, at in zip(noise.scales, noise.sensitivity.coordinates, strict=True):
        assert float((at.weight or 0) * noise.sensitivity.bound) / (scale or 0) <= noise.event.mu


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_float_above_is_above_and_near(number: Fraction) -> None:
    assert number <= Fraction(float_above(number)) <= number * Fraction(1 + 2**-50)


def test_three_tenths_are_three_times_a_tenth() -> None:
    assert 3 * exact(0.1) == exact(0.3)
