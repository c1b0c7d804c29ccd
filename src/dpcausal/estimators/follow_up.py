"""Released counts of events and censorings, and estimates from them with their sampling error and privacy noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpcausal.estimators.survival_curves import (
    Grid,
    SurvivalQuantities,
    at_risk,
    counts_behind,
    martingale_residuals,
    measures,
)
from dpcausal.estimators.weighted_histogram import WeightedHistogram, Weighting
from dpcausal.guarantee import Guarantee
from dpcausal.queries import EventCounts
from dpcausal.release import Release
from dpcausal.source import Source
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array

_CLEAR = 4.0
"""A number of units is clear of its noise where it is so many standard deviations of the noise above 0."""


@dataclass(frozen=True)
class FollowUp:
    """Counts as a release holds them, made to add up to the public number of units."""

    release: Release
    source: Source
    grid: Grid

    @classmethod
    def of(cls, query: EventCounts, release: Release, source: Source) -> "FollowUp":
        """Return the counts of a query's answer."""
        schema = source.schema
        return cls(release, source, Grid(schema.outcome_bounds[0], tuple(query.times), query.kinds(schema)))

    @cached_property
    def _released(self) -> Array:
        return np.array(self.release.values).reshape(-1, 2, self.grid.counts)

    @property
    def _totals(self) -> tuple[tuple[tuple[int, ...], float], ...]:
        """The arms whose counts add up to a public number, and that number."""
        if self.source.arm_sizes is not None:
            return tuple(((arm,), float(self.source.arm_sizes[arm])) for arm in (0, 1))
        if self.source.schema.units_may_leave(self.source.schema.protects):
            return ()
        return (((0, 1), float(self.source.n)),)

    @cached_property
    def counts(self) -> Array:
        """The counts by stratum, arm and place: the least squares estimates, given the public numbers of units."""
        return self._adding_up(self._released)

    def _adding_up(self, counts: Array, share: float = 1.0) -> Array:
        """Return the counts nearest to these that add up to a share of the public numbers.

        This is a projection. With a share of 0 it takes derivatives by these counts to those by the released ones.
        """
        found = counts.copy()
        for arms, total in self._totals:
            part = found[..., arms, :]
            away = part.sum(axis=(-3, -2, -1), keepdims=True) - share * total
            found[..., arms, :] = part - away / math.prod(part.shape[-3:])
        return found

    @property
    def _noise_variance(self) -> float:
        return self.release.variance(self.release.names[0])

    @cached_property
    def included(self) -> tuple[bool, ...]:
        """Which strata have arms that are clear of noise; all where none has."""
        sizes, places = self.counts.sum(axis=-1), self.grid.counts
        clear = (sizes >= _CLEAR * np.sqrt(places * self._noise_variance)).all(axis=1)
        return tuple(map(bool, clear)) if clear.any() and len(clear) > 1 else (True,) * len(clear)

    @property
    def share_included(self) -> float:
        """The share of units in these strata, as released."""
        sizes = self.counts.sum(axis=(1, 2))
        return float(sizes[list(self.included)].sum() / max(sizes.sum(), 1.0))

    @property
    def clear_of_noise(self) -> bool:
        """Whether the numbers at risk are, in both arms of all included strata and up to the last interval."""
        found = at_risk(self.counts, self.grid)[list(self.included)]
        return bool((found >= _CLEAR * np.sqrt(counts_behind(self.grid) * self._noise_variance)).all())

    @cached_property
    def measured(self) -> SurvivalQuantities:
        """All quantities with their slopes."""
        return measures(self.counts, self.grid, self.included)

    def sizes(self, names: Sequence[str]) -> JointEstimate:
        """Return the number of units in each arm; it has noise where arms are private."""
        slopes = np.zeros((2, *self.counts.shape))
        for arm in (0, 1):
            slopes[arm, :, arm, :] = 1.0
        moved = self._adding_up(slopes, 0.0)
        noise = () if self.source.arm_sizes is not None else self._noise(moved.reshape(2, -1))
        sizes = self.counts.sum(axis=(0, 2))
        return JointEstimate(tuple(names), tuple(map(float, sizes)), ((0.0, 0.0), (0.0, 0.0)), noise)

    def estimates(self, names: Sequence[str], values: Array, slopes: Array) -> JointEstimate:
        """Return estimates with their joint error."""
        moved = self._adding_up(slopes.reshape(len(names), *self.counts.shape), 0.0).reshape(len(names), -1)
        return JointEstimate(
            tuple(names),
            tuple(map(float, np.ravel(values))),
            tuple(tuple(map(float, line)) for line in self._sampling(slopes.reshape(len(names), -1))),
            self._noise(moved),
        )

    def _sampling(self, slopes: Array) -> Array:
        """Return the sampling covariance of estimates with these derivatives by the counts.

        Counts are multinomial, and the estimates do not change where all counts of an arm grow in proportion.
        """
        found: Array = (slopes * np.maximum(self.counts, 0.0).ravel()) @ slopes.T
        return found

    def _noise(self, slopes: Array) -> tuple[JointNoise, ...]:
        """Return the noise of estimates with these derivatives by the released counts.

        Each count has noise of its own. Where there are strata, noise is the sum of so many small parts that it is
        normal, and then it has no more parts than there are estimates.
        """
        if len(self.counts) == 1:
            return self.release.joint_noise(self.release.names, slopes)
        values, vectors = np.linalg.eigh(slopes @ slopes.T * self._noise_variance)
        parts = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return tuple(JointNoise("gaussian", tuple(map(float, part))) for part in parts)


@dataclass(frozen=True)
class WeightedFollowUp(FollowUp):
    """The same from weighted counts. Their sums are not public, and there are no strata."""

    histogram: WeightedHistogram

    @classmethod
    def released(cls, query: EventCounts, weighting: Weighting, source: Source, allowed: Guarantee) -> Self:
        """Release all that it takes, for a total of `allowed`."""
        schema = source.schema
        grid = Grid(schema.outcome_bounds[0], tuple(query.times), query.kinds(schema))
        histogram = weighting.release(
            source, allowed, query.times, query.event, lambda shares: martingale_residuals(shares, grid)
        )
        return cls(histogram.release, source, grid, histogram)

    @cached_property
    def counts(self) -> Array:
        """The weighted counts by stratum, of which there is one, arm and place."""
        return self.histogram.counts[None]

    @property
    def _totals(self) -> tuple[tuple[tuple[int, ...], float], ...]:
        return ()

    def _sampling(self, slopes: Array) -> Array:
        return self.histogram.sampling(slopes.reshape(len(slopes), *self.histogram.counts.shape))

    def _noise(self, slopes: Array) -> tuple[JointNoise, ...]:
        return self.histogram.noise(slopes.reshape(len(slopes), *self.histogram.counts.shape))
