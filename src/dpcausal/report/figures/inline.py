"""The inline figures of a report: the effect with its interval, and the sites of a pooled effect."""

import math
from statistics import NormalDist

from dpcausal.page.html_page import html_text
from dpcausal.page.interval_figure import IntervalFigure, legend, named_widths, part_name
from dpcausal.page.site_figure import SiteLine, site_svg
from dpcausal.report.section import InlineFigure, ReportInputs

_LEVEL = NormalDist().inv_cdf(0.975)
_MOST_SITES = 40
"""A forest plot of more sites shows those with the largest weights."""


def effect_figure(report: ReportInputs) -> tuple[InlineFigure, ...]:
    """Return the picture of the first page; none where there is no finite interval."""
    effect, scale, interval = report.effect, report.scale, report.interval
    if interval is None or not all(map(math.isfinite, interval)):
        return ()
    times = 100 if scale.risks else 1
    low, high = interval
    estimate = None if effect.rehearsed else effect.estimate
    shown = (low - effect.estimate, high - effect.estimate) if effect.rehearsed else interval
    label = f"95 % interval {scale.limits(interval)}"
    if effect.rehearsed:
        label = f"expect the estimate ± {scale.size((high - low) / 2)}"
    widths = named_widths(effect.width_by_source)
    planned = "" if report.planned is None else f"planned: ± {scale.number(report.planned)}"
    smallest = scale.given(report.smallest_worthwhile_effect) if report.smallest_worthwhile_effect else ""
    figure = IntervalFigure(
        interval=(times * shown[0], times * shown[1]),
        half_widths={name: times * width for name, width in widths.items()},
        label=label if estimate is None else f"{scale.number(estimate)}; {label}",
        alt=_alt(report, label, widths, planned, smallest),
        estimate=None if estimate is None else times * estimate,
        smallest=times * report.smallest_worthwhile_effect,
        planned=None if report.planned is None else times * report.planned,
        planned_label=planned,
        axis_title=_axis_title(report),
    )
    return (InlineFigure(figure.svg(), legend(widths, smallest, biased=effect.bias_bound > 0)),)


def _axis_title(report: ReportInputs) -> str:
    if report.scale.described:
        return "estimate"
    control, treated = report.effect.arms
    words = {"treated": treated, "control": control}
    outcome = report.study.schema.outcome if report.study and not report.effect.quantity else None
    unit = "percentage points" if report.scale.risks else getattr(outcome, "unit", None)
    return "{treated} minus {control}".format(**words) + (f", {unit}" if unit else "")


def _alt(report: ReportInputs, label: str, widths: dict[str, float], planned: str, smallest: str) -> str:
    scale = report.scale
    parts = [report.title, label]
    parts += [
        (f"half-width with {part_name(name, biased=report.effect.bias_bound > 0)}: {scale.number(widths[name])}")
        for name in widths
    ]
    parts += [planned] if planned else []
    parts += [f"smallest worthwhile effect, ± {smallest}"] if smallest else []
    return "; ".join(parts)


def site_figure(report: ReportInputs) -> tuple[InlineFigure, ...]:
    """Return a forest plot of the sites; none where no site has an estimate of its own."""
    effect, scale = report.effect, report.scale
    times = 100 if scale.risks else 1
    lines, known = [], [share for share in effect.sites if share.estimate is not None]
    many = len(known) > _MOST_SITES
    for share in sorted(known, key=lambda each: -(each.weight or 0.0))[:_MOST_SITES] if many else known:
        if share.estimate is not None:
            error = _LEVEL * (share.standard_error or 0.0)
            ends = (share.estimate - error, share.estimate + error)
            lines.append(
                _line(f"{share.site}: {scale.number(share.estimate)}", share.estimate, ends, times, share.weight or 0.0)
            )
    if not lines or effect.rehearsed:
        return ()
    ends = report.interval or (effect.estimate, effect.estimate)
    label = f"all sites: {scale.number(effect.estimate)}"
    lines.append(_line(label, effect.estimate, ends, times, None))
    alt = "Forest plot of the effects at {count} sites: {sites}".format(
        count=len(lines) - 1, sites="; ".join(line.label for line in lines)
    )
    svg = site_svg(lines, title=_axis_title(report), alt=alt)
    key = "Squares: sites, sized by weight, empty if left out. Diamond: pooled. Lines: 95 % intervals."
    key += f" Shown are the {_MOST_SITES} sites with the largest weights, of {len(known):,}." if many else ""
    return (InlineFigure(svg, f'<span class="quiet">{html_text(key)}</span>'),)


def _line(label: str, estimate: float, ends: tuple[float, float], times: int, weight: float | None) -> SiteLine:
    return SiteLine(label, times * estimate, times * ends[0], times * ends[1], weight)
