"""Figures of an effect: the sources of its uncertainty, and its sites."""

from statistics import NormalDist
from typing import TYPE_CHECKING

from dpcausal.report.figures.canvas import blank_figure, shorten
from dpcausal.results.effect import Effect
from dpcausal.utils.text import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HATCHES = {"sampling": "", "privacy noise": "///", "between sites": "..."}
_GREYS = {"sampling": "0.45", "privacy noise": "white", "between sites": "0.85"}
_LEVEL = NormalDist().inv_cdf(0.975)


def variance_shares(effect: Effect) -> dict[str, float]:
    """Return each source's share of the estimate's variance; nothing where the sampling error is unknown."""
    if effect.sampling_sd is None or not effect.standard_error:
        return {}
    total = effect.standard_error**2
    parts = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    if effect.between_sd:
        parts["between sites"] = effect.between_sd
    return {name: sd**2 / total for name, sd in parts.items()}


def uncertainty_plot(effect: Effect) -> "Figure":
    """Draw the estimate's variance as one bar, divided into its sources."""
    figure, axes = blank_figure(7.0, 1.3)
    start = 0.0
    for name, share in variance_shares(effect).items():
        label = f"{name} {share:.0%}"
        axes.barh(0, share, left=start, color=_GREYS[name], edgecolor="black", hatch=_HATCHES[name], label=label)
        start += share
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 % of the variance"])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderpad=0)
    return figure


def uncertainty_alt(effect: Effect) -> str:
    """Return the alt text of `uncertainty_plot`."""
    parts = ", ".join(f"{name} {share:.0%}" for name, share in variance_shares(effect).items())
    return f"Bar of the estimate's variance by source: {parts}."


def site_forest_plot(effect: Effect, interval: tuple[float, float] | None = None) -> "Figure":
    """Draw a forest plot: each site's estimate, a square sized by its weight, and below them the pooled effect.

    Args:
        interval: Its 95 % interval, if it was computed already.
    """
    sites = [share for share in effect.sites if share.estimate is not None]
    figure, axes = blank_figure(7.0, 1.6 + 0.34 * len(sites))
    names = [*(shorten(share.site) for share in sites), "all sites"]
    for place, share in zip(range(len(sites), 0, -1), sites, strict=True):
        estimate, error = share.estimate or 0.0, _LEVEL * (share.standard_error or 0.0)
        axes.plot([estimate - error, estimate + error], [place, place], color="0.35", linewidth=1.2)
        filled = "white" if share.weight == 0 else "black"
        size = 4 + 8 * (share.weight or 0.0) ** 0.5
        axes.plot(estimate, place, "s", color="black", markerfacecolor=filled, markersize=size)
    if not effect.no_interval:
        axes.plot(interval or effect.interval(), [0, 0], color="black", linewidth=3)
    axes.plot(effect.estimate, 0, "D", color="black", markersize=9)
    axes.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(sites), -1, -1), names, parse_math=False)
    axes.set_ylim(-0.6, len(sites) + 0.6)
    axes.set_xlabel(
        f"effect of {shorten(effect.arms[1])} on {shorten(effect.outcome)}\n"
        "squares: sites, sized by weight, white if left out\ndiamond: pooled; lines: 95 % intervals",
        parse_math=False,
    )
    return figure


def site_forest_alt(effect: Effect) -> str:
    """Return the alt text of `site_forest_plot`."""
    sites = [
        f"{share.site} {format_number(share.estimate)}"
        + ("" if share.standard_error is None else f" ± {format_number(_LEVEL * share.standard_error)}")
        for share in effect.sites
        if share.estimate is not None
    ]
    pooled = format_number(effect.estimate)
    return f"Forest plot of the effects at {len(sites)} sites: {'; '.join(sites)}. Pooled: {pooled}."
