"""Tables of the arms, of the effect on other scales, and of further contrasts and curves."""

from collections.abc import Iterator

from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.errors import RefusedError
from dpcausal.report.section import ReportInputs, Table
from dpcausal.text import format_number


def arm_tables(report: ReportInputs) -> tuple[Table, ...]:
    """Return what the same releases tell beyond the effect; all of it is free."""
    effect = report.effect
    if effect.rehearsed:
        return ()
    binary = report.study is not None and isinstance(report.study.schema.outcome, Binary)
    heading = effect.quantity or ("risk" if binary else "mean")
    return (*_arms(effect, heading), *_measures(effect, binary=binary), *_contrasts(effect))


def _arms(effect: Effect, heading: str) -> Iterator[Table]:
    means = effect.arm_means
    if means is None:
        return
    sizes = dict(zip(effect.arm_sizes.names, effect.arm_sizes.values, strict=True)) if effect.arm_sizes else {}
    lines = []
    for place, (name, value) in enumerate(zip(means.names, means.values, strict=True)):
        error = means.standard_error([float(at == place) for at in range(len(means.names))])
        units = f"{sizes[name]:,.0f}" if name in sizes else ""
        lines.append((name, units, format_number(value), format_number(error)))
    yield Table("Arms (noisy, as released)", ("arm", "units", heading, "standard error"), tuple(lines))


def _measures(effect: Effect, *, binary: bool) -> Iterator[Table]:
    ratios = (effect.risk_ratio, effect.odds_ratio, effect.number_needed_to_treat)
    asked = ratios if binary else (effect.relative_lift,)
    lines = []
    for ask in asked:
        try:
            measure = ask()
        except RefusedError:
            continue
        limits = f"{format_number(measure.low)} to {format_number(measure.high)}"
        lines.append((measure.name, format_number(measure.estimate), limits))
    if lines:
        yield Table("The effect on other scales", ("measure", "estimate", "95 % interval"), tuple(lines))


def _contrasts(effect: Effect) -> Iterator[Table]:
    contrasts = effect.contrasts
    if contrasts is None:
        return
    limits = [""] * len(contrasts.names)
    if not effect.no_interval:
        limits = [f"{format_number(low)} to {format_number(high)}" for low, high in contrasts.intervals(0.95)]
    lines = tuple(
        (name, format_number(value), each)
        for name, value, each in zip(contrasts.names, contrasts.values, limits, strict=True)
    )
    yield Table("Contrasts, with 95 % intervals that hold together", ("contrast", "estimate", "interval"), lines)
