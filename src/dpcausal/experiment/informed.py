"""What an earlier scorecard, which is public, says of metrics: caps, linearised ratios and shares of the budget."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from dpcausal.errors import StudyError
from dpcausal.experiment.metric import Earlier, Metric
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.queries.metric_moments import half_range
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.utils.documents import text_of

_WORTH_NARROWING = 0.5
"""Bounds become narrower where their range is at most this share of the earlier one."""


class Found(NamedTuple):
    """What a scorecard found of a metric.

    Attributes:
        noise: The privacy noise in its difference. The variance has about this much noise times half of the range.
    """

    mean: float
    variance: float
    noise: float


@dataclass(frozen=True)
class Known:
    """What an earlier scorecard, or its JSON, says of metrics.

    Attributes:
        rehearsed: Whether it was a rehearsal, which knows nothing.
        metrics: Its metrics.
        found: What it found of those with an interval.
    """

    rehearsed: bool
    metrics: tuple[str, ...]
    found: Mapping[str, Found]

    @classmethod
    def of(cls, scorecard: Scorecard | Path) -> Self:
        """Return what a scorecard says, or the file at a path that holds one as JSON."""
        if isinstance(scorecard, Scorecard):
            found = {effect.outcome: _found(effect) for effect in reversed(scorecard.effects) if not effect.no_interval}
            return cls(scorecard.rehearsed, tuple(scorecard.kinds), found)
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
            return cls(card["status"] != "estimated", tuple(dict.fromkeys(line["metric"] for line in lines)), found)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise StudyError(
                problem=f"{scorecard.name} is not the JSON of a scorecard",
                hint="take the file that scorecard.save or dpcausal experiment run wrote.",
            ) from None


def informed(
    metrics: Sequence[Metric], found: Mapping[str, Found], spread: float, *, gaussian: bool
) -> tuple[Metric, ...]:
    """Return metrics with what an earlier scorecard says of them, as `Experiment.informed_by` describes it."""
    alone = {each.in_table: each.label for each in reversed(metrics)}

    def below(metric: Metric) -> Found | None:
        """Return what is known of a ratio's denominator, from the metric that is its mean, whatever that is called."""
        return found.get(alone.get((metric.denominator,), "")) if metric.denominator is not None else None

    caps: dict[str, Real] = {}
    for each in metrics:
        one = each.in_table[0]
        if len(each.in_table) == 1 and isinstance(one, Real) and (known := found.get(each.label)):
            caps[one.name] = _capped(one, known, spread)
    shared = {column.name for each in metrics if len(each.in_table) > 1 for column in each.in_table}
    narrowed = [
        replace(each, column=caps[name])
        if len(each.in_table) == 1 and (name := each.column.name) in caps and name not in shared
        else _linearised(each, found.get(each.label), below(each), spread)
        for each in metrics
    ]
    ranges = [_range_in_sds(each, found.get(each.label), below(each)) for each in narrowed]
    sizes = [each for each in ranges if each]
    typical = sum(sizes) / len(sizes) if sizes else 1.0
    # Neyman's allocation: the sum of all variances, each in units of the metric's own, is least.
    power = 1.0 if gaussian else 2 / 3
    return tuple(
        replace(each, weight=each.weight * ((size or typical) / typical) ** power)
        for each, size in zip(narrowed, ranges, strict=True)
    )


def _found(effect: Effect) -> Found:
    sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True)) if effect.arm_sizes else {}
    parts = sum(1 / max(sizes.get(arm, 1.0), 1.0) for arm in effect.arms)
    return Found(effect.control_mean or 0.0, (effect.sampling_sd or 0.0) ** 2 / parts, effect.privacy_sd)


def _found_in(line: Mapping[str, Any], sizes: Mapping[str, float]) -> Found:
    """Return what a line of a scorecard's JSON found of its metric."""
    parts = sum(1 / max(float(sizes[arm]), 1.0) for arm in (line["control"], line["treated"]))
    return Found(float(line["control_mean"]), float(line["sampling_sd"]) ** 2 / parts, float(line["privacy_sd"]))


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
