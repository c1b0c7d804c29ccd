"""Figures: what a release costs as rows, covariates, strata or threads become more. All read in black and white."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.pictures import BLUE, GREEN, GREY, INK, STYLE, VERMILLION, keep

_QUERIES = {
    "arm_totals": ("arm totals", {"color": INK, "marker": "o"}),
    "strata": ("100 strata", {"color": BLUE, "linestyle": "--", "marker": "s", "markerfacecolor": "white"}),
    "moments": ("second moments of 20 covariates", {"color": GREEN, "linestyle": "-.", "marker": "^"}),
}
_WORKS = {
    "release": ("release", {"color": BLUE, "marker": "o"}),
    "plain": (
        "by hand: SQL, every SUM(x * y), as columns stand",
        {"color": VERMILLION, "linestyle": "--", "marker": "v"},
    ),
    "fixed": ("by hand: SQL, the same integers", {"color": VERMILLION, "linestyle": "--", "marker": "v"}),
    "arrow": (
        "by hand: Arrow batches into numpy",
        {"color": GREY, "linestyle": ":", "marker": "s", "markerfacecolor": "white"},
    ),
}
_NANOSECONDS = "processor time of a release,\nnanoseconds a row"


def draw(result: Mapping[str, Any], folder: Path) -> None:
    """Draw a figure for each part that was measured, as SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    pictures = {"rows": _rows, "covariates": _covariates, "strata": _strata, "threads": _threads}
    with plt.rc_context(STYLE):
        for part, picture in pictures.items():
            if part in result:
                figure, axes = plt.subplots(figsize=(7.2, 4.4))
                picture(axes, result[part])
                axes.grid(visible=True, which="major", color="#ececec")
                axes.legend(frameon=False, fontsize=10)
                figure.tight_layout()
                keep(figure, folder / f"scale_{part}.svg")
                plt.close(figure)


def _rows(axes: Axes, found: Mapping[str, Any]) -> None:
    """Draw what a row costs."""
    for query, (label, look) in _QUERIES.items():
        lines = [line for line in found["lines"] if line["query"] == query]
        _curve(axes, [line["rows"] for line in lines], [line["cpu_nanoseconds_a_row"] for line in lines], label, look)
    for place, line in enumerate(found["projected"]):
        ends, each = [line["projected_from"], line["rows"]], line["cpu"] / line["rows"] * 1e9
        axes.plot(ends, [each, each], color=GREY, linestyle=":", label=None if place else "projected, not measured")
    _logarithmic(axes)
    axes.set_xlabel("rows")
    axes.set_ylabel(_NANOSECONDS)


def _covariates(axes: Axes, found: Mapping[str, Any]) -> None:
    """Draw what more covariates cost."""
    _works(axes, found, "covariates")
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)
    axes.set_xticks([line["covariates"] for line in found["lines"]])
    axes.set_xlabel("covariates")


def _strata(axes: Axes, found: Mapping[str, Any]) -> None:
    """Draw what more strata cost."""
    _works(axes, found, "strata")
    _logarithmic(axes)
    axes.set_xlabel("strata")


def _threads(axes: Axes, found: Mapping[str, Any]) -> None:
    """Draw what more threads save."""
    for query, (label, look) in _QUERIES.items():
        lines = [line for line in found["lines"] if line["query"] == query]
        numbers = [line["threads"] for line in lines]
        _curve(axes, numbers, [lines[0]["wall"] / line["wall"] for line in lines], label, look)
        axes.set_xticks(numbers)
    most = max(line["threads"] for line in found["lines"])
    line: dict[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (6, 2, 1, 2)), "zorder": 0}
    axes.plot([1, most], [1, most], label="as many times as fast as threads", **line)
    axes.set_ylim(0, 1.05 * most)
    axes.set_xlabel("threads of the engine")
    axes.set_ylabel("times as fast as with one thread, on the wall")


def _works(axes: Axes, found: Mapping[str, Any], along: str) -> None:
    for work, (label, look) in _WORKS.items():
        lines = [line for line in found["lines"] if work in line["costs"]]
        if lines:
            each = [line["costs"][work]["cpu"] / found["rows"] * 1e9 for line in lines]
            _curve(axes, [line[along] for line in lines], each, label, look)
    axes.set_ylabel("processor time, nanoseconds a row")


def _curve(axes: Axes, places: Sequence[float], costs: Sequence[float], label: str, look: Mapping[str, Any]) -> None:
    axes.plot(places, costs, label=label, markersize=6, **look)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)


def _plain_numbers(axis: Any) -> None:  # noqa: ANN401 (an axis of either kind)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
