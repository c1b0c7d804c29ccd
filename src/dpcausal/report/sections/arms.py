"""Tables of the arms, of the effect on other scales, and of further contrasts and curves."""

from collections.abc import Iterator

from dpcausal.errors import RefusedError
from dpcausal.page.language import message
from dpcausal.report.section import ReportInputs, Table

_MEASURES = {
    "risk ratio": message("risk ratio"),
    "odds ratio": message("odds ratio"),
    "number needed to treat": message("number needed to treat"),
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
        units = say.number(sizes[name], 0) if name in sizes else ""
        lines.append((name, units, scale.level(value), scale.level(error)))
    heading = effect.quantity or (say("risk") if scale.risks else say("mean"))
    yield Table(
        say("Arms (noisy, as released)"), (say("arm"), say("units"), heading, say("standard error")), tuple(lines)
    )


def _measures(report: ReportInputs) -> Iterator[Table]:
    effect, say = report.effect, report.say
    ratios = (effect.risk_ratio, effect.odds_ratio, effect.number_needed_to_treat)
    lines = []
    for ask in ratios if report.scale.risks else (effect.relative_lift,):
        try:
            measure = ask()
        except RefusedError:
            continue
        shown = (measure.estimate, measure.low, measure.high)
        if measure.name == "relative lift":
            estimate, low, high = (say.percent(each, 1) for each in shown)
        else:
            decimals = 0 if measure.name == "number needed to treat" else 2
            estimate, low, high = (say.number(each, decimals) for each in shown)
        lines.append((say(_MEASURES[measure.name]), estimate, say("{low} to {high}", low=low, high=high)))
    if lines:
        head = (say("measure"), say("estimate"), say("95 % interval"))
        yield Table(say("The effect on other scales"), head, tuple(lines))


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
