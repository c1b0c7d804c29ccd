from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.guarantee import exact
from dpcausal.queries import ArmMoments, ArmTotals, Cut, Query, StratumContrasts, calibration
from dpcausal.queries.calibration import calibrate, float_above, float_below, gaussian_sd
from dpcausal.schema.schema import PROTECTS, Protects


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


def typed(digits: int, low: int, high: int) -> st.SearchStrategy[float]:
    """Numbers as people type them: a few digits and a power of ten."""
    decimals = st.builds(
        lambda head, power: float(f"{head}e{power}"), st.integers(1, 10**digits), st.integers(low, high)
    )
    return decimals.filter(lambda number: number > 0)


def delta_of(sd: float, epsilon: Decimal) -> Decimal:
    """The delta at this epsilon of zCDP with rho = 1 / (2 sd²) (Canonne, Kamath and Steinke 2020, Proposition 12).

    Every order gives an upper bound; the best one is looked for by thirds.
    """
    rho = 1 / (2 * Decimal(sd) ** 2)

    def log_delta(order: Decimal) -> Decimal:
        return (order - 1) * (order * rho - epsilon) - (order - 1).ln() + order * (1 - 1 / order).ln()

    low, high = Decimal(1) + Decimal("1e-12"), 2 + 2 * (epsilon / rho + 1) + 20 / rho.sqrt()
    for _ in range(80):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, other) if log_delta(one) < log_delta(other) else (one, high)
    return log_delta(low).exp()


@settings(max_examples=30)
@given(
    epsilon=typed(3, -4, -1).filter(lambda epsilon: 1e-2 <= epsilon <= 100),
    delta=typed(2, -14, -3).filter(lambda delta: delta < 0.4),
)
def test_gaussian_noise_keeps_the_epsilon_and_delta_that_were_typed(epsilon: float, delta: float) -> None:
    """In decimals, and apart from OpenDP: what the ledger debits is what the noise gives."""
    with localcontext() as context:
        context.prec = 40
        assert delta_of(gaussian_sd(epsilon, delta), Decimal(repr(epsilon))) <= Decimal(repr(delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5)])
def test_smaller_gaussian_is_caught(epsilon: float, delta: float) -> None:
    with localcontext() as context:
        context.prec = 40
        sd = gaussian_sd(epsilon, delta) * (1 - 1e-7)
        assert delta_of(sd, Decimal(repr(epsilon))) > Decimal(repr(delta))


@pytest.mark.parametrize("epsilon", [0.1, 1.1, 2.2])
def test_gaussian_sd_is_held_to_the_decimal_where_the_float_is_above_it(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if OpenDP gave just the float that epsilon is stored as, which is larger than what was typed."""
    assert Fraction(epsilon) > exact(epsilon)
    gaussian_sd.cache_clear()
    monkeypatch.setattr(
        calibration,
        "epsilon_of_gaussian",
        lambda sd, _: epsilon if sd < 7 else float_below(exact(epsilon)) if sd < 1e9 else 0.0,
    )
    try:
        assert gaussian_sd(epsilon, 1e-6) == pytest.approx(7, rel=1e-8)
    finally:
        gaussian_sd.cache_clear()


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_float_below_is_below_and_near(number: Fraction) -> None:
    assert number * Fraction(1 - 2**-50) <= Fraction(float_below(number)) <= number


def test_gaussian_release_is_charged_for_its_noise() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 3))
    noise = calibrate(ArmMoments(), schema, dpc.Guarantee(epsilon=1.0, delta=1e-6))
    for scale, at in zip(noise.scales, noise.sensitivity.coordinates, strict=True):
        assert float((at.weight or 0) * noise.sensitivity.bound) / (scale or 0) <= noise.event.mu


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_float_above_is_above_and_near(number: Fraction) -> None:
    assert number <= Fraction(float_above(number)) <= number * Fraction(1 + 2**-50)


def test_three_tenths_are_three_times_a_tenth() -> None:
    assert 3 * exact(0.1) == exact(0.3)
