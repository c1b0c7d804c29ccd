"""From released sums of metrics to effects: means, ratios by the delta method, adjustment for a covariate.

Everything here is post-processing of one release.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import noise_sd
from dpcausal.experiment.held import Held
from dpcausal.experiment.metric import Earlier, Metric
from dpcausal.queries.metric_moments import MetricColumn, MetricMoments, half_range, middle_of
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.uncertainty.derivatives import Numbers, slopes, within
from dpcausal.uncertainty.joint_estimate import JointEstimate

_SURE = 4.0
"""An arm is large enough, and a denominator far enough from 0, at so many standard deviations of its error."""

_SURE_IN_SEGMENTS = 10.0
"""An arm of a segment is large enough at so many: among many segments noise decides which of the small ones pass."""

_LEAST_DENOMINATOR = 1e-6
"""What a denominator counts as that is nearer to 0, as a share of half its range; such a ratio has no interval."""

_WORSE = 0.95
"""Readers are told of a covariate without which the interval would be at most so wide, as a share."""

_KINDS = {
    "mean": "difference of means",
    "proportion": "difference of proportions",
    "ratio": "difference of ratios of sums, by the delta method",
}


@dataclass(frozen=True)
class _Sums:
    """Released sums by their kind and column, arm by arm: of all units, or of one segment."""

    release: Release
    arms: int
    segment: str = ""

    def of(self, kind: str, value: ValueOf, of: str = "") -> Numbers:
        """Return one sum of each arm; the total of clicks is `total_0 of clicks` and so on."""
        return np.array([value(self._name(kind, of, arm)) for arm in range(self.arms)])

    def sizes(self, value: ValueOf) -> Numbers:
        """Return the number of units in each arm, at least 1."""
        return within(self.of("size", value), 1.0, np.inf)

    def variance(self, kind: str, of: str = "") -> float:
        """Return the variance of the noise in one sum."""
        return self.release.variance(self._name(kind, of, 0))

    def _name(self, kind: str, of: str, arm: int) -> str:
        return " of ".join(each for each in (f"{kind}_{arm}", self.segment, of) if each)


class _Column(NamedTuple):
    """The mean and the variance of one column in each arm.

    Attributes:
        middle: The middle of its range; means are measured from there.
        means: Its mean in each arm, from the middle.
        variances: Its variance within each arm, corrected for the noise in the square of the mean.
    """

    name: str
    middle: float
    means: Numbers
    variances: Numbers


def _column(sums: _Sums, column: MetricColumn, value: ValueOf) -> _Column:
    half, sizes = half_range(column), sums.sizes(value)
    means = sums.of("total", value, column.name) / sizes
    noise = (sums.variance("total", column.name) + means**2 * sums.variance("size")) / sizes**2
    deficits = 0.0 if isinstance(column, Binary) else sums.of("deficit", value, column.name) / sizes
    variances = within(half**2 - deficits - means**2 + noise, 0.0, half**2)
    return _Column(column.name, middle_of(column), means, variances)


def metric_effects(
    release: Release, source: Source, metrics: Sequence[Metric], segment: str = ""
) -> tuple[Effect, ...]:
    """Return the effect of every arm against the reference, metric by metric: of all units, or of one segment."""
    treatment = source.schema.treatment
    labels = treatment.every_label
    sums = _Sums(release, len(labels), segment)
    sizes = release.estimates(labels, sums.sizes)
    sure = _SURE_IN_SEGMENTS if segment else _SURE
    few = sums.sizes(release.value) < max(sure * sums.variance("size") ** 0.5, 5.0)
    reference = treatment.compared_places[0]
    effects = []
    for metric in metrics:
        means, note = _arm_means(sums, metric, labels, source.schema)
        for place in range(len(labels)):
            if place != reference:
                hidden = (
                    "an arm is so small that noise may hide all of its units" if few[[reference, place]].any() else ""
                )
                refused = hidden or _denominator(sums, metric, (reference, place))
                effect = _effect(metric, means, sizes, (reference, place), release, source, note, refused)
                effects.append(_in_segment(_allowing(effect, metric, sums, [reference, place]), segment))
    return tuple(effects)


def _in_segment(effect: Effect, segment: str) -> Effect:
    """Return an effect that says whose it is."""
    if not segment:
        return effect
    return replace(
        effect,
        estimand=f"{effect.estimand}, among units with {segment}",
        assumptions=(*effect.assumptions, "the treatment changes nobody's segment"),
        notes=(*effect.notes, "units are those of the table: how many are in the segment is private"),
    )


def _error(means: JointEstimate) -> float:
    """Return the error of all arms together."""
    return math.sqrt(np.trace(means.covariance))


def _arm_means(sums: _Sums, metric: Metric, labels: tuple[str, ...], schema: Schema) -> tuple[JointEstimate, str]:
    """Return what a metric is in each arm, with its joint error, and what was done to it."""

    def formula(value: ValueOf) -> Numbers:
        columns = _columns(sums, metric, value)
        slope = _slope(sums, columns, value) if metric.covariate and not metric.earlier else 0.0
        return _values(metric, np.array([each.means for each in columns]), sums.sizes(value), slope)

    value = sums.release.value
    columns, sizes = _columns(sums, metric, value), sums.sizes(value)
    covariances = np.array([[each.variances for each in columns]] * len(columns))
    slope, note = 0.0, ""
    if len(columns) > 1:
        first, second = columns
        covariances[0, 0], covariances[1, 1] = first.variances, second.variances
        covariances[0, 1] = covariances[1, 0] = (
            _worst_covariances(first, second) if metric.earlier else _covariances(sums, first, second, value)
        )
    if metric.earlier:
        note = f"added up for each unit: {metric.residual_in_words}"
    elif metric.covariate:
        slope = _slope(sums, columns, value)
        before, left = sizes @ covariances[0, 0], sizes @ (covariances[0, 0] - slope * covariances[0, 1])
        gain = max(1 - left / before, 0.0) if before > 0 else 0.0
        note = f"adjusted for {metric.covariate.name}, which explains {gain:.0%} of the variance"
    # Errors of the slope average out: arms are comparable.
    by_means = slopes(lambda means: _values(metric, means, sizes, slope), [each.means for each in columns])
    sampling = np.einsum("aci,cdi,bdi->ab", by_means, covariances / np.maximum(sizes - 1, 1.0), by_means)
    means = sums.release.estimates(labels, formula, sampling)
    if (
        metric.covariate
        and not metric.earlier
        and (left := _error_alone(sums, metric, columns[0], schema) / _error(means)) < _WORSE
    ):
        note += f"; its own noise costs more: without it the interval would be about {1 - left:.0%} narrower"
    return means, note


def _error_alone(sums: _Sums, metric: Metric, outcome: _Column, schema: Schema) -> float:
    """Return the error of all arms together if the metric had no covariate, with the noise that this would have."""
    release, sizes = sums.release, sums.sizes(sums.release.value)
    query: MetricMoments = release.query  # type: ignore[assignment]
    alone = replace(query, metrics=[each[:1] if each == metric.columns else each for each in query.metrics])
    total, size = (
        (noise_sd(alone, schema, release.guarantee, name) / noise_sd(query, schema, release.guarantee, name)) ** 2
        for name in (f"total_0 of {outcome.name}", "size_0")
    )
    noise = total * sums.variance("total", outcome.name) + size * outcome.means**2 * sums.variance("size")
    return math.sqrt((outcome.variances / np.maximum(sizes - 1, 1.0) + noise / sizes**2).sum())


def _columns(sums: _Sums, metric: Metric, value: ValueOf) -> list[_Column]:
    return [_column(sums, column, value) for column in _averaged(metric)]


def _averaged(metric: Metric) -> tuple[MetricColumn, ...]:
    """Return the columns whose means a metric is made of: of a ratio the denominator too, which is another metric."""
    return (
        metric.declared
        if metric.earlier is None or metric.denominator is None
        else (*metric.declared, metric.denominator)
    )


def _values(metric: Metric, means: Numbers, sizes: Numbers, slope: Numbers) -> Numbers:
    """Return what a metric is in each arm, from the means of its columns, measured from their middles."""
    values = middle_of(metric.declared[0]) + means[0]
    if metric.denominator is not None:
        below = middle_of(metric.denominator) + means[1]
        least = _LEAST_DENOMINATOR * half_range(metric.denominator)
        ratio = values / np.where(np.abs(below.real) < least, within(below, least, np.inf), below)
        return ratio + (metric.earlier.slope if metric.earlier else 0.0)
    if metric.earlier is not None:
        return values + metric.earlier.slope * (metric.earlier.centre or 0.0)
    if metric.covariate is not None:
        return values - slope * (means[1] - sizes / sizes.sum() @ means[1])
    return values


def _covariances(sums: _Sums, first: _Column, second: _Column, value: ValueOf) -> Numbers:
    """Return the covariance of two columns within each arm, no larger than their variances allow."""
    sizes = sums.sizes(value)
    one, other = sorted((first.name, second.name))
    crossed = first.means * second.means * (1 - sums.variance("size") / sizes**2)
    most = np.sqrt(first.variances.real * second.variances.real)
    return within(sums.of("product", value, f"{one} and {other}") / sizes - crossed, -most, most)


def _worst_covariances(residual: _Column, below: _Column) -> Numbers:
    """Return the covariance within each arm at which a ratio has the largest error: the product is not released.

    It matters little where the ratio is near the earlier one, as the residual's mean is then near 0.
    """
    sign = -np.sign((residual.middle + residual.means) * (below.middle + below.means))
    return sign * np.sqrt(residual.variances * below.variances)


def _slope(sums: _Sums, columns: Sequence[_Column], value: ValueOf) -> Numbers:
    """Return the slope of a metric on its covariate within arms.

    It is smaller where noise in the covariate's means would cost more than the adjustment gains: any slope is right in
    a randomised experiment, and this one gives the least variance.
    """
    outcome, before = columns
    sizes = sums.sizes(value)
    units = sizes.sum()
    noise = sums.variance("total", before.name) * len(sizes) / units
    spread = sizes @ before.variances / units + noise
    return sizes @ _covariances(sums, outcome, before, value) / units / spread if spread.real > 0 else 0.0


def _denominator(sums: _Sums, metric: Metric, places: tuple[int, int]) -> str:
    """Return why a ratio has no interval: its denominator may be 0 in a compared arm. Empty where it has one."""
    if metric.denominator is None:
        return ""
    column, sizes = _column(sums, metric.denominator, sums.release.value), sums.sizes(sums.release.value)
    noise = sums.variance("total", column.name) + column.means**2 * sums.variance("size")
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
    ratio, what = metric.denominator is not None, _what(metric)
    return Effect(
        estimand=f"average treatment effect: {what} with all treated minus with none",
        arms=(means.names[places[0]], means.names[places[1]]),
        outcome=metric.label,
        estimate=means.values[places[1]] - means.values[places[0]],
        sampling_sd=means.sampling_sd(line),
        noise=means.noise_along(line),
        n=source.n,
        method="difference of means, linearised around an earlier release" if metric.earlier else _KINDS[metric.kind],
        guarantee=release.guarantee,
        assumptions=(
            "arms are comparable, as in a randomised experiment",
            NO_INTERFERENCE,
            "units whose arm is missing or not declared count in no arm"
            if treatment.undeclared is None
            else f"a missing or undeclared arm counted as {treatment.label(treatment.undeclared)}",
            *metric.missing_handling(source.schema),
            *_earlier_assumed(metric),
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
        is_risk_difference=metric.kind == "proportion",
        estimator={"name": "metric", "metric": metric.to_dict()},
    )


def _allowing(effect: Effect, metric: Metric, sums: _Sums, places: list[int]) -> Effect:
    """Return the effect of a linearised metric, allowing for what the bounds of its residual may have done to it."""
    if metric.earlier is None or effect.rehearsed:
        return effect
    found = _held(metric, metric.earlier, sums, places)
    return replace(
        effect.with_bias(found.left_out(effect.estimate)),
        no_interval=effect.no_interval or found.refusal,
        notes=(*effect.notes, *([found.note] if found.note else [])),
    )


def _held(metric: Metric, earlier: Earlier, sums: _Sums, places: list[int]) -> Held:
    """Return what released sums say of units that are beyond the bounds of a residual."""
    value, (one, other) = sums.release.value, metric.in_table
    held, sizes = _column(sums, metric.declared[0], value), sums.sizes(value)
    half, below = half_range(metric.declared[0]), 1.0
    square, noise_sd = 0.0, 0.0
    if metric.denominator is not None:
        column = _column(sums, metric.denominator, value)
        below = max(float(np.abs(column.middle + column.means)[places].min()), _LEAST_DENOMINATOR * column.middle)
        nearer = np.maximum(half - np.abs(held.means), half / 10) ** 2
        noise = np.sqrt(sums.variance("deficit", held.name)) / sizes / nearer
        at = max(places, key=lambda place: float((held.variances / nearer)[place]))
        square, noise_sd = float((held.variances / nearer)[at]), float(noise[at])
    if not {f"total_0 of {each.name}" for each in (one, other)} <= set(sums.release.names):
        return Held(square, noise_sd)
    first, second = _column(sums, one, value), _column(sums, other, value)
    apart = (first.means - earlier.slope * second.means - held.means)[places]
    variances = (
        sums.variance("total", one.name)
        + earlier.slope**2 * sums.variance("total", other.name)
        + sums.variance("total", held.name)
        + (apart.max() ** 2) * sums.variance("size")
    )
    moved_sd = float(np.sqrt((variances / sizes[places] ** 2).sum()))
    return Held(square, noise_sd, float(apart[1] - apart[0]) / below, moved_sd / below)


def _earlier_assumed(metric: Metric) -> tuple[str, ...]:
    """Return what a metric takes from an earlier release, in words."""
    if metric.earlier is None:
        return ()
    few = f"few units are beyond the bounds of {metric.residual_in_words}: these count as the bound"
    if metric.covariate is None:
        return (few,)
    still = f"the mean of {metric.covariate.name} is still {metric.earlier.centre:g}, as in the earlier release"
    return few, f"{still}: means and lifts rest on it, the difference does not"


def _what(metric: Metric) -> str:
    """Return what is estimated in each arm, in words, with the bounds that make it another mean."""
    if metric.residual is not None:
        held = f"{metric.residual_in_words},"
        return f"mean of {held}" if metric.denominator is None else f"ratio of sums, by the mean of {held}"
    if metric.denominator is not None:
        return "ratio of sums"
    column = metric.column
    return (
        "mean" if isinstance(column, Binary) else f"mean, with values held between {column.low:g} and {column.high:g},"
    )
