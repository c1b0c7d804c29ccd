"""What an earlier scorecard, which is public, says of metrics: caps, linearised ratios and shares of the budget."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Self

from dpcausal.errors import StudyError
from dpcausal.experiment.metric import Earlier, Metric
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.queries.metric_moments import half_range, middle_of
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.utils.documents import text_of

_WORTH_NARROWING = 0.5
"""Bounds become narrower where their range is at most this share of the earlier one."""

_MOST_NOISE = 1.5
"""No metric has more than so many times the noise that it would have where the sum of all variances is least."""

_WORTH_AIMING = 0.5
"""Metrics are brought to the aim where so large a share of their weight can be, since the others pay for it."""

_SAFE = 0.95
"""The share of the noise variance of an aim that is planned for: the earlier scorecard's numbers are not exact."""


class Found(NamedTuple):
    """What a scorecard found of a metric.

    Attributes:
        noise: The privacy noise in its difference. The variance has about this much noise times half of the range.
        arm: The number of units in each arm; of arms of different sizes, the one at which noise and sampling error of
            the difference are in the same proportion.
    """

    mean: float
    variance: float
    noise: float
    arm: float


@dataclass(frozen=True)
class Known:
    """What an earlier scorecard, or its JSON, says of metrics.

    Attributes:
        rehearsed: Whether it was a rehearsal, which knows nothing.
        metrics: Its metrics.
        found: What it found of those with an interval.
        units: The number of units in all arms.
    """

    rehearsed: bool
    metrics: tuple[str, ...]
    found: Mapping[str, Found]
    units: float

    @classmethod
    def of(cls, scorecard: Scorecard | Path) -> Self:
        """Return what a scorecard says, or the file at a path that holds one as JSON."""
        if isinstance(scorecard, Scorecard):
            found = {effect.outcome: _found(effect) for effect in reversed(scorecard.effects) if not effect.no_interval}
            arms = scorecard.effects[0].arm_sizes
            return cls(scorecard.rehearsed, tuple(scorecard.kinds), found, sum(arms.values) if arms else 0.0)
        if not isinstance(scorecard, Path):
            raise StudyError(
                expected="a Scorecard, or the Path of one as JSON",
                got=repr(scorecard)[:100],
                hint='write informed_by(Path("checkout.json")).',
            )
        try:
            card = json.loads(text_of("a scorecard", scorecard))
            lines = card["comparisons"]
            sizes = dict(zip(card["sample_ratio"]["arms"], card["sample_ratio"]["sizes"], strict=True))
            found = {line["metric"]: _found_in(line, sizes) for line in reversed(lines) if not line["no_interval"]}
            metrics = tuple(dict.fromkeys(line["metric"] for line in lines))
            return cls(card["status"] != "estimated", metrics, found, float(sum(sizes.values())))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise StudyError(
                problem=f"{scorecard.name} is not the JSON of a scorecard",
                hint="take the file that scorecard.save or dpcausal experiment run wrote.",
            ) from None


def informed(metrics: Sequence[Metric], found: Mapping[str, Found], spread: float) -> tuple[Metric, ...]:
    """Return metrics with the caps and the linearised ratios that an earlier scorecard gives them."""
    caps: dict[str, Real] = {}
    for each in metrics:
        one = each.in_table[0]
        if len(each.in_table) == 1 and isinstance(one, Real) and (known := found.get(each.label)):
            caps[one.name] = _capped(one, known, spread)
    shared = {column.name for each in metrics if len(each.in_table) > 1 for column in each.in_table}
    return tuple(
        replace(each, column=caps[name])
        if len(each.in_table) == 1 and (name := each.column.name) in caps and name not in shared
        else _linearised(each, found.get(each.label), _below(each, metrics, found), spread)
        for each in metrics
    )


@dataclass(frozen=True)
class ExpectedNoise:
    """The noise to expect of an experiment.

    Attributes:
        release: A rehearsed release of it: its noise is public.
        shares: The share of the budget that each column has there.
        more: How many times as many units it has as the earlier one.
    """

    release: Release
    shares: Mapping[str, Fraction]
    more: float

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian: its variance is in proportion to 1 / share, otherwise to 1 / share²."""
        return self.release.family == "gaussian"


def shared(
    metrics: Sequence[Metric],
    earlier: Sequence[Metric],
    found: Mapping[str, Found],
    noise: ExpectedNoise,
    within: float,
) -> tuple[Metric, ...]:
    """Return metrics with shares of the budget as their weights, as `Experiment.informed_by` describes them.

    Args:
        metrics: The metrics, as `informed` returns them.
        earlier: The metrics before.
    """
    below = [_below(each, metrics, found) for each in metrics]
    ranges = [_range_in_sds(each, found.get(each.label), at) for each, at in zip(metrics, below, strict=True)]
    sizes = [each for each in ranges if each]
    typical = sum(sizes) / len(sizes) if sizes else 1.0
    # Neyman's allocation: the sum of all variances, each in units of the metric's own, is least.
    power = 1.0 if noise.gaussian else 2 / 3
    fair = [each.weight * ((size or typical) / typical) ** power for each, size in zip(metrics, ranges, strict=True)]
    whole = sum(fair)
    needs = [
        math.inf if size is None else _need(each, before, found[each.label], at, noise, within)
        for each, before, at, size in zip(metrics, earlier, below, ranges, strict=True)
    ]
    least = _MOST_NOISE ** (-2 if noise.gaussian else -1)
    given = shares([each / whole for each in fair], needs, [each.weight for each in metrics], least)
    return tuple(replace(each, weight=share * len(metrics)) for each, share in zip(metrics, given, strict=True))


def shares(fair: Sequence[float], needs: Sequence[float], weights: Sequence[float], least: float) -> list[float]:
    """Return shares that add up to 1, at which as much weight as possible has the share that it needs.

    Every metric has first the least part of its fair share. What needs little more for its weight comes before what
    needs much, and has just what it needs. What is left is for those that do not have it, in proportion to fair shares;
    where all have it, for all, in proportion to what they have. Shares are fair where less than half of the weight can
    have what it needs.

    Example:
        >>> shares([0.25, 0.75], [0.5, math.inf], [1.0, 1.0], 0.25)
        [0.5, 0.5]
        >>> shares([0.25, 0.75], [math.inf, math.inf], [1.0, 1.0], 0.25)
        [0.25, 0.75]
        >>> shares([0.5, 0.5], [0.5, 0.25], [1.0, 1.0], 0.25)
        [0.625, 0.375]
    """
    found = [least * each for each in fair]
    more = [max(need - share, 0.0) for need, share in zip(needs, found, strict=True)]
    left, rest = 1.0 - sum(found), []
    for at in sorted(range(len(fair)), key=lambda at: more[at] / weights[at]):
        if more[at] <= left:
            found[at], left = found[at] + more[at], left - more[at]
        else:
            rest.append(at)
    if sum(weights[at] for at in rest) > (1 - _WORTH_AIMING) * sum(weights):
        return list(fair)
    rest = rest or list(range(len(fair)))
    whole = sum(fair[at] for at in rest)
    for at in rest:
        found[at] += left * fair[at] / whole
    return found


def _need(  # noqa: PLR0913, PLR0917
    metric: Metric, earlier: Metric, known: Found, below: Found | None, noise: ExpectedNoise, within: float
) -> float:
    """Return the share at which noise makes an interval no more than so much wider; infinite if none is enough.

    The standard deviation is taken as small as the noise of the earlier scorecard lets it be.
    """
    column, scale = metric.declared[0], abs(below.mean) if below else 1.0
    far = 0.0 if below else known.mean - middle_of(column)  # a ratio's residual is about 0
    if metric.earlier and metric.covariate:
        far -= metric.earlier.slope * (metric.earlier.centre or 0.0)
    half = half_range(earlier.declared[0])
    if metric.denominator and below:
        half = (half_range(metric.column) + abs(known.mean) * half_range(metric.denominator)) / scale
    least = max(known.variance - half * known.noise, known.variance / 4)
    allowed = _SAFE * within * (2 + within) * least * known.arm * noise.more * scale**2
    allowed -= far**2 * noise.release.variance("size_0")
    if not allowed > 0:
        return math.inf
    # The second column of a covariate brings about as much noise as the first.
    variance = noise.release.variance(f"total_0 of {column.name}") * len(metric.declared)
    power = 1.0 if noise.gaussian else 0.5
    return float(noise.shares[column.name]) * math.pow(variance / allowed, power) * len(metric.declared)


def _below(metric: Metric, metrics: Sequence[Metric], found: Mapping[str, Found]) -> Found | None:
    """Return what is known of a ratio's denominator, from the metric that is its mean, whatever that is called."""
    if metric.denominator is None:
        return None
    alone = {each.in_table: each.label for each in reversed(metrics)}
    return found.get(alone.get((metric.denominator,), ""))


def _found(effect: Effect) -> Found:
    sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True)) if effect.arm_sizes else {}
    of_arms = [sizes.get(arm, 1.0) for arm in effect.arms]
    return _found_of(of_arms, effect.control_mean or 0.0, effect.sampling_sd or 0.0, effect.privacy_sd)


def _found_in(line: Mapping[str, Any], sizes: Mapping[str, float]) -> Found:
    """Return what a line of a scorecard's JSON found of its metric."""
    of_arms = [float(sizes[arm]) for arm in (line["control"], line["treated"])]
    return _found_of(of_arms, *(float(line[key]) for key in ("control_mean", "sampling_sd", "privacy_sd")))


def _found_of(sizes: Sequence[float], mean: float, sampling_sd: float, noise: float) -> Found:
    parts = [1 / max(size, 1.0) for size in sizes]
    return Found(mean, sampling_sd**2 / sum(parts), noise, sum(parts) / sum(part**2 for part in parts))


def _sd(found: Found, half: float) -> float:
    """Return a standard deviation that is not too small because of noise in the variance."""
    return math.sqrt(found.variance + half * found.noise)


def _capped(column: Real, found: Found, spread: float) -> Real:
    """Return a column between bounds at most so many standard deviations from the mean.

    They stay as they are unless the range at least halves: a standard deviation between bounds is too small, so caps
    would otherwise shrink with each scorecard.
    """
    far = spread * _sd(found, half_range(column))
    missing = found.mean if column.missing is None else column.missing
    low, high = max(column.low, min(found.mean - far, missing)), min(column.high, max(found.mean + far, missing))
    narrower = 0 < high - low <= _WORTH_NARROWING * (column.high - column.low)
    return replace(column, low=low, high=high) if narrower else column


def _linearised(metric: Metric, known: Found | None, below: Found | None, spread: float) -> Metric:
    """Return a ratio linearised around the earlier one, where the mean of its denominator is known too."""
    if metric.denominator is None or metric.earlier is not None or known is None or below is None:
        return metric
    if not abs(below.mean) > spread * below.noise:
        return metric
    half = (half_range(metric.column) + abs(known.mean) * half_range(metric.denominator)) / abs(below.mean)
    bound = min(spread * _sd(known, half), 2 * half) * abs(below.mean)
    return replace(metric, earlier=Earlier(slope=known.mean, low=-bound, high=bound))


def _range_in_sds(metric: Metric, known: Found | None, below: Found | None) -> float | None:
    """Return half of what a unit can add to a metric in its standard deviations; None where they are not known."""
    if known is None or (metric.denominator is not None and (metric.earlier is None or below is None)):
        return None
    half = half_range(metric.declared[0])
    if below is not None:
        half /= abs(below.mean)
    # A second column takes half of the metric's share.
    return half * math.sqrt(len(metric.declared)) / _sd(known, half)
