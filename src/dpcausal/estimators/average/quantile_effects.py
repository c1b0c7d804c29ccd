"""Differences between the arms' quantiles, and each arm's distribution, from one noisy histogram."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from dpcausal.arm_curves import ArmCurves
from dpcausal.arrays import Array
from dpcausal.effect import Effect
from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.interval import merged
from dpcausal.joint_estimate import JointEstimate, JointNoise
from dpcausal.queries import ArmOutcomeCounts
from dpcausal.real import Real
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for
from dpcausal.text import format_number
from dpcausal.validation import is_number

_BINS = ((500, 16), (4_000, 32))
"""Up to this product of units and epsilon, so many bins by default; beyond the last, `_MOST_BINS`. More bins mean more
noise in the distribution, fewer a coarser one."""

_MOST_BINS = 64

_CURVE_POINTS = 15
"""The distribution functions are shown at this many edges at most."""

_Z = NormalDist().inv_cdf(0.975)
"""Slopes are taken over a 95 % interval of each quantile."""


@dataclass(frozen=True)
class QuantileEffects(BaseEstimator):
    """Differences between the arms' quantiles of the outcome, such as medians, and each arm's distribution.

    Estimand:
        A quantile of the outcome with all treated minus the same quantile with none. It is the effect on the
        distribution, and not the median of the units' effects. Outcomes of one bin count as spread evenly over it: with
        outcomes that pile up at round values it is the difference of such interpolated quantiles. The effect itself is
        the median's, or that of the first quantile where 0.5 is not among them; `contrasts` holds all of them, and
        `curves` both arms' distribution functions with bands.

    Assumptions:
        Arms are comparable without adjustment, as in a randomised trial. Bins are narrow: within one, the distribution
        function is nearly a straight line. For the interval: in each arm there are enough units that the quantile is
        away from the bounds, otherwise there is none.

    Privacy:
        One query: noisy counts of outcomes in public bins of each arm. One unit leaves one bin and enters another, so
        noise in each count does not depend on the number of bins. Noise in a share adds up over bins: at the median it
        grows as the root of their number. Quantiles cost nothing beyond the counts, however many there are.

    Attributes:
        quantiles: The quantiles, between 0 and 1.
        bins: How many bins of one width there are between the outcome's bounds; by default 16, 32 or 64, as n times
            epsilon is up to 500, up to 4,000 or larger.
        edges: Public edges of the bins, in place of `bins`; those beyond the outcome's bounds are left out. Give them
            for skewed outcomes: narrow bins where quantiles are expected. For outcomes that pile up at round values,
            put edges half way between these. Where several sites answer, give edges or bins: the same for all.

    Reference:
        Woodruff (1952), Confidence Intervals for Medians and Other Position Measures, for the interval of a quantile by
        inverting that of the distribution function; Zou and Donner (2008), Construction of Confidence Limits about
        Effect Measures, for that of a difference.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))
        >>> trial = Rehearsal(schema, n=5_000, outcome_sd=15)
        >>> plan = QuantileEffects(quantiles=[0.5, 0.9]).estimate(trial, epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.53, 0.24)
    """

    also_called: ClassVar[str] = (
        "qte quantile quantiles quantile_effect quantile_treatment_effect quantile_regression median "
        "median_difference distribution cdf"
    )

    quantiles: Sequence[float] = (0.1, 0.5, 0.9)
    bins: int | None = None
    edges: Sequence[float] = ()

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate effects for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query = ArmOutcomeCounts(self._edges(source, epsilon))
        guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), "count_0_0")
        release = source.release(query, guarantee)
        low, high = source.schema.outcome_bounds
        grid = np.array([low, *query.edges, high])
        levels = tuple(map(float, self.quantiles))
        arms = [_Arm.of(release, source, arm, grid) for arm in (0, 1)]
        found = [[each.quantile(level) for level in levels] for each in arms]
        contrasts = _contrasts(levels, arms, found, release)
        place = levels.index(0.5) if 0.5 in levels else 0
        along = [float(at == place) for at in range(len(levels))]
        labels = source.schema.treatment.labels_or_values
        effect = Effect(
            estimand=f"difference in the {_named(levels[place])} of the outcome: with all treated minus with none",
            arms=labels,
            outcome=source.schema.outcome.name,
            quantity=f"{_named(levels[place])} of {source.schema.outcome.name}",
            estimate=contrasts.values[place],
            sampling_sd=contrasts.sampling_sd(along),
            noise=(merged(contrasts.noise_along(along)),),
            n=source.n,
            method=f"quantiles of noisy distribution functions on {len(grid) - 1} public bins",
            guarantee=guarantee,
            assumptions=(
                "arms are comparable without adjustment, as in a randomised trial",
                NO_INTERFERENCE,
                "outcomes of one bin are spread evenly over it",
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=(*_arm_notes(levels, found, labels, rehearsed=release.receipt.digest is None), *source.caveats),
            no_interval=_refusal(levels[place], [each[place] for each in found]),
            arm_sizes=_arm_sizes(arms, release, labels),
            contrasts=contrasts if len(levels) > 1 else None,
            curves=(_curves(arms, release, source),),
        )
        return warned(effect, source.schema, Signs(sizes=tuple(Measured(each.size, each.size_sd) for each in arms)))

    @property
    def advice_for_sites(self) -> str:
        """What to change for several sites, where the number of bins would follow the units of each; or empty."""
        return (
            "" if self.bins is not None or self.edges else "give the estimator bins or edges, the same for all sites."
        )

    def _edges(self, source: Source, epsilon: float) -> Sequence[float]:
        """Return the inner edges of the bins, and raise unless all parameters are usable."""
        outcome = source.schema.outcome
        if not isinstance(outcome, Real):
            raise SchemaError(
                expected="an outcome that is a number",
                got=f"{outcome.name}, which has two values",
                hint="the distribution of a binary outcome is its risk: use DifferenceInMeans.",
            )
        levels = tuple(self.quantiles) if not isinstance(self.quantiles, str) else ()
        usable = all(is_number(level) and 0 < level < 1 for level in levels) and len(set(levels)) == len(levels) > 0
        whole = self.bins is None or (type(self.bins) is int and 2 <= self.bins <= 2 * _MOST_BINS)
        if not (usable and whole) or (self.bins is not None and len(self.edges) > 0):
            raise QueryError(
                expected=f"different quantiles between 0 and 1, and 2 to {2 * _MOST_BINS} bins, or edges instead",
                got=f"quantiles={self.quantiles!r}, bins={self.bins!r}, edges={self.edges!r}"[:200],
                hint="write for instance QuantileEffects(quantiles=[0.1, 0.5, 0.9]).",
            )
        if len(self.edges) > 0:
            inside = [edge for edge in self.edges if not is_number(edge) or outcome.low < edge < outcome.high]
            return inside or self.edges  # which the query refuses
        bins = self.bins or next((each for size, each in _BINS if source.n * epsilon <= size), _MOST_BINS)
        return [outcome.low + (outcome.high - outcome.low) * place / bins for place in range(1, bins)]


@dataclass(frozen=True)
class _Quantile:
    """One arm's quantile, with its interval by inverting that of the distribution function.

    Attributes:
        value: The quantile.
        low: The lower limit at 95 %.
        high: The upper limit.
        below: The number of bins below it, with a fraction.
        in_bin: The share of outcomes in its bin.
        slope: The quantile's change with that share, over the interval.
        bounded: Whether the interval reaches one of the outcome's bounds.
    """

    value: float
    low: float
    high: float
    below: float
    in_bin: float
    slope: float
    bounded: bool


@dataclass(frozen=True)
class _Arm:
    """One arm's distribution as released.

    Attributes:
        grid: The edges of the bins, the outcome's bounds included.
        shares: The share of outcomes below each inner edge, noise included.
        rising: The nearest rising shares within 0 and 1, at all edges, for inversion only.
        size: The number of units, at least 1.
        known: Whether that number is public.
        variance: The variance of the noise in each count.
    """

    grid: Array
    shares: Array
    rising: Array
    size: float
    known: bool
    variance: float

    @classmethod
    def of(cls, release: Release, source: Source, arm: int, grid: Array) -> "_Arm":
        bins = len(grid) - 1
        counts = np.array([release.value(f"count_{arm}_{place}") for place in range(bins)])
        if source.arm_sizes is not None:
            size = max(float(source.arm_sizes[arm]), 1.0)
            counts = counts + (size - counts.sum()) / bins  # least squares: all counts have noise of one size
        else:
            size = min(max(float(counts.sum()), 1.0), float(source.n))
        shares = np.cumsum(counts)[:-1] / size
        rising = np.array([0.0, *np.clip(_isotonic(shares), 0.0, 1.0), 1.0])
        variance = release.variance(f"count_{arm}_0")
        return cls(grid, shares, rising, size, source.arm_sizes is not None, variance)

    @property
    def bins(self) -> int:
        return len(self.grid) - 1

    @property
    def size_sd(self) -> float:
        """The standard deviation of the noise in the size."""
        return 0.0 if self.known else math.sqrt(self.variance * self.bins)

    def pull(self, share: float, below: float) -> float:
        """Return how far a count anywhere pulls a share down, because all shares are relative to the arm's size."""
        return below / self.bins if self.known else share

    def quantile(self, level: float) -> _Quantile:
        """Return a quantile with its interval."""
        below = float(self._inverted(level, np.arange(len(self.grid), dtype=float)))
        pull, whole = self.pull(level, below), min(int(below), self.bins - 1)
        part, in_bin = below - whole, float(self.rising[whole + 1] - self.rising[whole])
        weights = below * (1 - pull) ** 2 + (self.bins - below) * pull**2
        # Where in its bin an outcome is has no part in the estimate, and so adds nothing to its variance.
        sampling = level * (1 - level) - in_bin * part * (1 - part)
        reach = _Z * math.sqrt(max(sampling, 0.0) / self.size + self.variance * weights / self.size**2)
        low, high = (float(self._inverted(each, self.grid)) for each in (level - reach, level + reach))
        slope = (high - low) / (2 * reach)
        bounded = level - reach <= 0 or level + reach >= 1
        return _Quantile(float(self._inverted(level, self.grid)), low, high, below, in_bin, slope, bounded)

    def _inverted(self, level: float, grid: Array) -> float:
        """Return where the rising shares reach a level; in the middle where they stay at it."""
        rising = self.rising
        first, last = np.searchsorted(rising, level, "left"), np.searchsorted(rising, level, "right")
        if last > first:
            return float((grid[first] + grid[last - 1]) / 2)
        if first in (0, len(grid)):
            return float(grid[0] if first == 0 else grid[-1])
        part = (level - rising[first - 1]) / (rising[first] - rising[first - 1])
        return float(grid[first - 1] + part * (grid[first] - grid[first - 1]))


def _isotonic(values: Array) -> Array:
    """Return the nearest rising values by least squares, by pooling adjacent violators."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, count = float(value), 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before, several = blocks.pop()
            total, count = total + before, count + several
        blocks.append((total, count))
    return np.repeat([total / count for total, count in blocks], [count for _, count in blocks])


def _contrasts(
    levels: Sequence[float], arms: Sequence[_Arm], found: Sequence[Sequence[_Quantile]], release: Release
) -> JointEstimate:
    """Return the difference at each quantile with their joint error; slopes turn errors of shares into theirs."""
    sampling = np.zeros((len(levels), len(levels)))
    noise: list[JointNoise] = []
    at = np.array(levels)
    for arm, sign, own in zip(arms, (-1.0, 1.0), found, strict=True):
        slopes = np.array([each.slope for each in own])
        below = np.array([each.below for each in own])
        sampling += np.outer(slopes, slopes) * (_spread(at) - _within_bins(own)) / arm.size
        pulls = np.array([arm.pull(level, each.below) for level, each in zip(levels, own, strict=True)])
        for start, end in itertools.pairwise((0.0, *sorted(set(below.tolist())), float(arm.bins))):
            if end > start:
                derivative = ((below >= end) - pulls) / arm.size * -sign * slopes * math.sqrt(end - start)
                noise.append(_several(release, derivative, end - start))
    return JointEstimate(
        names=tuple(_named(level) for level in levels),
        values=tuple(one.value - other.value for other, one in zip(*found, strict=True)),
        sampling=tuple(tuple(map(float, line)) for line in sampling),
        noise=tuple(noise),
    )


def _spread(shares: Array) -> Array:
    """Return the covariance of shares of one unit below several points, given their expectations."""
    covariance: Array = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    return covariance


def _within_bins(found: Sequence[_Quantile]) -> Array:
    """Return what spreading outcomes evenly over their bin takes from that covariance."""
    whole = np.floor([each.below for each in found])
    parts = np.array([each.below for each in found]) - whole
    shares = np.array([each.in_bin for each in found])
    return np.where(np.equal.outer(whole, whole), shares * _spread(parts), 0.0)


def _several(release: Release, derivatives: Array, bins: float) -> JointNoise:
    """Return the noise of several bins together."""
    one = release.joint_noise("count_0_0", tuple(map(float, derivatives)))
    return replace(one, parts=max(round(bins), 1) * release.parts)


def _curves(arms: Sequence[_Arm], release: Release, source: Source) -> ArmCurves:
    """Return both distribution functions, at some of the edges."""
    count = arms[0].bins - 1
    several = min(count, _CURVE_POINTS)
    places = sorted({round((place + 1) * (count + 1) / (several + 1)) - 1 for place in range(several)})
    size = len(places)
    sampling, noise, values = np.zeros((2 * size, 2 * size)), [], []
    for at, arm in enumerate(arms):
        own = slice(at * size, (at + 1) * size)
        rising = arm.rising[1:-1][places]
        sampling[own, own] = _spread(rising) / arm.size
        values += [float(arm.shares[place]) for place in places]
        below = np.array(places) + 1.0
        pulls = np.array([arm.pull(share, each) for share, each in zip(rising, below, strict=True)])
        for start, end in itertools.pairwise((0.0, *below, float(arm.bins))):
            derivative = np.zeros(2 * size)
            derivative[own] = ((below >= end) - pulls) / arm.size * math.sqrt(end - start)
            noise.append(_several(release, derivative, end - start))
    labels = source.schema.treatment.labels_or_values
    grid = tuple(float(arms[0].grid[place + 1]) for place in places)
    names = tuple(f"{label}, below {format_number(edge)}" for label in labels for edge in grid)
    matrix = tuple(tuple(map(float, line)) for line in sampling)
    joint = JointEstimate(names, tuple(values), matrix, tuple(noise))
    return ArmCurves("distribution", source.schema.outcome.name, grid, labels, joint)


def _arm_sizes(arms: Sequence[_Arm], release: Release, labels: tuple[str, str]) -> JointEstimate:
    """Return both arms' sizes; they have noise where arms are private."""
    noise = [
        _several(release, np.array([float(at == place) for at in (0, 1)]) * math.sqrt(arm.bins), arm.bins)
        for place, arm in enumerate(arms)
        if not arm.known
    ]
    return JointEstimate(labels, (arms[0].size, arms[1].size), ((0.0, 0.0), (0.0, 0.0)), tuple(noise))


def _arm_notes(
    levels: Sequence[float], found: Sequence[Sequence[_Quantile]], labels: tuple[str, str], *, rehearsed: bool
) -> tuple[str, ...]:
    """Return each arm's quantiles with their own intervals, which need not be symmetric."""
    if rehearsed:
        return ()
    return tuple(
        f"{_named(level)}: "
        + ", ".join(
            f"{label} {format_number(own[place].value)}"
            f" ({format_number(own[place].low)} to {format_number(own[place].high)})"
            for label, own in zip(labels, found, strict=True)
        )
        for place, level in enumerate(levels)
    )


def _named(level: float) -> str:
    """Return a quantile's name.

    Example:
        >>> _named(0.5), _named(0.1)
        ('median', '0.1 quantile')
    """
    return "median" if level == 0.5 else f"{level:g} quantile"


def _refusal(level: float, found: Sequence[_Quantile]) -> str:
    """Return why there is no interval; empty where there is one."""
    if any(each.bounded for each in found):
        return f"in an arm this small the {_named(level)} may be anywhere down to or up to the outcome's bounds"
    return ""
