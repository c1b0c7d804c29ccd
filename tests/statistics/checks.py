"""Checks of an estimate and of the errors printed with it. Each returns what is wrong, or nothing.

A check compares with a closed form, or with what noise does that is chosen and not drawn by chance: its verdict is the
same in every run. Tolerances are far from both sides: a correct estimator is within a third of them, and half or twice
of a standard error, or a bias of half of one, is well beyond.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.arrays import Array
from tests.statistics.case import AVERAGE, Case, Result
from tests.statistics.cases import AT, PROFILES, estimates, privacy, sampling
from tests.statistics.law import probability_within
from tests.statistics.tables import ARMS

MAX_OFF = 0.15
"""How far an estimate without noise may be from its closed form, in standard errors: learners shrink, scores are
clipped, and a regression has a small ridge."""

NEARLY = 0.01
"""The same where it is a formula of sums: it is the closed form, and rounded."""

MAX_BIAS = 0.3
"""How far noise may move the mean of estimates, in standard errors."""

SAMPLING = 0.8, 1.25
"""The printed sampling error over the textbook's."""

FIRST_ORDER = 0.85, 1.25
"""The printed noise over what follows from moving one coordinate at a time."""

LINEAR = 0.97, 1.03
"""The same where noise moves the estimate in proportion. There the sampling error is a formula of sums, and as near."""

SPREAD = 0.85, 1.3
"""The printed noise over the spread of estimates."""

TOTAL = 0.85, 1.3
"""The printed standard error over the root of the variances of sampling and of noise."""

LEVELS = (0.5, 0.8, 0.95, 0.99)
MAX_LEVEL_OFF = 0.006
"""How far the probability of an interval may be from its level: quantiles are simulated, and interpolated."""


class Evidence(Protocol):
    """What is known of an estimator: see `cases.Results`."""

    @property
    def case(self) -> Case: ...
    @property
    def exact(self) -> Result: ...
    @property
    def undrawn(self) -> Result: ...
    @property
    def moved(self) -> Sequence[tuple[Result, float]]: ...
    @property
    def drawn(self) -> Sequence[Result]: ...


Check = Callable[[Evidence], str]


def check_estimate(evidence: Evidence) -> str:
    """Without noise the estimate is the closed form of its estimand."""
    if not evidence.case.reference:
        return ""
    reference = evidence.case.reference()
    scale = np.maximum(reference.sd[1], _LEAST_SD)
    off = np.abs(estimates(evidence.exact) - reference.estimate) / scale
    return _wrong(off > (NEARLY if evidence.case.linear else MAX_OFF), f"off the closed form by {off} standard errors")


_LEAST_SD = 0.01
"""In place of a standard error where there is none."""


def check_words(evidence: Evidence) -> str:
    """The printed estimand and arms are those of the case."""
    result, words = evidence.exact, evidence.case.words
    narrower = any(each in result.estimand for each in ("on the treated", "overlap population"))
    right = words in result.estimand and not (words == AVERAGE and narrower) and result.arms == ARMS
    return "" if right else f"the estimand is printed as {result.estimand!r}, the arms as {result.arms}"


def check_means(evidence: Evidence) -> str:
    """The arms' means are the closed form's, and their difference is the estimate."""
    result = evidence.exact
    if not isinstance(result, dpc.Effect) or result.control_mean is None or result.treated_mean is None:
        return ""
    if abs(result.treated_mean - result.control_mean - result.estimate) > 1e-6:
        return f"means of {result.control_mean} and {result.treated_mean} are not {result.estimate} apart"
    reference = evidence.case.reference and evidence.case.reference()
    if not reference or not reference.means:
        return ""
    off = np.abs(np.array([result.control_mean, result.treated_mean]) - reference.means) / reference.sd[1]
    return _wrong(off > MAX_OFF, f"means are off by {off} standard errors")


def check_sampling(evidence: Evidence) -> str:
    """Without noise the printed sampling error is the textbook's."""
    reference = evidence.case.reference and evidence.case.reference()
    if not reference or not reference.sd[1].any():
        return ""
    low, high = (sampling(evidence.exact) / each for each in reference.sd)
    least, most = LINEAR if evidence.case.linear else SAMPLING
    return _wrong((high < least) | (low > most), f"sampling error over the textbook's: {low} to {high}")


def check_sampling_with_noise(evidence: Evidence) -> str:
    """With noise the printed sampling error is about what it is without."""
    if not evidence.case.reference or not evidence.case.pairs:
        return ""
    ratio = np.median([sampling(result) for result in evidence.drawn], axis=0) / sampling(evidence.exact)
    return _outside(ratio, SAMPLING, "sampling error with noise over that without")


def check_first_order(evidence: Evidence) -> str:
    """Coordinates of the noise, moved one at a time, add up to the printed noise.

    Where noise is so large that it does more than move the estimate in proportion, it may be more.
    """
    still = estimates(evidence.undrawn)
    squares = [((estimates(result) - still) / by) ** 2 for result, by in evidence.moved if by]
    ratio = privacy(evidence.undrawn) / np.sqrt(np.sum(squares, axis=0))
    low, high = LINEAR if evidence.case.linear else FIRST_ORDER
    most = high if evidence.case.linear or evidence.case.reference else np.inf
    return _outside(ratio, (low, most), "printed noise over noise, by parts")


def check_spread(evidence: Evidence) -> str:
    """Estimates spread as the printed noise says."""
    if not evidence.case.pairs:
        return ""
    printed = np.median([privacy(result) for result in evidence.drawn], axis=0)
    return _outside(printed / _spread(evidence), SPREAD, "printed noise over the spread of estimates")


def check_total(evidence: Evidence) -> str:
    """The printed standard error is that of sampling and of noise together."""
    if not evidence.case.pairs or not sampling(evidence.exact).all():
        return ""
    printed = np.median([np.hypot(sampling(result), privacy(result)) for result in evidence.drawn], axis=0)
    return _outside(printed / np.hypot(sampling(evidence.exact), _spread(evidence)), TOTAL, "standard error over error")


def check_bias(evidence: Evidence) -> str:
    """Noise does not move the mean of estimates."""
    if not evidence.case.pairs:
        return ""
    mean = np.mean([estimates(result) for result in evidence.drawn], axis=0)
    error = np.hypot(sampling(evidence.exact), _spread(evidence))
    off = np.abs(mean - estimates(evidence.exact)) / error
    return _wrong(off > MAX_BIAS, f"noise moves the mean estimate by {off} standard errors")


def check_interval(evidence: Evidence) -> str:
    """Intervals have the half width at which error of the printed sizes stays within, at every level."""
    for result in (evidence.exact, evidence.undrawn):
        if isinstance(result, dpc.Effect):
            wrong = _of_effect(replace(result, no_interval=""))
        else:
            wrong = "" if result.no_interval else _of_curve(result) or _of_all_profiles(result)
        if wrong:
            return wrong
    return ""


def _of_effect(effect: dpc.Effect) -> str:
    effect = replace(effect, bias_bound=0.0)  # a number without a scale adds some to the errors that are looked at
    error = float(np.hypot(effect.sampling_sd or 0.0, effect.between_sd))
    size = float(np.sqrt(error**2 + effect.privacy_sd**2))
    if abs((effect.standard_error or 0.0) / size - 1) > 1e-6:
        return f"the standard error is printed as {effect.standard_error}, not {size}"
    if effect.ratio:
        return _of_ratio(effect)
    for level in LEVELS:
        low, high = effect.interval(level)
        wrong = _off_level(high - effect.estimate, error, effect.noise, level)
        if wrong or abs(low + high - 2 * effect.estimate) > 1e-9:
            return wrong or "the interval is not around the estimate"
    return ""


def _of_ratio(effect: dpc.Effect) -> str:
    """Each limit r of Fieller's interval is one at which (numerator) - r (denominator) is as far from 0 as it may be.

    How far is found for the ratio itself, so the level holds nearly.
    """
    parts = effect.contrasts
    if parts is None or abs(parts.values[0] / parts.values[1] / effect.estimate - 1) > 1e-9:
        return "the ratio is not that of its parts"
    for level in LEVELS:
        low, high = effect.interval(level)
        for sign, limit in ((1, low), (-1, high)):
            along = (1.0, -limit)
            far = sign * (parts.values[0] - limit * parts.values[1])
            wrong = _off_level(far, parts.sampling_sd(along), parts.noise_along(along), level)
            if wrong:
                return wrong
    return ""


def _of_curve(curve: dpc.EffectCurve) -> str:
    effects, (error, noise) = curve.effect(PROFILES), curve.standard_errors(PROFILES)
    shrink = 2**-0.5 if curve.family == "laplace" else 1.0
    for level in LEVELS:
        low, high = curve.effect_interval(PROFILES, alpha=1 - level)
        if np.abs(low + high - 2 * effects).max() > 1e-9:
            return "an interval is not around its effect"
        for place in range(len(AT)):
            term = NoiseTerm(curve.family, float(noise[place]) * shrink, curve.parts)
            wrong = _off_level(float((high - effects)[place]), float(error[place]), (term,), level)
            if wrong:
                return wrong
    return ""


def _of_all_profiles(curve: dpc.EffectCurve) -> str:
    """Look at the interval of the mean over profiles, and at intervals that hold together."""
    covariance = np.array(curve.sampling) + np.array(curve.privacy)
    functions = _functions(curve)
    together = functions @ covariance @ functions.T
    normal = replace(curve, family="gaussian")
    low, high = normal.ate_interval(PROFILES)
    ratio = (high - low) / 2 / 1.96 / np.sqrt(together.mean())
    if not 0.99 < ratio < 1.01:
        return f"the interval of the mean over profiles is {ratio} times what the covariance gives"
    root = np.linalg.cholesky(together + 1e-12 * np.eye(len(together)))
    errors = np.random.default_rng(3).normal(size=(100_000, len(together))) @ root.T / np.sqrt(np.diag(together))
    needed = np.quantile(np.abs(errors).max(axis=1), 0.95)
    lows, highs = normal.effect_interval(PROFILES, simultaneous=True)
    times = (highs - lows) / 2 / np.sqrt(np.diag(together)) / needed
    return _outside(times, (0.97, 1.03), "width of simultaneous intervals over what they need")


def _functions(curve: dpc.EffectCurve) -> Array:
    """Return the functions at the profiles, asked of the curve with one weight at a time."""
    lines = np.eye(len(curve.weights))
    return np.array([replace(curve, weights=tuple(line)).effect(PROFILES) for line in lines.tolist()]).T


def _off_level(half: float, error: float, noise: tuple[NoiseTerm, ...], level: float) -> str:
    found = probability_within(half, error, noise)
    return "" if abs(found - level) < MAX_LEVEL_OFF else f"an interval at level {level} holds with probability {found}"


def check_mean_over_profiles(evidence: Evidence) -> str:
    """The mean over profiles has the standard error of the textbook."""
    result, reference = evidence.exact, evidence.case.reference and evidence.case.reference()
    if isinstance(result, dpc.Effect) or not reference or not reference.mean_sd:
        return ""
    low, high = replace(result, no_interval="").ate_interval(PROFILES)
    ratio = np.array([(high - low) / 2 / 1.96 / reference.mean_sd])
    return _outside(ratio, SAMPLING, "error of the mean over profiles over the textbook's")


def _spread(evidence: Evidence) -> Array:
    spread: Array = np.std([estimates(result) for result in evidence.drawn], axis=0)
    return spread


def _outside(ratio: Array, bounds: tuple[float, float], what: str) -> str:
    return _wrong(~((ratio >= bounds[0]) & (ratio <= bounds[1])), f"{what}: {ratio}")


def _wrong(places: NDArray[np.bool_], words: str) -> str:
    return words if np.any(places) else ""


CHECKS: dict[str, Check] = {
    "estimate": check_estimate,
    "words": check_words,
    "means": check_means,
    "sampling": check_sampling,
    "mean over profiles": check_mean_over_profiles,
    "interval": check_interval,
    "first order": check_first_order,
    "sampling with noise": check_sampling_with_noise,
    "spread": check_spread,
    "total": check_total,
    "bias": check_bias,
}
"""All checks, the quickest first."""
