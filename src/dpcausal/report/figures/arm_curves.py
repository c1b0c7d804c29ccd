"""Figures of the arms' curves, such as survival over time or the distribution of the outcome."""

from itertools import cycle
from typing import TYPE_CHECKING

from dpcausal.page.numbers import percent
from dpcausal.report.figures.canvas import CONTROL, TREATED, blank_figure, shorten
from dpcausal.results.arm_curves import ArmCurves
from dpcausal.utils.text import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = (
    (CONTROL, "s", (0, (5, 2))),
    (TREATED, "o", "-"),
    ("#117733", "^", (0, (1, 1.5))),
    ("#882255", "D", (0, (6, 2, 1, 2))),
)
"""Colour, mark and dashes of each arm; colours differ for the colour-blind too, and marks and dashes without colour."""


def arm_curves_plot(curves: ArmCurves, *, bands: bool = True, level: float = 0.95) -> "Figure":
    """Draw each arm's curve at the points of its grid, with bands that hold for all points of all arms at once.

    Example:
        >>> from dpcausal import Binary, Real, Rehearsal, Schema, Survival, Treatment
        >>> schema = Schema(treatment=Treatment("drug"), outcome=Real("months", 0, 60), covariates=[Binary("died")])
        >>> effect = Survival(event="died", grid=5).estimate(Rehearsal(schema, n=2_000), epsilon=1.0)
        >>> figure = arm_curves_plot(effect.curves[0])  # figure.savefig("survival.png")
    """
    figure, axes = blank_figure(7.0, 3.8)
    for arm, (colour, mark, dashes) in zip(curves.arms, cycle(_STYLES), strict=False):
        if bands:
            axes.fill_between(curves.grid, *curves.band(arm, level), color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            curves.grid,
            curves.values(arm),
            color=colour,
            marker=mark,
            linestyle=dashes,
            markersize=5,
            linewidth=1.5,
            label=shorten(arm).replace("$", r"\$"),
        )
    about = (
        f"shaded: {percent(level)} bands for all points of all arms at once" if bands else "no bands, as no interval"
    )
    axes.set_xlabel(f"{shorten(curves.along)}\n{about}", parse_math=False)
    axes.set_ylabel(shorten(curves.quantity), parse_math=False)
    axes.legend(
        frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0, handlelength=4
    )
    return figure


def arm_curves_alt(curves: ArmCurves, *, bands: bool = True) -> str:
    """Return the alt text of `arm_curves_plot`: where each curve begins, is in the middle, and ends."""
    places = sorted({0, len(curves.grid) // 2, len(curves.grid) - 1})
    told = "; ".join(
        f"{arm}: " + ", ".join(f"{format_number(curves.values(arm)[at])} at {curves.grid[at]:g}" for at in places)
        for arm in curves.arms
    )
    kind = "a curve with a band" if bands else "a curve without a band"
    return f"{curves.quantity.capitalize()} along {curves.along}, {kind} for each arm. {told}."
