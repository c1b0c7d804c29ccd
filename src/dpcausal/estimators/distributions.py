"""Both arms' distributions of the outcome from noisy counts, their quantiles, and the joint error of shares."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpcausal.estimators.weighted_histogram import WeightedHistogram
from dpcausal.release import Release
from dpcausal.source import Source
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array

_Z = NormalDist().inv_cdf(0.975)
"""Slopes are taken over a 95 % interval of each quantile."""

_Z_OF_BOTH = NormalDist().inv_cdf(1 - 0.05 / 4)
"""Two intervals of so many standard errors hold together at 95 %, by Bonferroni."""


@dataclass(frozen=True)
class Quantile:
    """One arm's quantile, with its interval by inverting that of the distribution function.

    Attributes:
        low: The lower limit at 95 %.
        slope: The quantile's change with the share of outcomes below it, over the interval.
        bounded: Whether the interval reaches one of the outcome's bounds.
    """

    value: float
    low: float
    high: float
    place: "Place"
    slope: float
    bounded: bool


@dataclass(frozen=True)
class Place:
    """A place in an arm's distribution.

    Attributes:
        below: The number of bins below it, with a fraction.
        share: The share of outcomes below it.
    """

    arm: int
    below: float
    share: float


@dataclass(frozen=True)
class Arm:
    """One arm's distribution as released.

    Attributes:
        grid: The edges of the bins, the outcome's bounds included.
        shares: The share of outcomes below each inner edge, noise included.
        rising: The nearest rising shares within 0 and 1, at all edges, for inversion only.
        size: The number of units, or the sum of their weights; at least 1.
    """

    grid: Array
    shares: Array
    rising: Array
    size: float
    known: bool

    @classmethod
    def of(cls, counts: Array, grid: Array, size: float, *, known: bool) -> "Arm":
        """Return the distribution that counts give."""
        shares = np.cumsum(counts)[:-1] / size
        rising = np.array([0.0, *np.clip(isotonic(shares), 0.0, 1.0), 1.0])
        return cls(grid, shares, rising, size, known)

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.grid) - 1

    def pull(self, place: Place) -> float:
        """Return how far a count anywhere pulls a share down, because all shares are relative to the arm's size."""
        return place.below / self.bins if self.known else place.share

    def in_bin(self, place: Place) -> float:
        """Return the share of outcomes in the bin of a place."""
        whole = min(int(place.below), self.bins - 1)
        return float(self.rising[whole + 1] - self.rising[whole])

    def inverted(self, level: float, grid: Array) -> float:
        """Return where the rising shares reach a level; in the middle where they stay at it."""
        rising = self.rising
        first, last = np.searchsorted(rising, level, "left"), np.searchsorted(rising, level, "right")
        if last > first:
            return float((grid[first] + grid[last - 1]) / 2)
        if first in (0, len(grid)):
            return float(grid[0] if first == 0 else grid[-1])
        part = (level - rising[first - 1]) / (rising[first] - rising[first - 1])
        return float(grid[first - 1] + part * (grid[first] - grid[first - 1]))


@dataclass(frozen=True)
class Distributions:
    """Both arms' distributions from counts of units."""

    arms: tuple[Arm, Arm]
    release: Release

    @classmethod
    def of(cls, release: Release, source: Source, grid: Array) -> "Distributions":
        """Return the distributions of a release of `ArmOutcomeCounts`."""
        arms = []
        for arm, counts in enumerate(np.array(release.values).reshape(2, -1)):
            if source.arm_sizes is not None:
                size = max(float(source.arm_sizes[arm]), 1.0)
                counts = counts + (size - counts.sum()) / len(counts)  # noqa: PLW2901 (least squares: noise of one size)
            else:
                size = min(max(float(counts.sum()), 1.0), float(source.n))
            arms.append(Arm.of(counts, grid, size, known=source.arm_sizes is not None))
        return cls((arms[0], arms[1]), release)

    @property
    def size_sds(self) -> tuple[float, float]:
        """The standard deviations of the noise in the arms' sizes."""
        noise = self.release.variance(self.release.names[0])
        control, treated = (0.0 if arm.known else math.sqrt(noise * arm.bins) for arm in self.arms)
        return control, treated

    def quantile(self, arm: int, level: float) -> Quantile:
        """Return a quantile of an arm with its interval."""
        own = self.arms[arm]
        place = Place(arm, own.inverted(level, np.arange(len(own.grid), dtype=float)), level)
        reach = _Z * self.shares([place]).standard_error([1.0])
        low, high = (own.inverted(each, own.grid) for each in (level - reach, level + reach))
        return Quantile(
            value=own.inverted(level, own.grid),
            low=low,
            high=high,
            place=place,
            slope=(high - low) / (2 * reach),
            bounded=level - reach <= 0 or level + reach >= 1,
        )

    def plain_quantiles(self, level: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return limits of both arms' quantiles as they are, not interpolated, that hold jointly at 95 % or more.

        They are edges of bins: of whole values, a quantile is one, and which of those in a bin counts do not show.
        """
        limits = []
        for at, arm in enumerate(self.arms):
            bins = np.arange(len(arm.grid), dtype=float)
            place = Place(at, arm.inverted(level, bins), level)
            reach = _Z_OF_BOTH * self.shares([place]).standard_error([1.0])
            low, high = (arm.inverted(each, bins) for each in (level - reach, level + reach))
            limits.append((float(arm.grid[math.floor(low)]), float(arm.grid[math.ceil(high)])))
        return limits[0], limits[1]

    def shares(self, places: Sequence[Place]) -> JointEstimate:
        """Return the shares of outcomes below several places with their joint error."""
        return JointEstimate(
            tuple(str(at) for at in range(len(places))),
            tuple(place.share for place in places),
            tuple(tuple(map(float, line)) for line in self._sampling(places)),
            self._noise(places),
        )

    def _sampling(self, places: Sequence[Place]) -> Array:
        """Return the covariance of the sampling errors of shares.

        Where in its bin an outcome is has no part in the estimate, and so adds nothing to its variance.
        """
        shares, below = np.array([place.share for place in places]), np.array([place.below for place in places])
        whole, in_bin = np.floor(below), np.array([self.arms[place.arm].in_bin(place) for place in places])
        within = np.where(np.equal.outer(whole, whole), in_bin * _spread(below - whole), 0.0)
        arms = np.array([place.arm for place in places])
        sizes = np.array([self.arms[place.arm].size for place in places])
        found: Array = np.where(np.equal.outer(arms, arms), (_spread(shares) - within) / sizes, 0.0)
        return found

    def _noise(self, places: Sequence[Place]) -> tuple[JointNoise, ...]:
        """Return the noise in shares: bins between two places move all of them alike, and are one term."""
        found = []
        for at, arm in enumerate(self.arms):
            own = np.array([place.arm == at for place in places])
            below = np.array([place.below for place in places])
            pulls = np.array([arm.pull(place) for place in places])
            for start, end in itertools.pairwise((0.0, *sorted(set(below[own].tolist())), float(arm.bins))):
                if end > start and own.any():
                    derivative = np.where(own, ((below >= end) - pulls) / arm.size, 0.0)
                    found.append(several(self.release, derivative * math.sqrt(end - start), end - start))
        return tuple(found)


@dataclass(frozen=True)
class WeightedDistributions(Distributions):
    """Both arms' distributions from counts that are weighted by a propensity score."""

    histogram: WeightedHistogram

    @classmethod
    def weighted(cls, histogram: WeightedHistogram, grid: Array) -> "WeightedDistributions":
        """Return the distributions of weighted counts."""
        arms = [
            Arm.of(counts, grid, float(weight), known=False)
            for counts, weight in zip(histogram.counts, histogram.weights, strict=True)
        ]
        return cls((arms[0], arms[1]), histogram.release, histogram)

    def _slopes(self, places: Sequence[Place]) -> Array:
        """Return the derivatives of shares by all counts."""
        slopes = np.zeros((len(places), *self.histogram.counts.shape))
        for at, place in enumerate(places):
            arm = self.arms[place.arm]
            slopes[at, place.arm] = (np.clip(place.below - np.arange(arm.bins), 0.0, 1.0) - place.share) / arm.size
        return slopes

    def _sampling(self, places: Sequence[Place]) -> Array:
        return self.histogram.sampling(self._slopes(places))

    def _noise(self, places: Sequence[Place]) -> tuple[JointNoise, ...]:
        return *super()._noise(places), self.histogram.score_noise(self._slopes(places))


def several(release: Release, derivatives: Array, bins: float) -> JointNoise:
    """Return the noise of several bins together."""
    scales = derivatives * release.scale(release.names[0])
    return JointNoise(release.family, tuple(scales.tolist()), max(round(bins), 1) * release.parts)


def _spread(shares: Array) -> Array:
    """Return the covariance of shares of one unit below several points, given their expectations."""
    covariance: Array = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    return covariance


def isotonic(values: Array) -> Array:
    """Return the nearest rising values by least squares, by pooling adjacent violators."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, count = float(value), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before, several_before = blocks.pop()
            total, count = total + before, count + several_before
        blocks.append((total, count))
    return np.repeat([total / count for total, count in blocks], [count for _, count in blocks])
