"""The noise has the size that was paid for: the tests accept the true scale and reject others on both sides."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcausal.errors import EngineError
from dpcausal.guarantee import Event
from dpcausal.queries import Coordinate, Sensitivity
from dpcausal.queries.calibration import Noise
from dpcausal.vault.noise import Sampler

DRAWS = 50_000
RARE = 1e-9
"""Each test of noise as claimed fails this rarely; the wrong scales fail it by thirty orders of magnitude or more."""

SCALE = 2.0**21


def noise_of(family: str, scales: tuple[float, ...]) -> Noise:
    """Noise of given scales, which only a test may make."""
    coordinates = tuple(Coordinate(str(place), 1.0, Fraction(1)) for place in range(len(scales)))
    event = Event(family=family, epsilon=1.0, delta=0.0, mu=0.0)  # type: ignore[arg-type]
    return Noise(Sensitivity("l1", coordinates, Fraction(1)), scales, event)


def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
    return Sampler().add_noise(ticks, noise).ticks


@pytest.mark.statistical
@pytest.mark.parametrize(("family", "curve"), [("laplace", stats.laplace), ("gaussian", stats.norm)])
def test_the_true_scale_is_accepted_and_wrong_ones_are_rejected(family: str, curve: stats.rv_continuous) -> None:
    draws = np.array(drawn((0,) * DRAWS, noise_of(family, (SCALE,) * DRAWS)), dtype=float)

    def p_value(scale: float) -> float:
        return float(stats.kstest(draws, curve(scale=scale).cdf).pvalue)

    assert p_value(SCALE) > 1e-9
    assert p_value(0.8 * SCALE) < 1e-12
    assert p_value(1.25 * SCALE) < 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_small_scales_follow_the_discrete_law(family: str) -> None:
    scale = 1.5
    draws = np.array(drawn((0,) * 40_000, noise_of(family, (scale,) * 40_000)))
    support = np.arange(-4, 5)  # 80 draws or more are expected of each value, and of all others together
    weights = np.exp(-np.abs(support) / scale) if family == "laplace" else np.exp(-(support**2) / (2 * scale**2))
    whole = np.arange(-200, 201)
    law = np.exp(-np.abs(whole) / scale) if family == "laplace" else np.exp(-(whole**2) / (2 * scale**2))
    expected = weights / law.sum()
    observed = np.array([(draws == value).sum() for value in support])
    counts = np.append(observed, len(draws) - observed.sum())
    shares = np.append(expected, 1 - expected.sum())
    assert stats.chisquare(counts, shares * len(draws)).pvalue > 1e-10


@pytest.mark.statistical
def test_each_coordinate_has_its_own_independent_noise() -> None:
    noise = noise_of("laplace", (10.0, 1e6, 10.0))
    draws = np.array([drawn((0, 0, 0), noise) for _ in range(2_000)], dtype=float)
    # Nine standard deviations of the means, and seven of the correlation.
    assert np.abs(draws[:, 1]).mean() == pytest.approx(1e6, rel=0.2)
    assert np.abs(draws[:, 0]).mean() == pytest.approx(10, rel=0.2)
    assert abs(np.corrcoef(draws[:, 0], draws[:, 2])[0, 1]) < 0.2  # nine standard errors


@pytest.mark.parametrize(
    ("ticks", "scales"),
    [((2**62,), (1.0,)), ((0,), (0.0,)), ((0,), (math.nan,)), ((0,), (math.inf,)), ((0, 0), (1.0,)), ((0,), (-1.0,))],
)
def test_what_opendp_would_let_through_is_refused(ticks: tuple[int, ...], scales: tuple[float, ...]) -> None:
    with pytest.raises(EngineError):
        drawn(ticks, noise_of("laplace", scales))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [2.0**61, 2.0**70, 1e30])
def test_a_scale_beyond_64_bits_is_not_refused(scale: float) -> None:
    """Scales may come from rows, so refusing one would tell something; noisy numbers become the largest there is."""
    draws = [drawn((7,), noise_of("laplace", (scale,)))[0] for _ in range(200)]
    assert all(abs(draw) <= 2**63 for draw in draws)
    # Seven standard deviations.
    assert 50 < sum(draw > 0 for draw in draws) < 150
