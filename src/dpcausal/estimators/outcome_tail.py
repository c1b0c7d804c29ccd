"""What outcomes beyond a bound hold, from noisy counts on a public grid. Post-processing of releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.utils.arrays import Array

RATIO, STEPS = 2**0.5, 24
"""The grid of distances from the anchor: so many edges, each so many times as far as the one before."""

_MEDIANS, _SCALES = 60, np.geomspace(0.05, 2.5, 40)
"""The medians and standard deviations of a lognormal distribution's logarithm that are tried."""

_AROUND, _TIMES, _ZOOM, _SPREAD = np.linspace(-1.2, 1.2, 41), np.geomspace(0.5, 2.0, 41), 4, 9
"""Around the best of them: steps of the median, and factors of the standard deviation. They shrink by `_ZOOM` until the
likelihood is spread over at least so many pairs."""

_SLOPES, _CURVATURES = np.geomspace(0.1, 40, 40), np.append(0.0, np.geomspace(0.05, 60, 24))
"""Of a tail without a shape: the slope of the logarithm of survival where it begins, and how fast that grows."""

_THIRD = 1 / 3
"""The share of units with which a tail without a shape begins."""

_SURE = 4.0
"""Units on a side must be so many times the standard deviation of the noise in their number to be described at all."""

_POINTS = 80
"""Points between two bounds at which survival is added up."""


@dataclass(frozen=True)
class Tail:
    """Outcomes on one side of the anchor, by their distance from it.

    Attributes:
        reach: Distances at which outcomes may be winsorised, the public bound last.
        excess: For each of them, by how much the mean of all units falls if those beyond count as the bound.
        shape: The shape of the tail, in words.
        mean: The mean distance, 0 for units on the other side.
    """

    reach: Array
    excess: Array
    shape: str
    mean: float
    square: float


def distances(far: float) -> Array:
    """Return the edges of the grid between an anchor and a bound at this distance, nearest first."""
    edges: Array = far * RATIO ** -np.arange(STEPS, 0, -1.0)
    return edges


def fitted_tail(
    far: float, counts: Sequence[float], noise_scale: float, units: float, *, all_here: bool = False
) -> Tail | None:
    """Fit the tail of one side's noisy counts; None if noise hides it.

    A lognormal distribution is fitted to the upper half. Where that does not fit the counts within their noise, the
    logarithm of survival beyond two thirds of the units is a falling parabola in the logarithm of the distance, which
    may be straight as a power law's. The excess is a posterior mean, so that noise in the counts makes it larger.

    Args:
        counts: The noisy number of units in each bin, nearest the anchor first.
        noise_scale: The scale of the Laplace noise in each count.
        all_here: Whether that number is exact, and all of them are on this side.
    """
    found, noise = np.asarray(counts, dtype=float), 2 * noise_scale**2
    total, total_sd = float(found.sum()), (noise * len(found)) ** 0.5
    if len(found) != STEPS + 1 or total <= _SURE * total_sd:
        return None
    tail = _Counts(far, found, units, 0.0, noise) if all_here else _Counts(far, found, total, total_sd, noise)
    fit, shape = tail.lognormal(), "lognormal"
    if fit is None:
        fit, shape = tail.parabola(), "smooth"
    reach, excess = fit
    seen = np.where(found > 2 * noise**0.5, found, 0.0)
    middles = np.append(distances(far), far) / (1 + RATIO) * 2
    return Tail(reach, excess / units, shape, float(seen @ middles) / units, float(seen @ middles**2) / units)


@dataclass(frozen=True)
class _Counts:
    far: float
    counts: Array
    total: float
    total_sd: float
    noise: float

    def _from(self, share: float) -> int:
        """Return the place of the first edge with less than a share of the units beyond it."""
        beyond = np.cumsum(self.counts[::-1])[::-1][1:]
        places = np.flatnonzero(beyond < share * self.total)
        return int(places[0]) if len(places) else STEPS - 1

    def lognormal(self) -> tuple[Array, Array] | None:
        """Return bounds and the total beyond each for a lognormal distribution; None if the counts do not fit one."""
        edges = distances(self.far)
        first = max(self._from(0.5) - 1, 0)
        kept, logs = self.counts[first + 1 :], np.log(edges[first:])
        medians = np.linspace(np.log(edges[0]), np.log(self.far), _MEDIANS)
        expected = np.maximum(kept, 0.0)
        places, spreads, size, misfit = self._fits(kept, expected, logs, (medians, _SCALES))
        at = np.unravel_index(misfit.argmin(), misfit.shape)
        belief = np.ones_like(misfit)
        for zoom in range(4):
            around = places[at] + _AROUND / _ZOOM**zoom, spreads[at] * _TIMES ** (1 / _ZOOM**zoom)
            expected = size[at] * _shares(_normal_cdf((places[at] - logs) / spreads[at]))
            places, spreads, size, misfit = self._fits(kept, expected, logs, around)
            at = np.unravel_index(misfit.argmin(), misfit.shape)
            belief = np.exp(-(misfit - misfit.min()) / 2)
            if belief.sum() ** 2 >= _SPREAD * (belief**2).sum():
                break
        if misfit.min() > len(kept) + 2 * (5 * len(kept)) ** 0.5:  # Laplace noise: the variance of a square is 5
            return None
        bounds = np.append(edges[edges >= math.exp(places[at])], self.far)
        depth = (places[..., None] - np.log(bounds)) / spreads[..., None]
        means = np.exp(places + spreads**2 / 2)[..., None]
        excess = means * _normal_cdf(depth + spreads[..., None]) - bounds * _normal_cdf(depth)
        belief *= size / belief.sum()
        return bounds, (belief[..., None] * np.maximum(excess - excess[..., -1:], 0.0)).sum(axis=(0, 1))

    def _fits(
        self, kept: Array, expected: Array, logs: Array, tried: tuple[Array, Array]
    ) -> tuple[Array, Array, Array, Array]:
        """Return medians and scales, all with all, and for each the number of units that fits best, and the misfit."""
        places, spreads = np.meshgrid(*tried, indexing="ij")
        shares = _shares(_normal_cdf((places[..., None] - logs) / spreads[..., None]))
        return places, spreads, *self._fit(kept, expected, shares)

    def _fit(self, kept: Array, expected: Array, shares: Array) -> tuple[Array, Array]:
        """Return the number of units on this side that fits best with these shares in bins, and the misfit.

        The misfit is in squared standard errors: of the noise, and of counts with these expectations.
        """
        weights, sure = 1 / (self.noise + expected + 1), 1 / max(self.total_sd, 1.0) ** 2
        size = (weights * kept * shares).sum(axis=-1) + sure * self.total
        size /= (weights * shares**2).sum(axis=-1) + sure
        misfit = (weights * (kept - size[..., None] * shares) ** 2).sum(axis=-1) + sure * (size - self.total) ** 2
        return size, misfit

    def parabola(self) -> tuple[Array, Array]:
        """Return bounds and the expected total beyond each where the logarithm of survival is a falling parabola."""
        first = self._from(_THIRD)
        kept, edges = self.counts[first + 1 :], distances(self.far)[first:]
        shares = _shares(_survival(np.log(edges / edges[0])))
        weights = 1 / (self.noise + np.maximum(kept, 0.0) + 1)
        size = (weights * kept * shares).sum(axis=-1) / (weights * shares**2).sum(axis=-1)
        size = np.clip(size, 0.0, self.total)
        loss = (weights * (kept - size[..., None] * shares) ** 2).sum(axis=-1)
        belief = np.exp(-(loss - loss.min()) / 2)
        belief *= size / belief.sum()
        logs = np.linspace(0.0, math.log(self.far / edges[0]), _POINTS)
        heights = (belief[..., None] * _survival(logs)).sum(axis=(0, 1)) * edges[0] * np.exp(logs)
        pieces = np.append((heights[1:] + heights[:-1]) / 2 * np.diff(logs), 0.0)
        beyond = np.cumsum(pieces[::-1])[::-1]
        bounds = np.append(edges, self.far)
        return bounds, np.interp(np.log(bounds / edges[0]), logs, beyond)


def _survival(logs: Array) -> Array:
    """Return survival relative to where the tail begins, for each slope, curvature and logarithm of a distance."""
    slopes, curvatures = _SLOPES[:, None, None], _CURVATURES[None, :, None]
    survival: Array = np.exp(-slopes * logs - curvatures * logs**2 / 2)
    return survival


def _shares(beyond: Array) -> Array:
    """Return the share of units in each bin from the share beyond its lower edge."""
    shares: Array = beyond - np.concatenate([beyond[..., 1:], np.zeros((*beyond.shape[:-1], 1))], axis=-1)
    return shares


_COMPLEMENT = np.frompyfunc(math.erfc, 1, 1)


def _normal_cdf(values: Array) -> Array:
    cdf: Array = np.asarray(_COMPLEMENT(-values / math.sqrt(2)), dtype=float) / 2
    return cdf
