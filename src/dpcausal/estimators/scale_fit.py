"""The scale of a covariate for models, found in noisy counts of its values.

A number is taken to be m + s (e^{g z} - 1) / g, z standard normal: three parameters for its place, its spread and its
skewness; values beyond the declared bounds are at the bounds. All shifts m of the law are compared with the counts at
once by Fourier transforms, for a list of spreads and skewnesses. Noise may be far larger than the counts of single
bins: what is compared is the sum of squares over all bins. Where the law contradicts the counts beyond doubt, as with
two modes, three quantiles of the counts take its place.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH, Scale, Transform
from dpcausal.utils.arrays import Array

FINE, COARSE = 1024, 32
"""The numbers of fine and of coarse bins between the bounds."""

_Law = tuple[float, float, float]
"""Median, spread and skewness; median and spread in fine bins."""

_PER_COARSE = FINE // COARSE
_SPREADS: Array = 0.5 * 1.35 ** np.arange(26.0)
"""Spreads to compare, in fine bins: up to nearly the range."""

_SKEWS: Array = np.linspace(-1.2, 1.5, 10)
SKEW_SD = 0.6
"""Skewnesses to compare, and the standard deviation of their normal prior."""

_SHIFTS = np.arange(-FINE, 2 * FINE)
_LENGTH = 4 * FINE
_INNER_EDGES: Array = np.arange(1.0, FINE)
_COARSE_STARTS = np.arange(0, FINE, _PER_COARSE)
_FOUND_SD = 0.3
"""The scale is found where the posterior standard deviation of the logarithm of the spread is no larger."""

_MOST_IN_A_BIN, _MOST_AT_A_BOUND = 0.5, 0.9
"""Fine bins resolve a law with no larger share of units in one of them, and none in that at a bound."""

_CONTRADICTED, _NOISE_SDS = 0.08, 3.0
"""Counts contradict the law where a cumulative share is off by more than the first beyond so many sds of noise."""

_TAIL = 0.1
"""The share of units beyond each of the outer two of three quantiles."""

_STEPS = 20
"""The number of steps from the best law of the list to the best one near it."""

_FAR = 3.3
"""Values further from the median, in standard deviations of the normal score, are too rare to confound: 1 in 1,000."""

_KNOTS = 13
"""The number of knots of a curved scale."""

_NORMAL = NormalDist()
_TYPICAL = _NORMAL.inv_cdf(0.95)
_PLACES: Array = np.linspace(-6.0, 6.0, 2401)
_CUMULATIVE: Array = np.array([_NORMAL.cdf(place) for place in _PLACES])
_GRID: Array = np.linspace(-4.0, 4.0, 321)
_WEIGHTS: Array = np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()
"""A standard normal law on a grid."""


@dataclass(frozen=True)
class FittedScale:
    """The law of a covariate as its scale sees it, and the scale.

    Attributes:
        skewness: How fast spreads grow with values: 0 for a normal law, 1 for a logarithm with standard deviation 1.
        found: Whether the law stands clearly out of the noise; otherwise the scale is the line between the bounds.
        transform: The declared shape of the scale; by default halfway between the value and its normal score.
        skewness_sd: The standard deviation of the error in `skewness`.
        missing_share: The share of units whose value is missing, between 0 and 1.
        missing_sd: The standard deviation of the noise in it.
    """

    low: float
    high: float
    location: float
    spread: float
    skewness: float
    found: bool
    transform: Transform | None = None
    skewness_sd: float = 0.0
    missing_share: float = 0.0
    missing_sd: float = 0.0

    def quantile(self, p: float) -> float:
        """Return the value below which a share p of units is, at most the bounds."""
        return float(np.clip(self._values(np.array([_NORMAL.inv_cdf(p)])), self.low, self.high)[0])

    @property
    def scale(self) -> Scale:
        """The map from values to scores.

        Scores have mean 0 and standard deviation 1 / 2.6 under the law, and are clipped at -1 and 1.
        """
        line = Scale([(self.low, -1.0), (self.high, 1.0)])
        if not self.found:
            return line
        shaped = self._shaped(np.clip(self._values(_GRID), self.low, self.high))
        mean = float(_WEIGHTS @ shaped)
        sd = math.sqrt(max(float(_WEIGHTS @ (shaped - mean) ** 2), 1e-300))
        ends = self._shaped(np.array([self._least, self.high]))
        first, last = np.clip((ends - mean) / (REACH * sd), -1.0, 1.0)
        straight = self.transform == "linear" or (self.transform is None and abs(self.skewness) < 1e-3)
        scores = np.linspace(first, last, 2 if straight else _KNOTS)
        values = np.clip(self._unshaped(mean + REACH * sd * scores), self.low, self.high)
        rising = np.concatenate([[True], np.diff(values) > 1e-9 * (self.high - self.low)])
        knots = list(zip(map(float, values[rising]), map(float, scores[rising]), strict=True))
        return Scale(knots) if len(knots) > 1 else line  # a law wholly beyond a bound

    @property
    def shape_share(self) -> float:
        """The largest share of its variance in which the scale differs from the value or from its normal score.

        A model that is linear in either leaves about this share of the covariate's confounding in. It is 0 where the
        shape is declared, or the scale was not found.
        """
        if self.transform is not None or not self.found:
            return 0.0
        skew = math.copysign(math.hypot(self.skewness, self.skewness_sd), self.skewness)
        law = replace(self, skewness=skew)
        values = np.clip(law._values(np.clip(_GRID, -_FAR, _FAR)), self.low, self.high)  # noqa: SLF001
        scores = np.interp(values, *np.array(law.scale.knots).T)
        normal = _logarithm((values - self.location) / self.spread, skew)
        return max(1 - _correlation(scores, other) ** 2 for other in (normal, values))

    @property
    def _least(self) -> float:
        """The least value that differs from smaller ones: a logarithm needs values above 0."""
        if self.transform != "log":
            return self.low
        above = 1e-3 * max(abs(self.location), 1e-9 * (self.high - self.low))
        return max(self.low, float(self._values(np.array([-REACH]))[0]), above)

    def _values(self, normal: Array) -> Array:
        return self.location + self.spread * _exponential(normal, self.skewness)

    def _shaped(self, values: Array) -> Array:
        if self.transform == "log":
            logarithm: Array = np.log(np.maximum(values, self._least))
            return logarithm
        from_median = (values - self.location) / self.spread
        if self.transform == "linear":
            return from_median
        return _exponential(_logarithm(from_median, self.skewness), self.skewness / 2)

    def _unshaped(self, shaped: Array) -> Array:
        if self.transform == "log":
            values: Array = np.exp(shaped)
            return values
        if self.transform == "linear":
            return self.location + self.spread * shaped
        return self._values(_logarithm(shaped, self.skewness / 2))


def typical_scale(column: Real) -> FittedScale:
    """Return the scale of a column that declares where about 90 % of its values lie.

    Without a declared shape it is halfway between the value and its logarithm where typical values are above 0.
    """
    low, high = column.typical or (column.low, column.high)
    skew = math.log(high / low) / 2 / _TYPICAL if low > 0 and column.transform != "linear" else 0.0
    place = math.sqrt(low * high) if skew else (low + high) / 2
    spread = place * skew if skew else (high - low) / 2 / _TYPICAL
    return FittedScale(column.low, column.high, place, spread, skew, found=True, transform=column.transform)


def fit_scale(  # noqa: PLR0913, PLR0917 (the numbers of one column, as they are released)
    column: Real, coarse: Array, fine: Array, missing: float, noise_sd: float, n: float
) -> FittedScale:
    """Return the scale of a column from noisy counts of its values in equal bins between its bounds.

    Args:
        coarse: The counts in 32 bins.
        fine: The counts in 1,024 bins.
        missing: The number of units whose value is missing; these are in no bin.
        noise_sd: The standard deviation of the noise in each count.
    """
    missing_share = min(max(missing / n, 0.0), 1.0)
    counted = n * (1 - missing_share)
    coarse, fine = (np.asarray(counts, dtype=float) for counts in (coarse, fine))
    variance = max(noise_sd**2, 1e-6 * counted**2, 1e-9)  # a law is never right to within a part in a thousand
    gains = _gains(coarse, fine, counted, variance)
    place = np.unravel_index(int(gains.argmax()), gains.shape)
    weights = np.exp((gains - gains[place]) / 2).sum(axis=2).astype(float)
    weights /= weights.sum()
    skews, spreads = weights.sum(axis=1), weights.sum(axis=0)
    log_spread = np.log(_SPREADS)
    sd = math.sqrt(max(float(spreads @ log_spread**2) - float(spreads @ log_spread) ** 2, 0.0))
    skew_sd = math.sqrt(max(float(skews @ _SKEWS**2) - float(skews @ _SKEWS) ** 2, 0.0))
    start = float(_SHIFTS[place[2]]), float(log_spread[place[1]]), float(_SKEWS[place[0]])
    law = _refined(start, coarse, fine, counted, variance)
    found = sd <= _FOUND_SD
    if found:
        law = _uncontradicted(law, coarse, fine, counted, noise_sd)
    width = (column.high - column.low) / FINE
    shift, spread, skew = law
    return FittedScale(
        low=column.low,
        high=column.high,
        location=column.low + width * shift,
        spread=width * spread,
        skewness=skew,
        found=found and _is_resolved(law),
        transform=column.transform,
        skewness_sd=skew_sd,
        missing_share=missing_share,
        missing_sd=noise_sd / n,
    )


def _exponential(places: Array, skew: float) -> Array:
    """Return (e^{g z} - 1) / g."""
    return places if abs(skew) < 1e-6 else np.expm1(skew * places) / skew


def _logarithm(values: Array, skew: float) -> Array:
    """Return z of (e^{g z} - 1) / g, at most 40 in size."""
    if abs(skew) < 1e-6:
        return values
    found: Array = np.clip(np.log(np.maximum(1 + skew * values, 1e-300)) / skew, -40.0, 40.0)
    return found


def _correlation(first: Array, second: Array) -> float:
    """Return the correlation under the law; 1 where one of both does not vary, and so cannot differ in shape."""
    first, second = (each - _WEIGHTS @ each for each in (first, second))
    sds = math.sqrt(_WEIGHTS @ first**2) * math.sqrt(_WEIGHTS @ second**2)
    return min(max(float(_WEIGHTS @ (first * second)) / sds, -1.0), 1.0) if sds > 0 else 1.0


def _below(edges: Array, spread: float, skew: float) -> Array:
    """Return the share of units below edges, which are measured from the median."""
    return np.interp(_logarithm(edges / spread, skew), _PLACES, _CUMULATIVE)


def _gains(coarse: Array, fine: Array, counted: float, variance: float) -> NDArray[np.float32]:
    """Return how much smaller each law makes the sum of squares, in variances of the noise, less the prior's part.

    One table for each skewness, with a line for each spread and a column for each shift of the median.
    """
    factor = counted / variance
    spread_coarse = np.zeros(FINE)
    spread_coarse[::_PER_COARSE] = coarse
    fine_transform, coarse_transform = (
        np.conj(np.fft.rfft((2 * factor * counts).astype(np.float32), _LENGTH)) for counts in (fine, spread_coarse)
    )
    low, high = (np.float32(2 * factor * (fine[at] + coarse[at])) for at in (0, -1))
    gains = np.empty((len(_SKEWS), len(_SPREADS), len(_SHIFTS)), dtype=np.float32)
    for place, skew in enumerate(_SKEWS.tolist()):
        laws, table = _laws(skew), gains[place]
        # Of counts at j and a law at j - shift; the kernel starts at a distance of -2 FINE.
        crossed = np.fft.irfft(fine_transform * laws.fine + coarse_transform * laws.coarse, _LENGTH)
        table[:] = crossed[:, 3 * FINE : 0 : -1]
        table += low * laws.low_ends + high * laws.high_ends
        table -= np.float32(factor * counted) * laws.squares + np.float32((skew / SKEW_SD) ** 2)
    return gains


class _Laws(NamedTuple):
    """What laws of one skewness, with all spreads and shifts, give fine and coarse bins; in shares of units."""

    fine: NDArray[np.complex64]
    coarse: NDArray[np.complex64]
    low_ends: NDArray[np.float32]
    high_ends: NDArray[np.float32]
    squares: NDArray[np.float32]


@lru_cache
def _laws(skew: float) -> _Laws:
    """Return the laws of a skewness."""
    edges, middle = np.arange(-2 * FINE, 2 * FINE + 1, dtype=float), 2 * FINE
    below = np.array([_below(edges, spread, skew) for spread in _SPREADS], dtype=np.float32)
    low_ends, high_ends = below[:, middle - _SHIFTS], 1 - below[:, middle + FINE - _SHIFTS]
    kernels, squares = [], np.zeros_like(low_ends)
    for step in (1, _PER_COARSE):
        kernel = np.zeros((len(_SPREADS), _LENGTH), dtype=np.float32)
        kernel[:, : _LENGTH - step + 1] = below[:, step:] - below[:, : _LENGTH + 1 - step]
        sums = _stepped_sums(kernel**2, step)
        squares += sums[:, middle - _SHIFTS + FINE] - sums[:, middle - _SHIFTS]
        for ends, at in ((low_ends, 0), (high_ends, FINE - step)):
            squares += ends * (ends + 2 * kernel[:, middle - _SHIFTS + at])
        kernels.append(kernel)
    fine, coarse = (np.fft.rfft(kernel).astype(np.complex64) for kernel in kernels)
    return _Laws(fine, coarse, low_ends, high_ends, squares)


def _stepped_sums(values: NDArray[np.float32], step: int) -> NDArray[np.float32]:
    """Return sums of values before each place, of those a number of steps away."""
    lines, length = values.shape
    sums = np.cumsum(values.reshape(lines, length // step, step), axis=1).reshape(lines, length)
    return np.concatenate([np.zeros((lines, step), dtype=np.float32), sums], axis=1)


def _gain(law: _Law, coarse: Array, fine: Array, counted: float, variance: float) -> float:
    shares = _shares(law[0], math.exp(law[1]), law[2])
    wide = np.add.reduceat(shares, _COARSE_STARTS)
    gain = 2 * counted * (fine @ shares + coarse @ wide) - counted**2 * (shares @ shares + wide @ wide)
    return float(gain) / variance - (law[2] / SKEW_SD) ** 2


def _shares(shift: float, spread: float, skew: float) -> Array:
    """Return the share of units in each fine bin under a law."""
    below = np.empty(FINE + 1)
    below[0], below[1:-1], below[-1] = 0.0, _below(_INNER_EDGES - shift, spread, skew), 1.0
    return below[1:] - below[:-1]


def _refined(start: _Law, coarse: Array, fine: Array, counted: float, variance: float) -> _Law:
    """Return the best law near one of the list, of which the logarithm of the spread is given."""
    best, size = start, 1.0
    gain = _gain(best, coarse, fine, counted, variance)
    for _ in range(_STEPS):
        steps = max(0.25 * math.exp(best[1]), 0.5) * size, 0.12 * size, 0.1 * size
        moved = False
        for place, sign in itertools.product(range(3), (-1, 1)):
            shift, log_spread, skew = (best[at] + sign * steps[at] * (at == place) for at in range(3))
            near = shift, log_spread, min(max(skew, float(_SKEWS[0])), float(_SKEWS[-1]))
            other = _gain(near, coarse, fine, counted, variance)
            if other > gain:
                best, gain, moved = near, other, True
        size *= 1.0 if moved else 0.5
    return best[0], math.exp(best[1]), best[2]


def _is_resolved(law: _Law) -> bool:
    """Whether fine bins show how units spread under a law."""
    shares = _shares(*law)
    return bool(shares[1:-1].max() <= _MOST_IN_A_BIN and max(shares[0], shares[-1]) <= _MOST_AT_A_BOUND)


def _uncontradicted(law: _Law, coarse: Array, fine: Array, counted: float, noise_sd: float) -> _Law:
    """Return the law, or that of three quantiles where cumulative counts contradict it."""
    total = coarse.sum()
    drift = (counted - total) / COARSE
    within = fine.reshape(COARSE, -1)
    level = within + ((coarse + drift) - within.sum(axis=1))[:, None] / _PER_COARSE
    shares = np.clip(np.cumsum(level.ravel()) / max(counted, 1.0), 0.0, 1.0)[:-1]
    at_coarse = np.arange(1, COARSE)
    noise = noise_sd / max(counted, 1.0) * np.sqrt(at_coarse * (COARSE - at_coarse) / COARSE)
    off = np.abs(
        shares[_PER_COARSE - 1 :: _PER_COARSE] - _below(_INNER_EDGES[_PER_COARSE - 1 :: _PER_COARSE] - law[0], *law[1:])
    )
    if float((off - _NOISE_SDS * noise).max()) < _CONTRADICTED:
        return law
    rising = np.maximum.accumulate(shares)
    low, middle, high = (float(np.interp(p, rising, _INNER_EDGES)) for p in (_TAIL, 0.5, 1 - _TAIL))
    reach = -_NORMAL.inv_cdf(_TAIL)
    below, above = max(middle - low, 0.5), max(high - middle, 0.5)
    skew = min(max(math.log(above / below) / reach, float(_SKEWS[0])), float(_SKEWS[-1]))
    wide = _exponential(np.array([-reach, reach]), skew)
    return middle, (above + below) / float(wide[1] - wide[0]), skew
