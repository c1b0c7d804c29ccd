"""Figures of the studies, from their results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.pictures import keep

Line = dict[str, Any]
Look = dict[str, Any]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
MARKERS = "osD^vP"


def draw(result: dict[str, Any], folder: Path) -> None:
    """All figures of a result, into a folder."""
    for name, drawn in DRAWINGS[result["study"]].items():
        keep(drawn(result), folder / f"study_{result['study']}_{name}.png", dpi=100)


def panels(rows: int, columns: int, title: str, width: float = 4.2, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title and its panels, row by row."""
    figure = Figure(figsize=(max(width * columns, 6.0), height * rows + 0.5), layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel().tolist()
    return figure, axes


def look(place: int) -> Look:
    """How the curve in this place is drawn."""
    return {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 4, "linewidth": 1.4}


def curves(
    axes: Axes, lines: Sequence[Line], by: str, across: tuple[str, str], names: Callable[[Any], str] = str
) -> None:
    """One curve for each value of `by`, of the second of two numbers against the first."""
    x, y = across
    for place, value in enumerate(dict.fromkeys(line[by] for line in lines)):
        chosen = [line for line in lines if line[by] == value]
        at = [float(line[x]) for line in chosen]
        axes.plot(at, [line[y] for line in chosen], label=names(value), **look(place))
    axes.grid(visible=True, which="major", alpha=0.3)


def ticks(axes: Axes, values: Sequence[float]) -> None:
    """Give an axis a logarithmic scale with a mark at each of the values."""
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def log_y(axes: Axes) -> None:
    """Give an axis a logarithmic scale with plain numbers at 1, 2 and 5 of each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _sensitivity(result: dict[str, Any]) -> Figure:
    figure, axes = panels(1, 2, "What the noise of exact matching is in proportion to", width=4.8, height=3.8)
    names = {
        "largest": "global",
        "corrected": "smooth, corrected (a new stratum may appear)",
        "printed": "smooth, as printed (none may)",
        "ours": "smooth, this library (public list of strata)",
    }
    for panel, against in zip(axes, ("units", "imbalance"), strict=True):
        chosen = [line for line in result["sensitivities"] if line["against"] == against]
        for place, (name, words) in enumerate(names.items()):
            dashed = look(place) | {"linestyle": "--" if name == "printed" else "-", "label": words}
            panel.plot([line["at"] for line in chosen], [line[name] for line in chosen], **dashed)
        panel.set_yscale("log")
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.set_ylabel("sensitivity, outcomes within 0 and 1")
    axes[0].set_xscale("log")
    axes[0].set_xlabel("number of units (100 strata)")
    axes[1].set_xlabel("imbalance a (10,000 units, 100 strata)")
    axes[0].legend(fontsize=7)
    return figure


def _errors(result: dict[str, Any]) -> Figure:
    title = "Error against the true effect of one half: 10,000 units, 100 strata"
    figure, axes = panels(1, 2, title, width=4.8, height=3.8)
    for panel, measure in zip(axes, ("mean_absolute_error", "rmse"), strict=True):
        curves(panel, result["errors"], "estimator", ("epsilon", measure))
        ticks(panel, sorted({line["epsilon"] for line in result["errors"]}))
        panel.set_yscale("log")
        panel.set_xlabel("epsilon")
        panel.set_ylabel({"rmse": "root mean squared error"}.get(measure, measure.replace("_", " ")))
    axes[0].legend(fontsize=8)
    return figure


def _bias(result: dict[str, Any]) -> Figure:
    title = "Bias that noise in the score gives the estimate (simulation of the formulas, no vault)"
    figure, axes = panels(2, 2, title, width=4.8)
    names: dict[str, tuple[str, Look]] = {
        "corrected_bias": ("formula, corrected", {"color": COLOURS[0]}),
        "printed_bias": ("formula, as printed", {"color": COLOURS[1], "linestyle": "--"}),
        "bias": ("simulated", {"color": "black", "marker": "o", "linestyle": "none", "markersize": 5}),
        "bias_of_debiased": (
            "simulated, weights corrected",
            {"color": COLOURS[2], "marker": "D", "linestyle": "none", "markersize": 4},
        ),
    }
    for panel, (effect, x, chosen) in zip(axes, _noisy(result), strict=True):
        for name, (words, style) in names.items():
            panel.plot([line[x] for line in chosen], [line[name] for line in chosen], label=words, **style)
        panel.axhline(0, color="grey", linewidth=0.8)
        panel.set_ylabel("bias")
        _titled(panel, effect, x)
    axes[0].legend(fontsize=7)
    return figure


def _signs(result: dict[str, Any]) -> Figure:
    title = "How often noise in the score turns the sign (simulation of the formulas, no vault)"
    figure, axes = panels(1, 2, title, width=4.8)
    for panel, x in zip(axes, ("epsilon", "fitted_on"), strict=True):
        for place, (effect, _, chosen) in enumerate(each for each in _noisy(result) if each[1] == x):
            at, signs = [line[x] for line in chosen], [line["sign_error"] for line in chosen]
            panel.plot(at, signs, label=f"effect {effect:g}", **look(place))
        panel.set_ylabel("share of wrong signs")
        _titled(panel, None, x)
    axes[0].legend(fontsize=8)
    return figure


def _noisy(result: dict[str, Any]) -> list[tuple[float, str, list[Line]]]:
    """Each effect against epsilon and against the number of units that the score is fitted on."""
    lines = result["simulated"]
    found = []
    for effect in dict.fromkeys(line["effect"] for line in lines):
        of_effect = [line for line in lines if line["effect"] == effect]
        first = next(place for place, line in enumerate(of_effect) if line["fitted_on"] != 1000)
        found += [(effect, "epsilon", of_effect[:first]), (effect, "fitted_on", of_effect[first:])]
    return found


def _titled(panel: Axes, effect: float | None, x: str) -> None:
    of = "" if effect is None else f"effect {effect:g}, "
    fixed, label = {
        "epsilon": ("score fitted on 1,000 units", "epsilon"),
        "fitted_on": ("epsilon 0.2", "units that the score is fitted on"),
    }[x]
    panel.set_title(of + fixed, fontsize=10)
    panel.set_xlabel(label)
    panel.grid(visible=True, alpha=0.3)


def _vaults(result: dict[str, Any]) -> Figure:
    lines = result["through_vaults"]
    short = min(line["dimensions"] for line in lines)
    of_short = [line for line in lines if line["dimensions"] == short]
    small, large = (effect for effect in dict.fromkeys(line["effect"] for line in of_short))
    figure, axes = panels(1, 3, f"InverseWeighting through vaults: 2,000 units, {short} covariates", width=4.0)
    shown = [(small, "sign_error", "share of wrong signs"), (small, "rmse", "RMSE"), (large, "rmse", "RMSE")]
    for panel, (effect, measure, words) in zip(axes, shown, strict=True):
        chosen = [line for line in of_short if line["effect"] == effect]
        curves(panel, chosen, "estimator", ("epsilon", measure))
        ticks(panel, sorted({line["epsilon"] for line in chosen}))
        panel.set_title(f"effect {effect:g}, {chosen[0]['repeats']} tables", fontsize=10)
        panel.set_xlabel("epsilon")
        panel.set_ylabel(words)
        if measure == "rmse":
            log_y(panel)
    axes[0].legend(fontsize=7)
    return figure


DRAWINGS: dict[str, dict[str, Callable[[dict[str, Any]], Figure]]] = {
    "exact_matching": {"sensitivity": _sensitivity, "errors": _errors},
    "weighting": {"bias": _bias, "signs": _signs, "vaults": _vaults},
}
