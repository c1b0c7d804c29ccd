"""What outcomes beyond a bound hold, from noisy counts on a public grid. Post-processing of releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Array

RATIO, STEPS = 2**0.5, 24
"""The grid of distances from the anchor: so many edges, each so many times as far as the one before."""

_SCALES, _PLACES, _FINER = 40, 60, 21
"""How many standard deviations and medians are tried first, and around the best ones."""

_NARROWEST, _WIDEST = 0.05, 2.5
"""The standard deviations of the logarithm that are tried: from nearly one value to tails heavier than of costs."""

_SURE = 4.0
"""Units on a side must be so many times the standard deviation of the noise in their number to be described at all."""


def distances(far: float) -> Array:
    """Return the edges of the grid between an anchor and a bound at this distance, nearest first."""
    edges: Array = far * RATIO ** -np.arange(STEPS, 0, -1.0)
    return edges


@dataclass(frozen=True)
class Tail:
    """Outcomes on one side of the anchor: lognormal in their distance from it, above the median.

    Attributes:
        far: The distance of the public bound.
        share: The share of all units that are on this side.
        median: The logarithm of the median distance.
        scale: The standard deviation of the logarithm of the distance.
    """

    far: float
    share: float
    median: float
    scale: float

    @classmethod
    def fitted(cls, far: float, counts: Sequence[float], units: float, noise_scale: float) -> "Tail | None":
        """Fit the upper half of one side's noisy counts by maximum likelihood, noise included; None if noise hides it.

        Args:
            far: The distance of the public bound.
            counts: The noisy number of units in each bin, nearest the anchor first.
            units: The number of all units.
            noise_scale: The scale of the Laplace noise in each count.
        """
        found = np.asarray(counts, dtype=float)
        total, noise = float(found.sum()), 2 * noise_scale**2
        if total <= _SURE * (noise * len(found)) ** 0.5:
            return None
        edges = distances(far)
        beyond = np.cumsum(found[::-1])[::-1][1:]
        upper = np.flatnonzero(beyond < total / 2)
        first = max(int(upper[0]) - 1, 0) if len(upper) else len(edges) - 1
        kept, logs = found[first + 1 :], np.log(edges[first:])
        medians = np.linspace(np.log(edges[0]), np.log(far), _PLACES)
        scales = np.geomspace(_NARROWEST, _WIDEST, _SCALES)
        best = _best(kept, logs, total, noise, (medians, scales))
        step, factor = medians[1] - medians[0], scales[1] / scales[0]
        around = np.linspace(-1, 1, _FINER)
        finer = best[0] + step * around, best[1] * factor**around
        return cls(far, min(total / units, 1.0), *_best(kept, logs, total, noise, finer))

    def beyond(self, bounds: Array) -> Array:
        """Return by how much the mean of all units falls if distances beyond each bound count as the bound."""
        return np.maximum(self._excess(bounds) - self._excess(np.array([self.far])), 0.0) * self.share

    def _excess(self, bounds: Array) -> Array:
        depth = (self.median - np.log(bounds)) / self.scale
        mean = np.exp(self.median + self.scale**2 / 2)
        excess: Array = mean * _normal_cdf(depth + self.scale) - bounds * _normal_cdf(depth)
        return excess

    @property
    def candidates(self) -> Array:
        """The bounds that may be chosen: edges beyond the median, and the public one."""
        edges = distances(self.far)
        return np.append(edges[edges >= np.exp(self.median)], self.far)

    @property
    def moments(self) -> tuple[float, float]:
        """The mean of the distance and of its square, over this side's units, none beyond the public bound."""
        nodes = np.minimum(np.exp(self.median + self.scale * np.linspace(-4, 4, 161)), self.far)
        weights = np.exp(-(np.linspace(-4, 4, 161) ** 2) / 2)
        weights /= weights.sum()
        return float(weights @ nodes), float(weights @ nodes**2)


def _normal_cdf(values: Array) -> Array:
    cdf: Array = np.asarray(_COMPLEMENT(-values / math.sqrt(2)), dtype=float) / 2
    return cdf


_COMPLEMENT = np.frompyfunc(math.erfc, 1, 1)


def _best(counts: Array, logs: Array, total: float, noise: float, tried: tuple[Array, Array]) -> tuple[float, float]:
    """Return the median and the scale with the largest likelihood, as if all noise were normal."""
    places, spreads = np.meshgrid(*tried, indexing="ij")
    beyond = _normal_cdf((places[..., None] - logs) / spreads[..., None])
    shares = beyond - np.concatenate([beyond[..., 1:], np.zeros((*places.shape, 1))], axis=-1)
    variance = noise + np.maximum(total * shares, 1.0)
    loss = ((counts - total * shares) ** 2 / variance + np.log(variance)).sum(axis=-1)
    at = np.unravel_index(loss.argmin(), loss.shape)
    return float(places[at]), float(spreads[at])
