"""Results for people to look at. Made of effects and curves only; nothing here can reach a table."""

from dpcausal.report.figures import effect_plot, forest_plot

__all__ = ["effect_plot", "forest_plot"]
