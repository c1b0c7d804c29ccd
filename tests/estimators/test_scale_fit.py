"""The scale of a covariate that is found in noisy counts of its values."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpcausal import Real
from dpcausal.estimators import scale_fit
from dpcausal.estimators.scale_fit import COARSE, FINE, FittedScale, fit_scale, typical_scale
from dpcausal.schema.scale import REACH, TRANSFORMS, Transform
from dpcausal.utils.arrays import Array

_Draw = Callable[[np.random.Generator, int], Array]

_LAWS: dict[str, tuple[_Draw, float, float, float]] = {
    "normal": (lambda r, n: r.normal(62, 14, n), 18, 100, 0.0),
    "narrow normal": (lambda r, n: r.normal(50, 1, n), 0, 500, 0.0),
    "laboratory value": (lambda r, n: np.exp(0.05 + 0.4 * r.normal(size=n)), 0, 3.5, 0.4),
    "ten times too wide": (lambda r, n: np.exp(0.05 + 0.4 * r.normal(size=n)), 0, 35, 0.4),
    "hundred times too wide": (lambda r, n: np.exp(0.05 + 0.4 * r.normal(size=n)), 0, 150, 0.4),
    "lognormal": (lambda r, n: np.exp(r.normal(size=n)), 0, 20, 1.0),
    "lognormal on wide bounds": (lambda r, n: np.exp(r.normal(size=n)), 0, 200, 1.0),
    "costs": (lambda r, n: r.gamma(0.8, 2000, n), 0, 50_000, 1.0),
    "whole ages": (lambda r, n: np.floor(r.normal(55, 12, n)), 18, 100, 0.0),
    "even": (lambda r, n: r.uniform(0, 1, n), 0, 1, 0.0),
}
_OTHER_SHAPES: dict[str, tuple[_Draw, float, float]] = {
    "zeros and costs": (lambda r, n: np.where(r.random(n) < 0.6, 0, np.exp(7 + r.normal(size=n))), 0, 50_000),
    "some zeros": (lambda r, n: np.where(r.random(n) < 0.3, 0, np.exp(7 + 0.6 * r.normal(size=n))), 0, 50_000),
    "two modes": (lambda r, n: np.where(r.random(n) < 0.6, r.normal(20, 3, n), r.normal(70, 5, n)), 0, 100),
    "counts": (lambda r, n: r.poisson(3, n).astype(float), 0, 20),
}


def _counts(values: Array, low: float, high: float, noise_sd: float, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    bins = np.clip((values - low) / (high - low) * FINE, 0, FINE - 1).astype(int)
    fine = np.bincount(bins, minlength=FINE).astype(float)
    coarse = fine.reshape(COARSE, -1).sum(axis=1)
    return coarse + rng.normal(0, noise_sd, COARSE), fine + rng.normal(0, noise_sd, FINE)


def _fitted(  # noqa: PLR0917
    draw: _Draw,
    low: float,
    high: float,
    n: int,
    noise_sd: float,
    seed: int,
) -> tuple[FittedScale, Array]:
    values = np.clip(draw(np.random.default_rng((seed, n)), n), low, high)
    scale = fit_scale(Real("x", low, high), *_counts(values, low, high, noise_sd, seed), 0.0, noise_sd, n)
    knots = np.array(scale.scale.knots)
    return scale, np.interp(values, knots[:, 0], knots[:, 1])


@pytest.mark.parametrize(("n", "noise_sd"), [(5_000, 60), (20_000, 20), (20_000, 250)])
@pytest.mark.parametrize("law", _LAWS)
def test_scores_have_the_spread_that_models_expect(law: str, n: int, noise_sd: float) -> None:
    draw, low, high, skewness = _LAWS[law]
    scale, scores = _fitted(draw, low, high, n, noise_sd, 3)
    assert scale.found
    assert abs(scores.mean()) < 0.15
    assert 0.7 < scores.std() * REACH < 1.3
    assert scale.skewness == pytest.approx(skewness, abs=0.35)


@pytest.mark.parametrize("law", _OTHER_SHAPES)
@pytest.mark.parametrize(("n", "noise_sd"), [(5_000, 20), (20_000, 100)])
def test_laws_outside_the_family_get_a_scale_that_spreads_their_units(law: str, n: int, noise_sd: float) -> None:
    scale, scores = _fitted(*_OTHER_SHAPES[law], n, noise_sd, 5)
    assert scale.found
    assert abs(scores.mean()) < 0.25
    assert 0.7 < scores.std() * REACH < 1.3


@pytest.mark.parametrize("noise_sd", [20, 100])
@pytest.mark.parametrize("value", [0.0, 1.0, 3.0, 7.5, 15.0])
def test_a_constant_has_no_scale(value: float, noise_sd: float) -> None:
    scale, _ = _fitted(lambda _, n: np.full(n, value), 0, 15, 5_000, noise_sd, 1)
    assert not scale.found
    assert scale.scale.knots == ((0.0, -1.0), (15.0, 1.0))


def _found_in_noise() -> int:
    rng = np.random.default_rng(2)
    column = Real("x", 0, 1)
    return sum(
        fit_scale(column, rng.normal(0, 400, COARSE), rng.normal(0, 400, FINE), 0.0, 400.0, 1_000).found
        for _ in range(8)
    )


def test_noise_alone_has_no_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found_in_noise() == 0
    monkeypatch.setattr(scale_fit, "_FOUND_SD", 10.0)
    assert _found_in_noise() > 0  # what the rule prevents


def test_where_it_is_found_in_much_noise_it_is_right() -> None:
    off = []
    for seed in range(12):
        draw, low, high, _ = _LAWS["laboratory value"]
        scale, scores = _fitted(draw, low, high, 5_000, 400, seed)
        if scale.found:
            off.append(scores.std() * REACH)
    assert len(off) >= 3
    assert min(off) > 0.5
    assert max(off) < 1.8


def test_missing_values_are_a_share_with_noise() -> None:
    coarse, fine = _counts(np.random.default_rng(1).normal(62, 14, 9_000), 18, 100, 50.0, 1)
    scale = fit_scale(Real("x", 18, 100), coarse, fine, 1_000.0, 50.0, 10_000)
    assert (scale.missing_share, scale.missing_sd) == (0.1, 0.005)
    assert scale.quantile(0.5) == pytest.approx(62, abs=1)
    assert scale.quantile(0.05) == pytest.approx(62 - 1.645 * 14, abs=2)


def test_the_default_shape_is_near_to_the_value_and_to_its_score() -> None:
    """A wrong shape leaves less than two thirds of the variance that choosing one of the two could leave."""
    scale = FittedScale(0, 100, 1.0, 0.4, 0.4, found=True)
    values = np.exp(0.4 * np.random.default_rng(1).normal(size=100_000))
    knots = np.array(scale.scale.knots)
    scores = np.interp(values, knots[:, 0], knots[:, 1])

    def missed(first: Array, second: Array) -> float:
        return 1 - float(np.corrcoef(first, second)[0, 1]) ** 2

    normal = np.clip(np.log(values) / 0.4, -REACH, REACH)
    value = np.exp(0.4 * normal)
    assert missed(scores, normal) < scale.shape_share * 1.15
    assert missed(scores, value) < scale.shape_share * 1.15
    assert scale.shape_share < missed(normal, value) * 2 / 3


@pytest.mark.parametrize("transform", ["linear", "log"])
def test_a_declared_shape_is_followed(transform: Transform) -> None:
    scale = typical_scale(Real("x", 0.1, 15, typical=(0.6, 1.6), transform=transform))
    values, scores = np.array(scale.scale.knots).T
    inner = (values > 0.7) & (values < 1.5)
    curve = np.log(values[inner]) if transform == "log" else values[inner]
    assert len(values) == 2 or np.polyfit(curve, scores[inner], 1, full=True)[1][0] < 1e-6
    assert scale.shape_share == 0
    assert np.interp([0.6, 1.6], values, scores) == pytest.approx([-1.645 / REACH, 1.645 / REACH], abs=0.05)


def test_knots_rise_within_the_bounds() -> None:
    for skewness in (-1.2, -0.3, 0.0, 0.3, 1.5):
        for location in (-3.0, 0.0, 7.0, 15.0, 20.0):
            for transform in (None, *TRANSFORMS):
                scale = FittedScale(0, 15, location, 2.0, skewness, found=True, transform=transform)
                knots = np.array(scale.scale.knots)
                assert len(knots) >= 2
                assert (np.diff(knots, axis=0) > 0).all()
                assert knots[0, 0] >= 0
                assert knots[-1, 0] <= 15
                assert np.abs(knots[:, 1]).max() <= 1


_HOSTILE: dict[str, Callable[[np.random.Generator, int, float, float], Array]] = {
    "noise": lambda r, size, _, sd: sd * r.normal(size=size),
    "negative": lambda r, size, _, sd: -np.abs(sd * r.normal(size=size)),
    "huge": lambda r, size, *_: 1e15 * r.normal(size=size),
    "all equal": lambda _, size, __, sd: np.full(size, sd),
    "nothing": lambda _, size, *__: np.zeros(size),
    "one bin": lambda r, size, n, _: n * (np.arange(size) == r.integers(size)),
    "both ends": lambda _, size, n, __: np.where(np.isin(np.arange(size), [0, size - 1]), n / 2, 0.0),
}


_PLACES: tuple[tuple[float, float, Transform | None], ...] = (
    (0, 1, None),
    (-50, 50, "linear"),
    (0.2, 15, "log"),
    (1e6, 1e6 + 1, None),
)


@pytest.mark.parametrize("kind", _HOSTILE)
def test_whatever_is_released_a_scale_is_one(kind: str) -> None:
    """No counts raise, warn or make a number that is none: that would depend on the table."""
    random = np.random.default_rng(len(kind))
    for low, high, transform in _PLACES:
        n, noise_sd = random.choice([1, 10, 1_566, 1e9]), random.choice([1e-9, 1.0, 1e3, 1e15])
        missing = random.choice([0.0, -n, n, 1e15])
        coarse, fine = (_HOSTILE[kind](random, size, n, noise_sd) for size in (COARSE, FINE))
        with warnings.catch_warnings(), np.errstate(divide="raise", over="raise", invalid="raise"):
            warnings.simplefilter("error")
            fit = fit_scale(Real("x", low, high, transform=transform), coarse, fine, missing, noise_sd, n)
            for each in (fit, replace(fit, found=True)):
                values, scores = np.array(each.scale.knots).T
                assert np.all(np.diff(values) > 0)
                assert np.all(np.diff(scores) > 0)
                assert low <= each.quantile(0.01) <= each.quantile(0.99) <= high
                assert 0 <= each.shape_share <= 1
                assert 0 <= each.missing_share <= 1
                assert each.spread > 0
                assert all(map(math.isfinite, (each.location, each.spread, each.skewness, each.skewness_sd)))
