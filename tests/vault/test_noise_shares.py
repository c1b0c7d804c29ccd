"""Shares of noise add up to the noise that was paid for. Proof: docs/proofs/noise_shares.md."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import EngineError, QueryError
from dpcausal.queries import ArmMoments
from dpcausal.queries.calibration import NoiseShare, calibrate, share_of
from dpcausal.testing import standard_schema
from dpcausal.vault.noise import Sampler

DRAWS, HONEST, SCALE = 40_000, 3, 1.5
SUPPORT = np.arange(-400, 401)

Law = NDArray[np.float64]


def drawn(family: str, scale: float, sites: int, draws: int = DRAWS) -> NDArray[np.int64]:
    """Draw the shares of so many sites, one site a line."""
    share = NoiseShare(family, (scale,) * draws, HONEST)  # type: ignore[arg-type]
    return np.array([Sampler().add_noise_share((0,) * draws, share) for _ in range(sites)])


def p_value(draws: NDArray[np.int64], law: Law) -> float:
    """Return the p-value of draws under a law over the support: values with 50 expected draws, and all others."""
    common = law * len(draws) >= 50
    observed = np.array([(draws == value).sum() for value in SUPPORT[common]])
    counts, shares = np.append(observed, len(draws) - observed.sum()), np.append(law[common], 1 - law[common].sum())
    return float(stats.chisquare(counts, shares * len(draws)).pvalue)


def laplace_law(scale: float) -> Law:
    law: Law = np.exp(-np.abs(SUPPORT) / scale)
    law /= law.sum()
    return law


def shares_law(parts: float, scale: float) -> Law:
    """Return the law of the difference of two negative binomials of size `parts`."""
    one = stats.nbinom(parts, -np.expm1(-1 / scale)).pmf(np.arange(len(SUPPORT)))
    whole = np.convolve(one, one[::-1])
    middle = len(SUPPORT) - 1
    return whole[middle - 400 : middle + 401]


@pytest.mark.statistical
def test_laplace_shares_of_honest_sites_add_up_to_the_whole_noise() -> None:
    shares = drawn("laplace", SCALE, HONEST + 1)
    assert p_value(shares[:HONEST].sum(axis=0), laplace_law(SCALE)) > 1e-9
    # One honest site too few, and one too many: the test sees both.
    assert p_value(shares[: HONEST - 1].sum(axis=0), laplace_law(SCALE)) < 1e-12
    assert p_value(shares.sum(axis=0), laplace_law(SCALE)) < 1e-12
    # Any number of sites: the difference of two negative binomials.
    assert p_value(shares.sum(axis=0), shares_law((HONEST + 1) / HONEST, SCALE)) > 1e-9
    assert p_value(shares[0], shares_law(1 / HONEST, SCALE)) > 1e-9
    assert p_value(shares[0], shares_law(1 / (HONEST + 1), SCALE)) < 1e-12


@pytest.mark.statistical
def test_gaussian_shares_of_honest_sites_add_up_to_a_discrete_gaussian() -> None:
    summed = drawn("gaussian", 1.5, HONEST).sum(axis=0)
    for variance, is_right in ((HONEST * 1.5**2, True), ((HONEST - 1) * 1.5**2, False), (HONEST * 1.4**2, False)):
        law = np.exp(-(SUPPORT**2) / (2 * variance))
        assert (p_value(summed, law / law.sum()) > 1e-9) == is_right


@pytest.mark.statistical
def test_shares_of_large_noise_have_its_law() -> None:
    scale = 2.0**21
    summed = drawn("laplace", scale, HONEST, 10_000).sum(axis=0).astype(float)
    assert stats.kstest(summed, stats.laplace(scale=scale).cdf).pvalue > 1e-9
    assert stats.kstest(summed, stats.laplace(scale=0.8 * scale).cdf).pvalue < 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("honest", [2, 8, 34])
def test_gaussian_shares_lose_no_more_than_is_promised(epsilon: float, honest: int) -> None:
    """The bound of Kairouz, Liu and Steinke (2021), Proposition 14, in decimals of 60 digits."""
    noise = calibrate(ArmMoments(), standard_schema(), dpc.Guarantee(epsilon=epsilon, delta=1e-6), "zcdp")
    try:
        share = share_of(noise, honest)
    except QueryError:
        assert min(scale or 0 for scale in noise.scales) / honest**0.5 < 1  # shares below a tick
        return
    with localcontext(prec=60):
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        lost, excess = Decimal(0), Decimal(0)
        for whole, part in zip(noise.scales, share.scales, strict=True):
            variance = Decimal(part) ** 2
            lost = max(lost, Decimal(whole or 0) / (honest * variance).sqrt())
            excess += (10 * sum((-2 * pi**2 * variance * k / (k + 1)).exp() for k in range(1, honest))) ** 2
        # What one unit may move, in standard deviations, and what the sum of shares is not a discrete Gaussian.
        assert Decimal(noise.event.mu) * lost + excess.sqrt() < Decimal(noise.event.mu) * (1 - Decimal(2) ** -50)
        assert lost > Decimal("0.99")  # and hardly any precision is given away


def test_laplace_shares_keep_the_scale_of_the_whole() -> None:
    noise = calibrate(ArmMoments(), standard_schema(), dpc.Guarantee(epsilon=1.0))
    assert share_of(noise, 8) == NoiseShare("laplace", noise.scales, 8)  # type: ignore[arg-type]


def test_noise_that_cannot_be_shared_is_refused() -> None:
    schema = standard_schema()
    noise = calibrate(ArmMoments(), schema, dpc.Guarantee(epsilon=1.0))
    for scale in (None, 2.0**53):
        with pytest.raises(QueryError, match="public"):
            share_of(replace(noise, scales=(scale, *noise.scales[1:])), 8)
    with pytest.raises(QueryError, match="public"):
        share_of(replace(noise, event=replace(noise.event, family="smooth")), 8)
    with pytest.raises(QueryError, match="tick"):
        share_of(calibrate(ArmMoments(), schema, dpc.Guarantee(epsilon=3.0, delta=1e-6), "zcdp"), 100)


@pytest.mark.parametrize(("ticks", "scales"), [((2**62,), (1.0,)), ((0, 0), (1.0,))])
def test_sums_that_do_not_fit_are_refused(ticks: tuple[int, ...], scales: tuple[float, ...]) -> None:
    with pytest.raises(EngineError):
        Sampler().add_noise_share(ticks, NoiseShare("laplace", scales, 2))


def test_scales_of_shares_are_rounded_up() -> None:
    noise = calibrate(ArmMoments(), standard_schema(), dpc.Guarantee(epsilon=0.5, delta=1e-6), "zcdp")
    for whole, part in zip(noise.scales, share_of(noise, 7).scales, strict=True):
        assert 7 * Fraction(part) ** 2 > Fraction(whole or 0) ** 2
