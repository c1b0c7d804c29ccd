"""The figures of a report, by the section that shows them."""

import importlib.util

from dpcausal.report.figures.budget import budget_alt, budget_plot
from dpcausal.report.figures.canvas import render
from dpcausal.report.figures.diagnostics import diagnosis_picture
from dpcausal.report.figures.forest import site_forest_alt, site_forest_plot
from dpcausal.report.figures.uncertainty import uncertainty_alt, uncertainty_plot, variance_shares
from dpcausal.report.inputs import ReportInputs
from dpcausal.report.section import Picture


def figures_of(report: ReportInputs) -> dict[str, tuple[Picture, ...]] | None:
    """What a report shows besides words, by section; None where nothing can be drawn because matplotlib is absent."""
    if importlib.util.find_spec("matplotlib") is None:
        return {"diagnostics": report.figures} if report.figures else None
    shown = {"diagnostics": (*map(diagnosis_picture, report.diagnoses), *report.figures)}
    effect, spent = report.effect, report.ledger_summary
    found = []
    if any(share.estimate is not None for share in effect.sites):
        found.append(render("Sites and pooled effect", site_forest_plot(effect), site_forest_alt(effect)))
    if variance_shares(effect):
        found.append(render("Where the uncertainty comes from", uncertainty_plot(effect), uncertainty_alt(effect)))
    shown["result"] = tuple(found)
    if spent is not None and spent.payments:
        shown["privacy"] = (render("Budget spent over time", budget_plot(spent), budget_alt(spent)),)
    return shown
