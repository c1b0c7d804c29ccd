"""Tables of the arms, of the effect on other scales, and of further contrasts and curves."""

import math
from collections.abc import Iterator

from dpcausal.errors import RefusedError
from dpcausal.page.numbers import number, percent
from dpcausal.report.section import ReportInputs, Table


def arm_tables(report: ReportInputs) -> tuple[Table, ...]:
    """Return what the same releases tell beyond the effect; all of it is free."""
    if report.effect.rehearsed:
        return ()
    return (*_arms(report), *_measures(report), *_contrasts(report))


def _arms(report: ReportInputs) -> Iterator[Table]:
    effect, scale = report.effect, report.scale
    means = effect.arm_means
    if means is None:
        return
    sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True)) if effect.arm_sizes else {}
    lines = []
    for place, (name, value) in enumerate(zip(means.names, means.values, strict=True)):
        error = means.standard_error([float(at == place) for at in range(len(means.names))])
        units = (number(sizes[name], 0) if name in sizes else "",) if sizes else ()
        lines.append((name, *units, scale.level(value), scale.level(error)))
    heading = effect.quantity or ("risk" if scale.risks else "mean")
    head = ("arm", *(("units",) if sizes else ()), heading, "standard error")
    yield Table("Arms (noisy, as released)", head, tuple(lines))


def _measures(report: ReportInputs) -> Iterator[Table]:
    effect = report.effect
    asked = ((effect.risk_ratio, number, 2), (effect.odds_ratio, number, 2))
    lines = []
    for ask, written, decimals in asked if report.scale.risks else ((effect.relative_lift, percent, 1),):
        try:
            measure = ask()
        except RefusedError:
            continue
        estimate, low, high = (written(each, decimals) for each in (measure.estimate, measure.low, measure.high))
        lines.append((measure.name, estimate, f"{low} to {high}"))
    lines += _number_needed(report) if report.scale.risks else []
    if lines:
        head = ("measure", "estimate", "95 % interval")
        yield Table("The effect on other scales", head, tuple(lines))


def _number_needed(report: ReportInputs) -> list[tuple[str, str, str]]:
    """Return the number needed to treat as a positive number, with the direction in words (Altman 1998)."""
    effect = report.effect
    if report.interval is None or not effect.estimate or not effect.is_risk_difference:
        return []
    measure = effect.number_needed_to_treat()
    fewer = effect.estimate < 0
    name = f"number needed to treat for one {effect.outcome} fewer"
    if not fewer:
        name = f"number needed to treat for one {effect.outcome} more"
    limits = "not bounded: the interval of the effect contains 0"
    if measure.low * measure.high > 0 and math.isfinite(measure.low):
        low, high = sorted((abs(measure.low), abs(measure.high)))
        limits = f"{number(low, 0)} to {number(high, 0)}"
    return [(name, number(abs(measure.estimate), 0), limits)]


def _contrasts(report: ReportInputs) -> Iterator[Table]:
    effect, scale = report.effect, report.scale
    contrasts = effect.contrasts
    if contrasts is None:
        return
    limits = [""] * len(contrasts.names)
    if not effect.no_interval:
        limits = [scale.limits(each) for each in contrasts.intervals(0.95)]
    lines = tuple(
        (name, scale.number(value), each)
        for name, value, each in zip(contrasts.names, contrasts.values, limits, strict=True)
    )
    head = ("contrast", "estimate", "95 % interval")
    yield Table("Contrasts, with 95 % intervals that hold together", head, lines)
