"""Limits that hold at all looks at a growing table at once, however many there are and whenever."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.arrays import Array

_CELLS = 2**12
"""Of how many cells the distribution of an error is made; widths allow for the rounding to cells."""

_SURE = 6.0
"""The error function of this is 1 in floats."""

_FAR_NORMAL, _FAR_LAPLACE = 8.0, 30.0
"""An error is within so many standard deviations, and with Laplace noise so many scales more, but for 10^-13."""

_MANY = 20
"""Beyond so many parts, the distribution of a sum of Laplace noise is smooth, and is not rounded to cells."""

_SMALLEST_P, _P_STEP = 1e-9, 0.005
"""The smallest p-value that is told from 0, and how far the logarithm of one may be rounded up."""


@dataclass(frozen=True)
class LooksSoFar:
    """Which look of a schedule a result is.

    Attributes:
        progress: The number of units so far, noise included, over the planned one.
    """

    look: int
    all: int
    progress: float


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


def one_sided_p_value(p_value: float) -> float:
    """Return the p-value on one side that belongs to a two-sided one which holds at all looks.

    Beyond the upper limit, the half of the mixture with positive means is at least 2 / p - 1, since the other half is
    at most 1 there; so an error is ever beyond it with probability p / (2 - p) at most, slightly more than half of p.

    Example:
        >>> round(one_sided_p_value(0.05), 4)
        0.0256
    """
    return p_value / (2 - p_value)


def two_sided_alpha(alpha: float) -> float:
    """Return the alpha of the two-sided limits of which either is exceeded with probability `alpha` at most.

    Example:
        >>> round(one_sided_p_value(two_sided_alpha(0.05)), 4)
        0.05
    """
    return 2 * alpha / (1 + alpha)


def mixture_limit(progress: float, alpha: float, tuned_alpha: float | None = None) -> float:
    """Return how many standard errors a sum of independent terms stays within at all times, with probability 1 - alpha.

    It is Robbins' normal mixture (Robbins 1970; Howard and others 2021), narrowest where `progress` is 1.

    Args:
        progress: The number of terms so far over the number for which the limit is to be narrowest.
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
    distinct, places = np.unique(np.clip(edges / (sd * math.sqrt(2)), -_SURE, _SURE), return_inverse=True)
    return np.array([math.erf(edge) / 2 for edge in distinct.tolist()])[places]
