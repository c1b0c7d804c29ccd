"""How wide an interval would be at each epsilon, as a figure: for whoever plans."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from dpcausal.report.figures.canvas import blank_figure, shorten
from dpcausal.text import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Widths = Mapping[str, Sequence[tuple[float, float]]]
"""For each estimator, by name: epsilons, and the half width of the interval to expect at each."""

_STYLES = ("o-", "s--", "^:", "D-.", "v-", "P--", "X:", "*-.")


def precision_plot(widths: Widths, *, chosen: float | None = None, target_width: float | None = None) -> "Figure":
    """Half width against epsilon for several estimators.

    Args:
        widths: Epsilons and half widths, for each estimator.
        chosen: The study's epsilon, to be marked.
        target_width: The target half width, to be marked.

    Example:
        >>> figure = precision_plot({"difference in means": [(0.5, 0.4), (1, 0.22), (2, 0.15)]}, chosen=1)
    """
    figure, axes = blank_figure(7.0, 4.0)
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 (an extra)

    for style, (name, points) in zip(cycle(_STYLES), widths.items(), strict=False):
        epsilons, halves = zip(*sorted(points), strict=True)
        axes.plot(epsilons, halves, style, color="black", markerfacecolor="white", linewidth=1.2, label=shorten(name))
    if chosen is not None:
        axes.axvline(chosen, color="0.5", linewidth=0.9, linestyle=(0, (8, 3)), label="epsilon of the study")
    if target_width is not None:
        axes.axhline(target_width, color="0.5", linewidth=0.9, label="target")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # 0.5, not a power of ten
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("epsilon: more of it is less privacy")
    axes.set_ylabel("half width of the 95 % interval")
    for text in axes.legend(frameon=False, fontsize=9).get_texts():
        text.set_parse_math(False)  # names are strangers' words
    return figure


def precision_alt(widths: Widths) -> str:
    """What a person sees in the figure."""
    lines = []
    for name, points in widths.items():
        (least, wide), (most, narrow) = min(points), max(points)
        lines.append(
            f"{name} from {format_number(wide)} at epsilon {least:g} to {format_number(narrow)} at epsilon {most:g}"
        )
    return f"Half width of the 95 % interval against epsilon: {'; '.join(lines)}."
