"""Figures of effects, curves, diagnoses and budgets."""

import importlib.util

from dpcausal.report.figures.arm_curves import arm_curves_alt, arm_curves_plot
from dpcausal.report.figures.budget import budget_alt, budget_plot
from dpcausal.report.figures.canvas import render
from dpcausal.report.figures.diagnostics import diagnosis_picture
from dpcausal.report.figures.effects import (
    site_forest_alt,
    site_forest_plot,
    uncertainty_alt,
    uncertainty_plot,
    variance_shares,
)
from dpcausal.report.section import Picture, ReportInputs


def figures_of(report: ReportInputs) -> dict[str, tuple[Picture, ...]] | None:
    """Return the figures of each section of a report; None if there are none because matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return {"diagnostics": report.figures} if report.figures else None
    effect, ledger = report.effect, report.ledger_summary
    result = []
    if any(share.estimate is not None for share in effect.sites):
        result.append(
            render("Sites and pooled effect", site_forest_plot(effect, report.interval), site_forest_alt(effect))
        )
    bands = not effect.no_interval
    for curves in () if effect.rehearsed else effect.curves:
        figure, alt = arm_curves_plot(curves, bands=bands), arm_curves_alt(curves, bands=bands)
        result.append(render(curves.quantity.capitalize(), figure, alt))
    if variance_shares(effect):
        result.append(render("Sources of uncertainty", uncertainty_plot(effect), uncertainty_alt(effect)))
    figures = {
        "result": tuple(result),
        "diagnostics": (*map(diagnosis_picture, report.diagnoses), *report.figures),
    }
    if ledger is not None and ledger.payments:
        figures["privacy"] = (render("Budget spent over time", budget_plot(ledger), budget_alt(ledger)),)
    return figures
