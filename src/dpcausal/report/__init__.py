"""Reports and figures. They are made from effects, curves, studies and ledgers; nothing here can reach a table."""

from dpcausal.report.figures.arm_curves import arm_curves_alt, arm_curves_plot
from dpcausal.report.figures.budget import budget_alt, budget_plot, precision_alt, precision_plot
from dpcausal.report.figures.canvas import render
from dpcausal.report.figures.curves import effect_plot, forest_plot
from dpcausal.report.figures.diagnostics import diagnosis_alt, love_plot, overlap_plot
from dpcausal.report.figures.effects import site_forest_alt, site_forest_plot, uncertainty_alt, uncertainty_plot
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.report import Report
from dpcausal.report.section import Picture

__all__ = [
    "LedgerSummary",
    "Picture",
    "Report",
    "arm_curves_alt",
    "arm_curves_plot",
    "budget_alt",
    "budget_plot",
    "diagnosis_alt",
    "effect_plot",
    "forest_plot",
    "love_plot",
    "overlap_plot",
    "precision_alt",
    "precision_plot",
    "render",
    "site_forest_alt",
    "site_forest_plot",
    "uncertainty_alt",
    "uncertainty_plot",
]
