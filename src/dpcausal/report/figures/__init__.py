"""Figures of effects, curves, diagnoses and budgets."""

import importlib.util

from dpcausal.report.figures.arm_curves import arm_curves_alt, arm_curves_plot
from dpcausal.report.figures.budget import budget_alt, budget_plot
from dpcausal.report.figures.canvas import render
from dpcausal.report.figures.diagnostics import diagnosis_picture
from dpcausal.report.figures.inline import effect_figure, site_figure
from dpcausal.report.section import InlineFigure, Picture, ReportInputs

Figures = dict[str, tuple[InlineFigure | Picture, ...]]


def figures_of(report: ReportInputs) -> tuple[Figures, bool]:
    """Return the figures of each section, and whether some are missing because matplotlib is not installed."""
    figures: Figures = {"summary": effect_figure(report), "result": site_figure(report), "diagnostics": report.figures}
    effect, ledger = report.effect, report.ledger_summary
    curves = () if effect.rehearsed else effect.curves
    payments = ledger is not None and bool(ledger.payments)
    if importlib.util.find_spec("matplotlib") is None:
        return figures, bool(curves or report.diagnoses or payments)
    bands = not effect.no_interval
    drawn = tuple(
        render(each.quantity.capitalize(), arm_curves_plot(each, bands=bands), arm_curves_alt(each, bands=bands))
        for each in curves
    )
    figures["result"] += drawn
    figures["diagnostics"] = (*map(diagnosis_picture, report.diagnoses), *report.figures)
    if ledger is not None and payments:
        title = "Budget spent over time"
        figures["privacy"] = (render(title, budget_plot(ledger), budget_alt(ledger)),)
    return figures, False
