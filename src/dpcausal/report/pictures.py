"""The figures of a report, by the section that shows them."""

import importlib.util

from dpcausal.report.canvas import drawn
from dpcausal.report.diagnostics import diagnosis_picture
from dpcausal.report.facts import Facts
from dpcausal.report.section import Picture
from dpcausal.report.sites import sites_alt, sites_plot
from dpcausal.report.spending import spending_alt, spending_plot
from dpcausal.report.split import split_alt, split_plot, variance_shares


def pictures_of(report: Facts) -> dict[str, tuple[Picture, ...]] | None:
    """What a report shows besides words, by section; None where nothing can be drawn because matplotlib is absent."""
    if importlib.util.find_spec("matplotlib") is None:
        return {"diagnostics": report.figures} if report.figures else None
    shown = {"diagnostics": (*map(diagnosis_picture, report.diagnoses), *report.figures)}
    effect, spent = report.effect, report.spent
    found = []
    if any(share.estimate is not None for share in effect.sites):
        found.append(drawn("Sites and pooled effect", sites_plot(effect), sites_alt(effect)))
    if variance_shares(effect):
        found.append(drawn("Where the uncertainty comes from", split_plot(effect), split_alt(effect)))
    shown["result"] = tuple(found)
    if spent is not None and spent.payments:
        shown["privacy"] = (drawn("Budget spent over time", spending_plot(spent), spending_alt(spent)),)
    return shown
