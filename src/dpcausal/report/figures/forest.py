"""Sites and their pooled effect, as a figure."""

from statistics import NormalDist
from typing import TYPE_CHECKING

from dpcausal.effect import Effect
from dpcausal.report.figures.canvas import blank_figure, shorten
from dpcausal.text import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVEL = NormalDist().inv_cdf(0.975)


def site_forest_plot(effect: Effect) -> "Figure":
    """A forest plot: each site's own effect, a square as large as its weight, and below them the pooled one."""
    sites = [share for share in effect.sites if share.estimate is not None]
    figure, axes = blank_figure(7.0, 1.6 + 0.34 * len(sites))
    names = [*(shorten(share.site) for share in sites), "all sites"]
    for place, share in zip(range(len(sites), 0, -1), sites, strict=True):
        estimate, error = share.estimate or 0.0, _LEVEL * (share.standard_error or 0.0)
        axes.plot([estimate - error, estimate + error], [place, place], color="0.35", linewidth=1.2)
        filled = "white" if share.weight == 0 else "black"
        size = 4 + 8 * (share.weight or 0.0) ** 0.5
        axes.plot(estimate, place, "s", color="black", markerfacecolor=filled, markersize=size)
    if not effect.no_interval and effect.sampling_sd is not None:
        axes.plot(effect.interval(), [0, 0], color="black", linewidth=3)
    axes.plot(effect.estimate, 0, "D", color="black", markersize=9)
    axes.axvline(0.0, color="0.6", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(sites), -1, -1), names, parse_math=False)
    axes.set_ylim(-0.6, len(sites) + 0.6)
    axes.set_xlabel(
        f"effect on {shorten(effect.outcome)} of {shorten(effect.arms[1])}\n"
        "squares: sites, larger with more weight, white if left out\ndiamond: pooled; lines: 95 % intervals",
        parse_math=False,
    )
    return figure


def site_forest_alt(effect: Effect) -> str:
    """What a person sees in the figure."""
    sites = [
        f"{share.site} {format_number(share.estimate)}"
        + ("" if share.standard_error is None else f" give or take {format_number(_LEVEL * share.standard_error)}")
        for share in effect.sites
        if share.estimate is not None
    ]
    return f"Forest plot of the effects at {len(sites)} sites: {'; '.join(sites)}. Pooled: {format_number(effect.estimate)}."
