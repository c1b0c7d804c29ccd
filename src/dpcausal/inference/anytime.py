"""Always-valid intervals for a growing table: they hold at all looks at once, however many there are and whenever."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.interval import NoiseTerm, check_alpha
from dpcausal.utils.arrays import Array

_CELLS = 2**12
"""Of how many cells the distribution of an error is made; widths allow for the rounding to cells."""

_FAR_NORMAL, _FAR_LAPLACE = 8.0, 30.0
"""An error is within so many standard deviations, and with Laplace noise so many scales more, but for 10^-13."""

_MANY = 20
"""Beyond so many parts, the distribution of a sum of Laplace noise is smooth, and is not rounded to cells."""

_SMALLEST_P, _P_STEP = 1e-9, 0.005
"""The smallest p-value that is told from 0, and how far the logarithm of one may be rounded up."""


def anytime_interval(
    effect: Effect, *, look: int, tuned_n: int, alpha: float = 0.05, noise_share: float = 0.2
) -> tuple[float, float]:
    """Return the interval at one look at a growing table; the intervals at all looks hold together.

    With probability 1 - alpha the true effect is in the intervals of all looks, with no limit on their number. The
    times of looks may depend on earlier results, and whoever stops at the first interval without 0 makes a false claim
    with probability alpha at most. Intervals are wider than those of `sequential_looks`, which need the number of units
    to be planned and looks that do not depend on results.

    Sampling error is bounded at all times by Robbins' normal mixture, as in the asymptotic confidence sequences of
    Waudby-Smith and others (2024): valid where looks begin after enough units for a normal approximation. Privacy noise
    is another at each look. Look t may fail because of it with probability noise_share · alpha / (t (t + 1)), which
    adds up to noise_share · alpha over all looks, whether the noise of looks is independent or, as in a prepaid
    schedule, correlated.

    Privacy: post-processing.

    Args:
        effect: The effect at this look, on all units so far.
        look: The number of this look; the first is 1. Count every look whose interval was computed.
        tuned_n: The number of units at which intervals are to be narrowest. Fix it before the first look.
        alpha: The probability that any interval misses the effect.
        noise_share: The part of alpha that is for the privacy noise. Fix it before the first look.

    Raises:
        RefusedError: Where the effect has no interval, or is a ratio.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("arm"), outcome=Real("y", 0, 1))
        >>> effect = DifferenceInMeans().estimate(Rehearsal(schema, n=5_000), epsilon=0.5)
        >>> [round(limit, 3) for limit in effect.interval()]
        [-0.017, 0.017]
        >>> [round(limit, 3) for limit in anytime_interval(effect, look=10, tuned_n=5_000)]
        [-0.03, 0.03]
    """
    check_alpha(alpha)
    if not (look >= 1 and tuned_n >= 1 and 0 < noise_share < 1):
        raise RefusedError(
            expected="look and tuned_n from 1 on, and noise_share between 0 and 1",
            got=f"look {look!r}, tuned_n {tuned_n!r}, noise_share {noise_share!r}",
            hint="write for instance anytime_interval(effect, look=3, tuned_n=10_000).",
        )
    if effect.no_interval or effect.ratio:
        raise RefusedError(
            expected="a difference with an interval",
            got=f"none: {effect.no_interval}" if effect.no_interval else "a ratio",
            hint="print the effect to see the rest.",
        )
    sampling_sd = math.hypot(effect.sampling_sd or 0.0, effect.between_sd)
    half = anytime_half_width(
        sampling_sd, effect.noise, alpha, look=look, progress=effect.n / tuned_n, noise_share=noise_share
    )
    half += effect.bias_bound
    return effect.estimate - half, effect.estimate + half


def anytime_half_width(  # noqa: PLR0913 (all but three have names)
    sampling_sd: float,
    noise: Sequence[NoiseTerm],
    alpha: float,
    *,
    look: int,
    progress: float,
    noise_share: float = 0.2,
    tuned_alpha: float | None = None,
) -> float:
    """Return half the width of the interval of an estimate at one look, as in `anytime_interval`.

    Args:
        sampling_sd: The standard error without privacy noise.
        noise: The privacy noise.
        alpha: The probability that any look's interval misses.
        look: The number of this look; the first is 1.
        progress: The number of units so far over that at which intervals are narrowest.
        noise_share: The part of alpha that is for the privacy noise.
        tuned_alpha: The alpha at which intervals are narrowest there; by default this one. With one tuning, a smaller
            alpha always means a wider interval, which p-values rest on.
    """
    tuned = None if tuned_alpha is None else (1 - noise_share) * tuned_alpha
    limit = mixture_limit(progress, (1 - noise_share) * alpha, tuned)
    return with_noise(sampling_sd, limit, noise, noise_share * alpha / (look * (look + 1)))


def anytime_p_value(  # noqa: PLR0913
    estimate: float,
    sampling_sd: float,
    noise: Sequence[NoiseTerm],
    *,
    look: int,
    progress: float,
    tuned_alpha: float,
) -> float:
    """Return the smallest alpha at which the interval at one look leaves out 0, rounded up by less than a hundredth.

    Whatever the number of looks, the smallest of their p-values is below any alpha with probability alpha at most where
    there is no effect.

    Example:
        >>> round(anytime_p_value(4.0, 1.0, [], look=3, progress=1.0, tuned_alpha=0.05), 4)
        0.0018
    """

    def leaves_out_0(alpha: float) -> bool:
        half = anytime_half_width(sampling_sd, noise, alpha, look=look, progress=progress, tuned_alpha=tuned_alpha)
        return half < abs(estimate)

    low, high = math.log(_SMALLEST_P), 0.0
    if leaves_out_0(_SMALLEST_P):
        return _SMALLEST_P
    while high - low > _P_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if leaves_out_0(math.exp(middle)) else (middle, high)
    return math.exp(high)


def mixture_limit(progress: float, alpha: float, tuned_alpha: float | None = None) -> float:
    """Return how many standard errors a sum of independent terms stays within at all times, with probability 1 - alpha.

    It is Robbins' normal mixture (Robbins 1970; Howard and others 2021), narrowest where `progress` is 1.

    Args:
        progress: The number of terms so far over the number for which the limit is to be narrowest.
        alpha: The probability of ever being outside.
        tuned_alpha: The probability for which it is to be narrowest there; by default alpha.

    Example:
        >>> [round(mixture_limit(progress, 0.05), 2) for progress in (0.1, 1.0, 10.0)]
        [3.82, 3.04, 3.25]
    """
    best = 1.0  # how many times the mixture's own size; it is narrowest where best = log((1 + best) / alpha²)
    for _ in range(50):
        best = math.log((1 + best) / (alpha if tuned_alpha is None else tuned_alpha) ** 2)
    times = progress * best
    return math.sqrt((1 + 1 / times) * math.log((1 + times) / alpha**2))


def with_noise(sampling_sd: float, limit: float, noise: Sequence[NoiseTerm], level: float) -> float:
    """Return the distance that an error with noise exceeds with probability `level`, while sampling error is in limits.

    Whoever is beyond it had a sampling error beyond its limit of so many standard deviations, which the mixture bounds
    at all times, or an event of this probability.

    Example:
        >>> round(with_noise(1.0, 3.0, [NoiseTerm("gaussian", 0.5)], 0.001), 2)
        3.46
    """
    normal_sd = math.sqrt(sum(term.variance for term in noise if term.family == "gaussian"))
    parts = [(term.scale / math.sqrt(term.parts), term.parts) for term in noise if term.family == "laplace"]
    parts = [(scale, count) for scale, count in parts if scale > 0]
    laplace_sds = sum(scale * math.sqrt(2 * count) for scale, count in parts)
    far = limit * sampling_sd + _FAR_NORMAL * (normal_sd + laplace_sds) + _FAR_LAPLACE * sum(b for b, _ in parts)
    if far == 0:
        return 0.0
    width = 2 * far / _CELLS
    edges = np.linspace(-(_CELLS + 1) / 2, (_CELLS - 1) / 2, _CELLS + 1) * width
    within: Array = np.clip(edges, -limit * sampling_sd, limit * sampling_sd)
    spectrum = _spectrum(_normal(within if sampling_sd else edges, sampling_sd))
    spectrum *= _spectrum(_normal(edges, normal_sd))
    rounded = 2
    for scale, count in parts:
        whole = int(count) if count <= _MANY else 0
        if count > whole:
            turned = 2 * np.pi * np.arange(_CELLS // 2 + 1) / (_CELLS * width) * scale
            spectrum *= (1 + turned**2) ** -float(count - whole)
        if whole:
            spectrum *= _spectrum(np.sign(edges) * -np.expm1(-np.abs(edges) / scale) / 2) ** whole
            rounded += math.ceil(count)
    shares = np.fft.fftshift(np.fft.irfft(spectrum, _CELLS))
    half = _CELLS // 2
    tails = np.cumsum(shares[:half] + np.append(0.0, shares[:half:-1]))  # beyond half, half - 1, … cells
    inside = half - int(np.searchsorted(tails, level))
    return (inside + rounded / 2) * width


def _spectrum(below: Array) -> NDArray[np.complex128]:
    """Return the Fourier transform of a distribution, given the probability below each edge of the cells."""
    return np.fft.rfft(np.fft.ifftshift(np.diff(below)))


def _normal(edges: Array, sd: float) -> Array:
    """Return the probability that a normal error is below each edge, less a half."""
    if sd == 0:
        return np.sign(edges) / 2
    return np.array([math.erf(edge) / 2 for edge in (edges / (sd * math.sqrt(2))).tolist()])
