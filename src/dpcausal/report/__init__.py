"""Results for people to look at. Made of effects, curves, studies and ledgers; nothing here can reach a table."""

from dpcausal.report.canvas import drawn
from dpcausal.report.figures import effect_plot, forest_plot
from dpcausal.report.report import Report
from dpcausal.report.section import Picture
from dpcausal.report.sites import sites_alt, sites_plot
from dpcausal.report.spending import spending_alt, spending_plot
from dpcausal.report.spent import Spent
from dpcausal.report.split import split_alt, split_plot
from dpcausal.report.widths import widths_alt, widths_plot

__all__ = [
    "Picture",
    "Report",
    "Spent",
    "drawn",
    "effect_plot",
    "forest_plot",
    "sites_alt",
    "sites_plot",
    "spending_alt",
    "spending_plot",
    "split_alt",
    "split_plot",
    "widths_alt",
    "widths_plot",
]
