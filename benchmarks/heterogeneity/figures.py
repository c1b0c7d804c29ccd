"""Figures: errors by epsilon, and a curve with its band at three epsilons. Both read in black and white."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.papers.dp_cate.contestants import HEURISTIC, NO_PRIVACY, TREES
from benchmarks.pictures import BAND, BLUE, GREEN, GREY, INK, STYLE, VERMILLION, keep

Line = dict[str, Any]

_LOOKS: dict[str, dict[str, Any]] = {
    "R-learner": {"color": BLUE, "marker": "o"},
    "DR-learner": {"color": BLUE, "marker": "s", "markerfacecolor": "white"},
    "kernel learner": {"color": GREEN, "marker": "^"},
    "kernel learner, DR": {"color": GREEN, "marker": "v", "markerfacecolor": "white"},
    "difference in means": {"color": INK, "linewidth": 1},
    "Niu et al. 2022, DP-EBM, R-learner": {"color": VERMILLION, "linestyle": "--", "marker": "X"},
    "Niu et al. 2022, DP-EBM, DR-learner": {"color": VERMILLION, "linestyle": "--", "marker": "P"},
    HEURISTIC: {"color": GREY, "linestyle": ":", "marker": "x"},
    NO_PRIVACY: {"color": INK, "linestyle": "-."},
    TREES: {"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 2},
}
"""Whole lines for this library, broken ones for others; no marker where a line is level."""

_SPREAD = "best constant"

_PANELS = (
    ("generated", 10_000),
    ("generated", 50_000),
    ("Dataset 1", 10_000),
    ("Dataset 2, five covariates", 50_000),
    ("Dataset 2", 50_000),
    ("IHDP", 747),
)


def draw(result: Mapping[str, Any], folder: Path) -> None:
    """Both figures, as SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with plt.rc_context(STYLE):
        _errors(result["rows"], folder / "pehe.svg")
        _curves(result["curves"], folder / "curve_epsilons.svg")


def _errors(rows: Sequence[Line], path: Path) -> None:
    """How does the error fall with epsilon?"""
    held = {(row["table"], row["n"]) for row in rows}
    panels = [panel for panel in _PANELS if panel in held] or sorted(held)[:6]
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(down, across, figsize=(max(4.6 * across, 6), 3.7 * down + 1.3), squeeze=False)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_visible(False)
    shown: dict[str, Any] = {}
    for axes, (name, n) in zip(grid.ravel(), panels, strict=False):
        own = [row for row in rows if (row["table"], row["n"]) == (name, n)]
        shown |= _panel(axes, own)
        axes.set_title(f"{name}, {n:,} units")
    for axes in grid[:, 0]:
        axes.set_ylabel("error of the effect (PEHE)\nas a share of its standard deviation")
    ordered = [label for label in (*_LOOKS, _SPREAD) if label in shown]
    handles = [shown[label] for label in ordered]
    figure.legend(handles, ordered, loc="lower center", ncols=across, frameon=False, fontsize=10)
    below = 0.22 * -(-len(ordered) // across) + 0.15  # inches
    figure.tight_layout(rect=(0, below / figure.get_size_inches()[1], 1, 1))
    keep(figure, path)
    plt.close(figure)


def _panel(axes: Axes, rows: Sequence[Line]) -> dict[str, Any]:
    """One table: a curve for each contestant, and a level line for those without epsilon."""
    drawn: dict[str, Any] = {}
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    for label, look in _LOOKS.items():
        own = sorted((row for row in rows if row["contestant"] == label), key=lambda row: row["epsilon"] or 0)
        if not own:
            continue
        places = epsilons if own[0]["epsilon"] is None else [row["epsilon"] for row in own]
        errors = [row["pehe_to_sd"] for row in own] * (len(epsilons) if own[0]["epsilon"] is None else 1)
        drawn[label] = axes.plot(places, errors, markersize=5, **look)[0]
    drawn[_SPREAD] = axes.axhline(1.0, color=GREY, linewidth=1, linestyle=(0, (6, 2, 1, 2)), zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("epsilon")
    axes.grid(visible=True, which="major", color="#ececec")
    return drawn


def _curves(curves: Line, path: Path) -> None:
    """Draw what a curve looks like at three epsilons."""
    lines = curves["lines"]
    figure, grid = plt.subplots(1, len(lines), figsize=(max(4.4 * len(lines), 6), 4.2), sharey=True, squeeze=False)
    for axes, line in zip(grid[0], lines, strict=True):
        if line["band"]:  # none where the learner refuses one
            axes.fill_between(curves["x0"], *line["band"], color=BAND, label="95 % band for the whole curve")
        axes.plot(curves["x0"], curves["truth"], color=INK, linestyle="--", label="true effect")
        axes.plot(curves["x0"], line["effect"], color=BLUE, linewidth=2.2, label="R-learner")
        axes.set_title(f"epsilon {line['epsilon']:g}")
        axes.set_xlabel("x0")
    grid[0][0].set_ylabel("effect")
    handles, labels = grid[0][-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
    figure.suptitle(f"Dataset 1, {curves['n']:,} units", fontsize=13)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    keep(figure, path)
    plt.close(figure)
