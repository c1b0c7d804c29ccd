"""One figure for each question that the leaderboard answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.leaderboard.summary import Line
from benchmarks.leaderboard.tables import generated_name
from benchmarks.pictures import BLUE, GREEN, GREY, INK, PURPLE, STYLE, VERMILLION, keep

_CURVES: dict[str, tuple[str, str, str]] = {
    "doubly robust": (GREEN, "-", "o"),
    "regression adjustment": (BLUE, "-", "s"),
    "overlap weighting": (BLUE, "--", "P"),
    "difference in means": (PURPLE, "-", "^"),
    "Lebeda et al. 2025, folds, G-formula": (GREY, "-", "X"),
    "Ohnishi and Awan 2024, balancing weights": (GREY, "--", "D"),
    "Stewardson et al. 2026, propensity blocks": (GREY, ":", "v"),
    "Schröder et al. 2025, AIPW, nuisances paid for": (GREY, "-.", "<"),
    "Webb et al. 2026, perturbed histogram": (GREY, ":", "x"),
    "Lee et al. 2019, IPW, public bounds": (VERMILLION, "--", "d"),
    "Yuan et al. 2025, sample level, corrected": (VERMILLION, "-", "p"),
    "no privacy: augmented scores": (INK, ":", ""),
}
"""Colour, line and marker; this library's in blue and green, papers in vermillion, peers in grey."""


def draw(result: Mapping[str, Any], folder: Path) -> None:
    """All figures for which there are results, as SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    table: list[Line] = result["lines"]
    with plt.rc_context(STYLE):
        _sizes(table, folder / "leaderboard_n.svg")
        _epsilons(table, folder / "leaderboard_epsilon.svg")


def _sizes(table: Sequence[Line], path: Path) -> None:
    """How does the error fall with n, at epsilon 1?"""
    lines = [line for line in table if line["epsilon"] == 1 and _generated(line) and "/10/1" in line["table"]]
    figure, axes = plt.subplots(figsize=(9, 6))
    _curves(axes, lines, "n")
    axes.set_xlabel("units")
    _finished(figure, axes, "Mean relative error at epsilon 1, ten covariates, one whole record protected", path)


def _epsilons(table: Sequence[Line], path: Path) -> None:
    """How does the error fall with epsilon, for 20,000 units?"""
    lines = [line for line in table if line["table"] == generated_name(20_000, 10)]
    figure, axes = plt.subplots(figsize=(9, 6))
    _curves(axes, lines, "epsilon")
    axes.set_xlabel("epsilon")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _finished(figure, axes, "Mean relative error for 20,000 units and ten covariates, one whole record protected", path)


def _generated(line: Line) -> bool:
    return "/" in str(line["table"])


def _curves(axes: Axes, lines: Sequence[Line], along: str) -> None:
    for label, (colour, style, marker) in _CURVES.items():
        own = sorted((line for line in lines if line["contestant"] == label), key=lambda line: float(line[along]))
        if own:
            places, errors = [line[along] for line in own], [line["error"] for line in own]
            axes.plot(places, errors, color=colour, linestyle=style, marker=marker, markersize=5, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(visible=True, which="major", color="#e4e4e4")


def _finished(figure: Figure, axes: Axes, title: str, path: Path) -> None:
    figure.suptitle(title, fontsize=13)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=10)
    figure.tight_layout(rect=(0, 0.04 + 0.035 * -(-len(labels) // 2), 1, 0.99))
    keep(figure, path)
    plt.close(figure)
