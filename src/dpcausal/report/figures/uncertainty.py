"""Where an interval's width comes from, as a figure."""

import math
from typing import TYPE_CHECKING

from dpcausal.effect import Effect
from dpcausal.interval import half_width
from dpcausal.report.figures.canvas import blank_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HATCHES = {"sampling": "", "privacy noise": "///", "differences between sites": "..."}
_GREYS = {"sampling": "0.45", "privacy noise": "white", "differences between sites": "0.85"}


def variance_shares(effect: Effect) -> dict[str, float]:
    """The share of the estimate's variance that each source of error has; empty where sampling error is unknown."""
    if effect.sampling_sd is None or not effect.standard_error:
        return {}
    whole = effect.standard_error**2
    parts = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    if effect.between_sd:
        parts["differences between sites"] = effect.between_sd
    return {name: sd**2 / whole for name, sd in parts.items()}


def privacy_share(effect: Effect) -> float:
    """How much narrower, as a share, the 95 % interval would be without privacy noise."""
    low, high = effect.interval()
    without = half_width(math.hypot(effect.sampling_sd or 0.0, effect.between_sd), (), 0.95)
    return 1 - 2 * without / (high - low) if high > low else 0.0


def uncertainty_plot(effect: Effect) -> "Figure":
    """One bar, as long as the variance, in parts."""
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
    """What a person sees in the figure."""
    parts = ", ".join(f"{name} {share:.0%}" for name, share in variance_shares(effect).items())
    return f"Bar of the estimate's variance in parts: {parts}."
