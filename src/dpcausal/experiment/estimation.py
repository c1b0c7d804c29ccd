"""From released sums of metrics to effects: means, ratios by the delta method, adjustment for a covariate.

Everything here is post-processing of one release.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Array
from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.experiment.metric import Metric
from dpcausal.joint_estimate import JointEstimate, JointNoise
from dpcausal.queries.metric_moments import half_range, middle_of
from dpcausal.release import Release
from dpcausal.source import Source

_SURE = 4.0
"""An arm is large enough, and a denominator far enough from 0, at so many standard deviations of its error."""

_LEAST_DENOMINATOR = 1e-6
"""What a denominator counts as that is nearer to 0, as a share of half its range; such a ratio has no interval."""

_KINDS = {
    "mean": "difference of means",
    "proportion": "difference of proportions",
    "ratio": "difference of ratios of sums, by the delta method",
}


@dataclass(frozen=True)
class _Sums:
    """Released sums by the name of their part, arm by arm, with the scale and the variance of their noise."""

    release: Release
    values: dict[str, Array]
    scales: dict[str, float]

    @classmethod
    def of(cls, release: Release, arms: int) -> "_Sums":
        known = dict(zip(release.names, zip(release.values, release.scales, strict=True), strict=True))
        parts = {name.replace("_0", "", 1): name for name in release.names if name.partition(" ")[0].endswith("_0")}
        found = {part: [known[name.replace("_0", f"_{arm}", 1)] for arm in range(arms)] for part, name in parts.items()}
        return cls(
            release,
            {part: np.array([value for value, _ in each]) for part, each in found.items()},
            {part: float(each[0][1] or 0.0) for part, each in found.items()},
        )

    def variance(self, part: str) -> float:
        """Return the variance of the noise in one sum."""
        return (2.0 if self.release.family == "laplace" else 1.0) * self.scales[part] ** 2

    def noise(self, part: str, slopes: Array) -> list[JointNoise]:
        """Return how the noise in a sum of each arm moves some numbers, given their derivatives by it, arm by arm."""
        family, parts = self.release.family, self.release.parts
        return [JointNoise(family, tuple((each * self.scales[part]).tolist()), parts) for each in slopes if each.any()]

    @property
    def sizes(self) -> Array:
        """The number of units in each arm, at least 1."""
        return np.maximum(self.values["size"], 1.0)


@dataclass(frozen=True)
class _Column:
    """The mean and the variance of one column in each arm.

    Attributes:
        name: The column.
        middle: The middle of its range; means are measured from there.
        means: Its mean in each arm, from the middle.
        variances: Its variance within each arm, corrected for the noise in the square of the mean.
    """

    name: str
    middle: float
    means: Array
    variances: Array


def _column(sums: _Sums, metric: Metric, place: int) -> _Column:
    column = metric.declared[place]
    half, sizes = half_range(column), sums.sizes
    means = sums.values[f"total of {column.name}"] / sizes
    noise = (sums.variance(f"total of {column.name}") + means**2 * sums.variance("size")) / sizes**2
    deficits = 0.0 if isinstance(column, Binary) else sums.values[f"deficit of {column.name}"] / sizes
    variances = np.clip(half**2 - deficits - means**2 + noise, 0.0, half**2)
    return _Column(column.name, middle_of(column), means, variances)


def metric_effects(release: Release, source: Source, metrics: Sequence[Metric]) -> tuple[Effect, ...]:
    """Return the effect of every arm against the reference, metric by metric."""
    treatment = source.schema.treatment
    labels = treatment.every_label
    sums = _Sums.of(release, len(labels))
    none = tuple((0.0,) * len(labels) for _ in labels)
    sizes = JointEstimate(labels, tuple(map(float, sums.sizes)), none, tuple(sums.noise("size", np.eye(len(labels)))))
    few = sums.sizes < max(_SURE * sums.variance("size") ** 0.5, 5.0)
    reference = treatment.compared_places[0]
    effects = []
    for metric in metrics:
        means, note = _arm_means(sums, metric, labels)
        for place in range(len(labels)):
            if place != reference:
                hidden = (
                    "an arm is so small that noise may hide all of its units" if few[[reference, place]].any() else ""
                )
                refused = hidden or _denominator(sums, metric, (reference, place))
                effects.append(_effect(metric, means, sizes, (reference, place), release, source, note, refused))
    return tuple(effects)


def _arm_means(sums: _Sums, metric: Metric, labels: tuple[str, ...]) -> tuple[JointEstimate, str]:
    """Return what a metric is in each arm, with its joint error, and what was done to it."""
    first, sizes = _column(sums, metric, 0), sums.sizes
    arms, others = np.eye(len(labels)), np.maximum(sizes - 1, 1.0)
    slopes: list[JointNoise] = []
    note = ""
    # How the metric of each arm moves with the mean of each column in each arm.
    values, moves = first.middle + first.means, [(first, arms)]
    sampling = np.diag(first.variances / others)
    if len(metric.columns) > 1:
        second = _column(sums, metric, 1)
        covariances = _covariances(sums, first, second)
        if metric.denominator is not None:
            below = second.middle + second.means
            least = _LEAST_DENOMINATOR * half_range(metric.denominator)
            below = np.where(np.abs(below) < least, least, below)
            values = values / below
            moves = [(first, np.diag(1 / below)), (second, np.diag(-values / below))]
        else:
            values, by_second, note, slopes = _adjusted(sums, first, second, covariances)
            moves = [(first, arms), (second, by_second)]
        crossed = moves[0][1] @ np.diag(covariances / others) @ moves[1][1].T
        squares = [by @ np.diag(column.variances / others) @ by.T for column, by in moves]
        sampling = squares[0] + squares[1] + crossed + crossed.T
    noise = [each for column, by in moves for each in sums.noise(f"total of {column.name}", by.T / sizes[:, None])]
    by_size = -sum(by.T * (column.means / sizes)[:, None] for column, by in moves)
    noise += [*sums.noise("size", np.asarray(by_size)), *slopes]
    lines = tuple(map(tuple, sampling.tolist()))
    return JointEstimate(labels, tuple(map(float, values)), lines, tuple(noise)), note


def _covariances(sums: _Sums, first: _Column, second: _Column) -> Array:
    """Return the covariance of two columns within each arm, no larger than their variances allow."""
    sizes = sums.sizes
    one, other = sorted((first.name, second.name))
    crossed = first.means * second.means * (1 - sums.variance("size") / sizes**2)
    most = np.sqrt(first.variances * second.variances)
    return np.clip(sums.values[f"product of {one} and {other}"] / sizes - crossed, -most, most)


def _adjusted(
    sums: _Sums, outcome: _Column, before: _Column, covariances: Array
) -> tuple[Array, Array, str, list[JointNoise]]:
    """Return arm means adjusted for a covariate, their derivatives by its means, a note, and the noise in the slope.

    The slope is the regression slope within arms, smaller where noise in the covariate's means would cost more than
    the adjustment gains: any slope is right in a randomised experiment, and this one gives the least variance.
    """
    sizes = sums.sizes
    units = sizes.sum()
    noise = sums.variance(f"total of {before.name}") * len(sizes) / units
    spread = float(sizes @ before.variances / units) + noise
    slope = float(sizes @ covariances / units) / spread if spread > 0 else 0.0
    shares = sizes / units
    apart = before.means - shares @ before.means
    values: Array = outcome.middle + outcome.means - slope * apart
    by_before: Array = -slope * (np.eye(len(sizes)) - shares)
    by_slope = -apart / (spread * units) if spread > 0 else np.zeros(len(sizes))
    one, other = sorted((outcome.name, before.name))
    lines = np.tile(by_slope, (len(sizes), 1))
    extra = sums.noise(f"product of {one} and {other}", lines)
    if f"deficit of {before.name}" in sums.values:
        extra += sums.noise(f"deficit of {before.name}", slope * lines)
    before_variance, residual = (
        float(sizes @ outcome.variances),
        float(sizes @ (outcome.variances - slope * covariances)),
    )
    gain = max(1 - residual / before_variance, 0.0) if before_variance > 0 else 0.0
    return values, by_before, f"adjusted for {before.name}, which explains {gain:.0%} of the variance", extra


def _denominator(sums: _Sums, metric: Metric, places: tuple[int, int]) -> str:
    """Return why a ratio has no interval: its denominator may be 0 in a compared arm. Empty where it has one."""
    if metric.denominator is None:
        return ""
    column, sizes = _column(sums, metric, 1), sums.sizes
    noise = sums.variance(f"total of {column.name}") + column.means**2 * sums.variance("size")
    errors = np.sqrt(noise / sizes**2 + column.variances / sizes)
    near = np.abs(column.middle + column.means) < _SURE * errors
    return (
        f"{column.name} may be 0 on average in an arm, so a ratio has no interval" if near[list(places)].any() else ""
    )


def _effect(  # noqa: PLR0913, PLR0917
    metric: Metric,
    means: JointEstimate,
    sizes: JointEstimate,
    places: tuple[int, int],
    release: Release,
    source: Source,
    note: str,
    refused: str,
) -> Effect:
    line = [float(place == places[1]) - float(place == places[0]) for place in range(len(means.names))]
    treatment = source.schema.treatment
    ratio = metric.denominator is not None
    return Effect(
        estimand=f"average treatment effect: {'ratio of sums' if ratio else 'mean'} with all treated minus with none",
        arms=(means.names[places[0]], means.names[places[1]]),
        outcome=metric.label,
        estimate=means.values[places[1]] - means.values[places[0]],
        sampling_sd=means.sampling_sd(line),
        noise=means.noise_along(line),
        n=source.n,
        method=_KINDS[metric.kind],
        guarantee=release.guarantee,
        assumptions=(
            "arms are comparable, as in a randomised experiment",
            NO_INTERFERENCE,
            "units whose arm is missing or not declared count in no arm"
            if treatment.undeclared is None
            else f"a missing or undeclared arm counted as {treatment.label(treatment.undeclared)}",
            *metric.missing_handling(source.schema),
        ),
        receipts=(release.receipt,),
        notes=(
            *([note] if note else []),
            "epsilon is that of all metrics of the experiment together",
            *source.caveats,
        ),
        no_interval=refused,
        arm_means=means,
        arm_sizes=sizes,
        quantity=f"ratio of sums {metric.label}" if ratio else "",
    )
