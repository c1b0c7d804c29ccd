"""The paper's figures, from a result: error against alpha, one panel for each table and split; and sensitivities."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.papers.multi_site.results import GLOBAL, MEANS, NAMES, RULES, SMOOTH, Row, row, rows
from benchmarks.papers.paper import Result
from benchmarks.pictures import BLUE, GREEN, GREY, PURPLE, STYLE, VERMILLION, keep

Curve = tuple[str, Sequence[float], dict[str, Any]]
"""A curve's label, its values, and how it is drawn."""

_LOOKS = dict(zip(RULES, ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "x")), strict=True))
_WHOSE = {
    "paper": ("as printed", {"linestyle": "--", "markerfacecolor": "white", "linewidth": 1.0}),
    "ours": ("dpcausal", {"linestyle": "-", "linewidth": 1.5}),
}


def draw(result: Result, folder: Path) -> None:
    """Draw the paper's figures into a folder, where there are results for them."""
    titles = {
        MEANS: ("trials", "Difference in means over sites, arms public (figures 3 to 5)"),
        GLOBAL: ("global", "Matching by global sensitivity: GlobalDPMatching (figures 8 to 11, upper rows)"),
        SMOOTH: ("smooth", "Matching by smooth sensitivity: SmoothDPMatching (figures 8 to 11, lower rows)"),
    }
    with mpl.rc_context(STYLE):
        for estimator, (name, title) in titles.items():
            chosen = [each for each in rows(result, estimator) if estimator != MEANS or each.table in {"IST", "STAR"}]
            if chosen:
                panels = [(each, _rules(each)) for each in chosen]
                keep(_errors(result, panels, title), folder / f"papers_multi_site_{name}.svg")
        matched = [(each, _estimators(result, each)) for each in rows(result, SMOOTH)]
        title = "What sites do, by MVAgg: error from the true effect"
        keep(_errors(result, matched, title), folder / "papers_multi_site_estimators.svg")
        keep(_sensitivity(result), folder / "papers_multi_site_sensitivity.svg")


def _rules(each: Row) -> list[Curve]:
    """Return the paper's four rules, as printed and ours."""
    return [
        (f"{NAMES[rule]}, {words}", each.errors(by, rule), {"color": colour, "marker": marker} | look)
        for by, (words, look) in _WHOSE.items()
        for rule, (colour, marker) in _LOOKS.items()
    ]


def _estimators(result: Result, each: Row) -> list[Curve]:
    """Return SmoothDPMatching as printed, and what else sites may do."""
    printed = each.errors("paper", "minimum_variance")
    curves: list[Curve] = [
        ("SmoothDPMatching, as printed", printed, {"color": BLUE, "marker": "o"} | _WHOSE["paper"][1])
    ]
    looks = {
        SMOOTH: (BLUE, "o"),
        "stratification, record": (VERMILLION, "D"),
        "difference in means, record": (GREY, "x"),
    }
    for estimator, (colour, marker) in looks.items():
        other = row(result, each.table, each.split, estimator)
        if other:
            label = estimator.removesuffix(", record")
            curves.append((label, other.from_truth("minimum_variance"), {"color": colour, "marker": marker}))
    return curves


def _panels(count: int, title: str, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, the others off."""
    columns = min(count, 5 if count % 5 == 0 else 4)
    lines = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 6.0), height * lines + 0.6), layout="constrained")
    figure.suptitle(title, fontsize=13)
    axes: list[Axes] = np.atleast_1d(figure.subplots(lines, columns, squeeze=False)).ravel().tolist()
    for panel in axes[count:]:
        panel.set_axis_off()
    return figure, axes[:count]


def _errors(result: Result, panels: Sequence[tuple[Row, Sequence[Curve]]], title: str) -> Figure:
    """Draw a panel for each setting, and the legend below."""
    figure, axes = _panels(len(panels), title, 3.5, 2.9)
    alphas = result["alphas"]
    for panel, (each, curves) in zip(axes, panels, strict=True):
        for label, values, look in curves:
            panel.plot(alphas, values, label=label, markersize=4.5, **look)
        panel.set_title(f"{each.table}, {each.split}" if ":" in each.split else f"{each.table} by {each.split}")
        panel.set_xscale("log")
        panel.set_xticks(alphas, [str(Fraction(alpha)) for alpha in alphas])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("alpha")
        panel.grid(visible=True, which="major", alpha=0.3)
        _log(panel)
    for panel in axes[:: min(len(axes), 5 if len(axes) % 5 == 0 else 4)]:
        panel.set_ylabel("mean absolute error")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    return figure


def _log(panel: Axes) -> None:
    """Give an axis a logarithmic scale with plain numbers at 1, 2 and 5 of each power of ten."""
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def _sensitivity(result: Result) -> Figure:
    figure, axes = _panels(2, "Sensitivity of exact matching, outcomes within 0 and 1 (figures 6 and 7)", 5.2, 3.9)
    looks = {
        "global": ("global", {"color": GREY, "marker": "x"}),
        "printed": ("smooth, as printed", {"color": BLUE, "marker": "o", "linestyle": "--"}),
        "ours": ("smooth, dpcausal (public list of strata)", {"color": GREEN, "marker": "D"}),
    }
    for panel, against in zip(axes, ("units", "imbalance"), strict=True):
        chosen = [line for line in result["sensitivities"] if line["against"] == against]
        for kind, (label, look) in looks.items():
            values = [line[kind] for line in chosen]
            panel.plot([line["at"] for line in chosen], values, label=label, markersize=5, **look)  # type: ignore[arg-type]
        panel.set_ylabel("sensitivity")
        panel.grid(visible=True, which="major", alpha=0.3)
        _log(panel)
    axes[0].set_xscale("log")
    axes[0].set_xlabel("N, the number of units (100 strata)")
    axes[1].set_xlabel("imbalance a (10,000 units, 100 strata)")
    axes[1].legend(fontsize=9, loc="center", bbox_to_anchor=(0.55, 0.76))
    return figure
