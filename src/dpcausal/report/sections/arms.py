"""Tables of the arms, of the effect on other scales, and of further contrasts and curves."""

import math
from collections.abc import Iterator

from dpcausal.errors import RefusedError
from dpcausal.report.section import ReportInputs, Table
from dpcausal.utils.text import message

_MEASURES = {
    "risk ratio": message("risk ratio"),
    "odds ratio": message("odds ratio"),
    "relative lift": message("relative lift"),
}


def arm_tables(report: ReportInputs) -> tuple[Table, ...]:
    """Return what the same releases tell beyond the effect; all of it is free."""
    if report.effect.rehearsed:
        return ()
    return (*_arms(report), *_measures(report), *_contrasts(report))


def _arms(report: ReportInputs) -> Iterator[Table]:
    effect, say, scale = report.effect, report.say, report.scale
    means = effect.arm_means
    if means is None:
        return
    sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True)) if effect.arm_sizes else {}
    lines = []
    for place, (name, value) in enumerate(zip(means.names, means.values, strict=True)):
        error = means.standard_error([float(at == place) for at in range(len(means.names))])
        units = (say.number(sizes[name], 0) if name in sizes else "",) if sizes else ()
        lines.append((name, *units, scale.level(value), scale.level(error)))
    heading = say.recorded(effect.quantity) or (say("risk") if scale.risks else say("mean"))
    head = (say("arm"), *((say("units"),) if sizes else ()), heading, say("standard error"))
    yield Table(say("Arms (noisy, as released)"), head, tuple(lines))


def _measures(report: ReportInputs) -> Iterator[Table]:
    effect, say = report.effect, report.say
    lines = []
    for ask in (effect.risk_ratio, effect.odds_ratio) if report.scale.risks else (effect.relative_lift,):
        try:
            measure = ask()
        except RefusedError:
            continue
        shown = (measure.estimate, measure.low, measure.high)
        if measure.name == "relative lift":
            estimate, low, high = (say.percent(each, 1) for each in shown)
        else:
            estimate, low, high = (say.number(each, 2) for each in shown)
        lines.append((say(_MEASURES[measure.name]), estimate, say("{low} to {high}", low=low, high=high)))
    lines += _number_needed(report) if report.scale.risks else []
    if lines:
        head = (say("measure"), say("estimate"), say("95 % interval"))
        yield Table(say("The effect on other scales"), head, tuple(lines))


def _number_needed(report: ReportInputs) -> list[tuple[str, str, str]]:
    """Return the number needed to treat as a positive number, with the direction in words (Altman 1998)."""
    effect, say = report.effect, report.say
    if report.interval is None or not effect.estimate:
        return []
    measure = effect.number_needed_to_treat()
    fewer = effect.estimate < 0
    name = say("number needed to treat for one {outcome} fewer", outcome=effect.outcome)
    if not fewer:
        name = say("number needed to treat for one {outcome} more", outcome=effect.outcome)
    limits = say("not bounded: the interval of the effect contains 0")
    if measure.low * measure.high > 0 and math.isfinite(measure.low):
        low, high = sorted((abs(measure.low), abs(measure.high)))
        limits = say("{low} to {high}", low=say.number(low, 0), high=say.number(high, 0))
    return [(name, say.number(abs(measure.estimate), 0), limits)]


def _contrasts(report: ReportInputs) -> Iterator[Table]:
    effect, say, scale = report.effect, report.say, report.scale
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
    head = (say("contrast"), say("estimate"), say("95 % interval"))
    yield Table(say("Contrasts, with 95 % intervals that hold together"), head, lines)
