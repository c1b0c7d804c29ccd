"""The paper's figures, from the figures of a run: same axes, one panel a data set."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.papers.private.grid import (
    COEFFICIENTS,
    DATA,
    LIMITS,
    PAPER_COEFFICIENT,
    SPLIT_EPSILONS,
    USUAL,
    Level,
    adaptive,
)
from benchmarks.papers.private.methods import METHODS
from benchmarks.pictures import BLUE, GREEN, GREY, INK, PURPLE, VERMILLION, keep

Result = Mapping[str, Any]
Look = dict[str, Any]

COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, BLUE, GREEN, INK, GREY)
MARKERS = "osD^vPX*"
ERROR = "relative error"


def draw(result: Result, folder: Path) -> None:
    """Draw every figure that the result has numbers for."""
    for name, drawing in DRAWINGS.items():
        figure = drawing(result)
        if figure is not None:
            keep(figure, folder / f"papers_private_{name}.svg")


def _panels(rows: int, names: Sequence[str], title: str, height: float = 2.7) -> tuple[Figure, list[list[Axes]]]:
    size = (max(3.3 * len(names), 6.5), height * rows + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=12)
    grid = figure.subplots(rows, len(names), squeeze=False)
    for name, panel in zip(names, grid[0], strict=True):
        panel.set_title(name, fontsize=11)
    return figure, grid.tolist()


def _look(place: int, *, dashed: bool = False) -> Look:
    return {
        "color": COLOURS[place],
        "marker": MARKERS[place],
        "markersize": 4,
        "linewidth": 1.3,
        "linestyle": "--" if dashed else "-",
        "markerfacecolor": "white" if dashed else COLOURS[place],
    }


def _finish(panel: Axes) -> None:
    """Give a panel a logarithmic axis of errors with plain numbers."""
    panel.set_yscale("log")
    low, high = panel.get_ylim()
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 60 * low else (1.0,)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.grid(visible=True, which="major", alpha=0.3)
    panel.tick_params(labelsize=8)


def _legend(figure: Figure, looks: Mapping[str, Look], columns: int) -> None:
    handles = [Line2D([], [], label=words, **look) for words, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def _names(result: Result) -> list[str]:
    return [name for name in DATA if name in result["references"]]


_SHOWN = (
    ("label", 0, False),
    ("label_printed", 0, True),
    ("sample", 1, False),
    ("sample_printed", 1, True),
    ("ipw_printed", 2, True),
    ("smooth", 3, False),
    ("dpci_printed", 4, True),
    ("dpci", 4, False),
    ("difference", 6, False),
)


def _end_to_end(result: Result) -> Figure:
    """Figure 2."""
    figure, [panels] = _panels(1, _names(result), "End to end, N = 5 (Fig. 2). Dashed: as printed, not private", 3.6)
    looks = {METHODS[key].label: _look(place, dashed=dashed) for key, place, dashed in _SHOWN}
    for name, panel in zip(_names(result), panels, strict=True):
        for line in result["methods"]:
            words = METHODS[line["method"]].label
            if line["data"] == name and words in looks:
                panel.plot(result["epsilons"], line["mean"], **looks[words])
        for place, algorithm in ((5, "AIM"), (7, "MST")):
            points = [line for line in result["synthetic"] if (line["data"], line["method"]) == (name, algorithm)]
            if points:
                looks[f"{algorithm}, short list"] = _look(place)
                panel.plot([p["epsilon"] for p in points], [p["mean"] for p in points], **_look(place))
        _finish(panel)
        panel.set_xlabel("epsilon")
    panels[0].set_ylabel(f"{ERROR} to matching\nwithout privacy")
    _legend(figure, looks, 3)
    return figure


def _sweeps(result: Result, by: str, level: Level) -> dict[tuple[str, int, str], Any]:
    return {
        (line["data"], int(line["neighbours"]), line["setting"]): line["mean"]
        for line in result["sweeps"]
        if (line["by"], line["level"]) == (by, level)
    }


def _grid(
    result: Result, rows: Sequence[int], title: str, drawn: Callable[[Axes, str, int], None], x: str
) -> tuple[Figure, list[list[Axes]]]:
    figure, grid = _panels(len(rows), _names(result), title, 2.2)
    for count, panels in zip(rows, grid, strict=True):
        for name, panel in zip(_names(result), panels, strict=True):
            drawn(panel, name, count)
            _finish(panel)
        panels[0].set_ylabel(f"N = {count}\n{ERROR}", fontsize=9)
    for panel in grid[-1]:
        panel.set_xlabel(x, fontsize=9)
    return figure, grid


def _counts(curves: Mapping[tuple[str, int, str], Any]) -> list[int]:
    return sorted({count for _, count, _ in curves})


def _limits(by: str, level: Level) -> Callable[[Result], Figure | None]:
    """Figures 3 and 8, or 5 and 10."""

    def drawing(result: Result) -> Figure | None:
        curves = _sweeps(result, by, level)
        if not curves:
            return None
        settings = {f"limit {limit}": f"limit {limit}" for limit in LIMITS}
        settings[adaptive(level, paper=True)] = f"adaptive, {adaptive(level, paper=True)} (the paper's)"
        settings.setdefault(adaptive(level, paper=False), f"adaptive, {adaptive(level, paper=False)} (default here)")

        def drawn(panel: Axes, name: str, count: int) -> None:
            for place, setting in enumerate(settings):
                panel.plot(result["epsilons"], curves[name, count, setting], **_look(place))

        what = {"ours": "as it is here", "printed": "as printed, not private"}[by]
        figures = {"label": "Figs 3, 8", "sample": "Figs 5, 10"}[level]
        title = f"How often a unit may serve, {level} level, {what} ({figures})"
        figure, _ = _grid(result, _counts(curves), title, drawn, "epsilon")
        _legend(figure, {words: _look(place) for place, words in enumerate(settings.values())}, 3)
        return figure

    return drawing


def _coefficients(level: Level) -> Callable[[Result], Figure | None]:
    """Figures 4 and 9, or 6 and 11."""

    def drawing(result: Result) -> Figure | None:
        here, printed = _sweeps(result, "ours", level), _sweeps(result, "printed", level)
        if not here:
            return None
        shown = [each for each in (0.5, 1.0, 4.0) if each in result["epsilons"]]

        def drawn(panel: Axes, name: str, count: int) -> None:
            for dashed, curves in ((False, here), (True, printed)):
                for place, epsilon in enumerate(shown):
                    at = result["epsilons"].index(epsilon)
                    keys = [(name, count, f"coefficient {error:g}") for error in COEFFICIENTS]
                    if keys[0] in curves:
                        errors = [curves[key][at] for key in keys]
                        panel.plot(COEFFICIENTS, errors, **_look(place, dashed=dashed))
            panel.set_xscale("log")
            panel.axvline(PAPER_COEFFICIENT[level], color=GREY, linewidth=0.8, linestyle=":")

        letter, figures = {"label": ("c", "Figs 4, 9"), "sample": ("h", "Figs 6, 11")}[level]
        title = f"The error coefficient {letter}, {level} level ({figures}); dotted: the paper's choice"
        figure, _ = _grid(result, _counts(here), title, drawn, f"coefficient {letter}")
        looks = {f"epsilon {epsilon:g}, here": _look(place) for place, epsilon in enumerate(shown)}
        looks |= {f"epsilon {epsilon:g}, as printed": _look(p, dashed=True) for p, epsilon in enumerate(shown)}
        _legend(figure, looks, 3)
        return figure

    return drawing


def _neighbours(result: Result) -> Figure:
    """Figure 7."""
    shown = (("ours", "label", 0, False), ("printed", "label", 0, True), ("ours", "sample", 1, False))
    curves: list[tuple[Mapping[tuple[str, int, str], Any], str, Look]] = [
        (_sweeps(result, by, level), adaptive(level, paper=by == "printed"), _look(place, dashed=dashed))  # type: ignore[arg-type]
        for by, level, place, dashed in shown
    ]

    def drawn(panel: Axes, name: str, count: int) -> None:
        for lines, setting, look in curves:
            panel.plot(result["epsilons"], lines[name, count, setting], **look)

    title = "End to end by the number of neighbours (Fig. 7)"
    figure, _ = _grid(result, _counts(curves[0][0]), title, drawn, "epsilon")
    words = ("PrivATE label, here", "PrivATE label, as printed", "PrivATE sample, here")
    _legend(figure, dict(zip(words, (look for *_, look in curves), strict=True)), 3)
    return figure


def _splits(result: Result) -> Figure | None:
    """Figure 12."""
    if not result["splits"]:
        return None
    title = f"How epsilon is divided, sample level, N = {USUAL} (Fig. 12): {ERROR}"
    figure, grid = _panels(len(SPLIT_EPSILONS), _names(result), title, 3.1)
    for epsilon, panels in zip(SPLIT_EPSILONS, grid, strict=True):
        for name, panel in zip(_names(result), panels, strict=True):
            image = np.full((8, 8), np.nan)
            for line in result["splits"]:
                if (line["data"], line["epsilon"]) == (name, epsilon):
                    first, second, _ = (round(10 * float(share)) for share in line["split"].split(":"))
                    image[second - 1, first - 1] = line["mean"]
            panel.imshow(
                image, origin="lower", cmap="viridis_r", vmin=np.nanmin(image), vmax=np.nanpercentile(image, 90)
            )
            middle = (np.nanmin(image) + np.nanpercentile(image, 90)) / 2
            for (row, column), value in np.ndenumerate(image):
                if np.isfinite(value):
                    colour = "white" if value > middle else "black"
                    panel.text(column, row, f"{value:.2g}", ha="center", va="center", color=colour, fontsize=6)
            for ticks in (panel.set_xticks, panel.set_yticks):
                ticks(range(8), [f"{share / 10:g}" for share in range(1, 9)], fontsize=7)
        panels[0].set_ylabel(f"epsilon {epsilon:g}\nshare of the arms", fontsize=9)
    for panel in grid[-1]:
        panel.set_xlabel("share of the score", fontsize=9)
    return figure


_PARTS = {
    "bound_as_printed": ("bound, R as printed", 1, True),
    "bound": ("bound, R with the limit k N", 1, False),
    "simulated": ("error, simulated", 6, False),
    "noise": ("noise", 0, False),
    "matching": ("matching", 2, False),
}


def _theorem(result: Result) -> Figure:
    """Theorem 3."""
    setting = adaptive("label", paper=True)
    title = "Theorem 3: error of the treated outcomes' mean, adaptive limit as printed"
    figure, [panels] = _panels(1, _names(result), title, 3.2)
    for name, panel in zip(_names(result), panels, strict=True):
        lines = [
            line for line in result["theorem"] if (line["data"], line["setting"], line["arm"]) == (name, setting, 1)
        ]
        for part, (_, place, dashed) in _PARTS.items():
            values = [line[part] or np.nan for line in lines]
            panel.plot([line["epsilon"] for line in lines], values, **_look(place, dashed=dashed))
        _finish(panel)
        panel.set_xlabel("epsilon")
    panels[0].set_ylabel("root mean squared error,\nunits of the outcome")
    _legend(figure, {words: _look(place, dashed=dashed) for words, place, dashed in _PARTS.values()}, 5)
    return figure


DRAWINGS: dict[str, Callable[[Result], Figure | None]] = {
    "end_to_end": _end_to_end,
    "neighbours": _neighbours,
    "limits_label": _limits("ours", "label"),
    "limits_label_printed": _limits("printed", "label"),
    "limits_sample": _limits("ours", "sample"),
    "coefficients_label": _coefficients("label"),
    "coefficients_sample": _coefficients("sample"),
    "splits": _splits,
    "theorem": _theorem,
}
"""Every figure by its name."""
