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
        _turned(table, folder / "leaderboard_turned.svg")
        _coverage(table, folder / "leaderboard_coverage.svg")


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


def _turned(table: Sequence[Line], path: Path) -> None:
    """Whose error is small by luck: bias with the confounding as it is, and turned round."""
    names = [generated_name(20_000, 10), generated_name(20_000, 10, -1)]
    biases = {(x["contestant"], x["table"]): x["bias"] for x in table if x["epsilon"] == 4.0}
    labels = [label for label in reversed(_CURVES) if all((label, name) in biases for name in names)]
    labels = [label for label in labels if not label.startswith("no privacy")]
    figure, axes = plt.subplots(figsize=(9, 5.5))
    looks = (("as it is", BLUE, "o"), ("turned round", VERMILLION, "s"))
    for name, (words, colour, marker) in zip(names, looks, strict=True):
        axes.plot([biases[label, name] for label in labels], range(len(labels)), marker, color=colour, label=words)
    axes.set_yticks(range(len(labels)), labels)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_xlabel("bias as a share of the true effect, epsilon 4")
    axes.legend(title="confounding", frameon=False)
    figure.suptitle("Bias with the sign of the confounding turned round", fontsize=13)
    figure.tight_layout()
    keep(figure, path)
    plt.close(figure)


def _coverage(table: Sequence[Line], path: Path) -> None:
    """Do 95 % intervals cover?"""
    figure, axes = plt.subplots(figsize=(9, 6))
    shown = [x for x in table if _generated(x) and x["coverage"] is not None and x["private"] and x["intervals"] > 0.2]
    for label, (colour, _, marker) in _CURVES.items():
        own = [line for line in shown if line["contestant"] == label and line["runs"] >= 20]
        if own and label != "difference in means":
            widths, covered = [line["width"] for line in own], [line["coverage"] for line in own]
            axes.plot(widths, covered, marker or "x", color=colour, label=label, linestyle="")
    axes.axhspan(0.93, 0.97, color="#e4efe9")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("mean width of the interval as a share of the true effect")
    axes.set_ylabel("share of 95 % intervals that cover")
    _finished(figure, axes, "Coverage on generated tables, every size and epsilon with an interval", path)


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
