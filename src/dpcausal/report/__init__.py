"""Results for people to look at. Made of effects, curves, studies and ledgers; nothing here can reach a table."""

from dpcausal.report.figures.budget import budget_alt, budget_plot
from dpcausal.report.figures.canvas import render
from dpcausal.report.figures.curves import effect_plot, forest_plot
from dpcausal.report.figures.forest import site_forest_alt, site_forest_plot
from dpcausal.report.figures.precision import precision_alt, precision_plot
from dpcausal.report.figures.uncertainty import uncertainty_alt, uncertainty_plot
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.report import Report
from dpcausal.report.section import Picture

__all__ = [
    "Picture",
    "Report",
    "LedgerSummary",
    "render",
    "effect_plot",
    "forest_plot",
    "site_forest_alt",
    "site_forest_plot",
    "budget_alt",
    "budget_plot",
    "uncertainty_alt",
    "uncertainty_plot",
    "precision_alt",
    "precision_plot",
]
