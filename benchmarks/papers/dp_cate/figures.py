"""The paper's figures, drawn from a result. Whole lines are proved here, broken ones are as printed or of others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.papers.dp_cate.printed import Fit, Kernel
from benchmarks.papers.dp_cate.runs import NO_PRIVACY, PEERS
from benchmarks.papers.dp_cate.wide import TEN_COLUMNS
from benchmarks.pictures import BAND, BLUE, GREEN, GREY, INK, PURPLE, STYLE, VERMILLION, keep

Line = dict[str, Any]

LOOKS: dict[str, dict[str, Any]] = {
    "printed R, forest": {"color": INK, "linestyle": "--", "marker": "v"},
    "printed R, network": {"color": VERMILLION, "linestyle": "--", "marker": "s"},
    "printed R, linear": {"color": GREEN, "linestyle": "--", "marker": "^"},
    "printed R, kernel, ridge of the mean": {"color": PURPLE, "linestyle": ":", "marker": "P"},
    "printed R, kernel, ridge of the mixed": {"color": GREY, "linestyle": ":", "marker": "X"},
    "printed DR, forest": {"color": BLUE, "linestyle": "-.", "marker": "v"},
    "R-learner": {"color": BLUE, "marker": "o"},
    "DR-learner": {"color": VERMILLION, "marker": "s", "markerfacecolor": "white"},
    "kernel learner": {"color": GREEN, "marker": "^"},
    "kernel learner, DR": {"color": PURPLE, "marker": "v", "markerfacecolor": "white"},
    "difference in means": {"color": INK, "linewidth": 1.2},
    PEERS[0]: {"color": GREY, "linestyle": "--", "marker": "P"},
    PEERS[1]: {"color": GREY, "linestyle": ":", "marker": "X"},
    NO_PRIVACY: {"color": INK, "linestyle": "-."},
}

NAMES = {
    "R-learner": "RLearner",
    "DR-learner": "DRLearner",
    "kernel learner": "KernelLearner",
    "kernel learner, DR": "KernelLearner, DR",
    "difference in means": "a constant (DifferenceInMeans)",
    "printed R, kernel, ridge of the mean": "printed R, kernel, ridge as written",
    "printed R, kernel, ridge of the mixed": "printed R, kernel, noise too small by n",
    PEERS[0]: "DP-EBM, R-learner",
    PEERS[1]: "DP-EBM, DR-learner",
    NO_PRIVACY: "no privacy, RLearner's functions",
}

_EPSILON_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": PURPLE, "marker": "."},
    {"color": BLUE, "marker": "+"},
    {"color": GREEN, "marker": "x"},
)


def name_of(method: str) -> str:
    """Return what a method is called on the page."""
    return NAMES.get(method, method)


def draw(result: Mapping[str, Any], folder: Path) -> None:
    """Draw all figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with plt.rc_context(STYLE):
        for name, figure in (
            ("finite", _finite(result)),
            ("functional", _functional(result)),
            ("pehe", _pehe(result["rows"])),
            ("baselines", _baselines(result)),
            ("wide", _wide(result["wide"])),
            *((("medical", _medical(result["nhefs"])),) if result["nhefs"] else ()),
        ):
            keep(figure, folder / f"papers_dp_cate_{name}.svg")
            plt.close(figure)


def _points(axes: Axes, x: Sequence[float], by_epsilon: Mapping[float, Any], truth: Sequence[float]) -> None:
    order = np.argsort(x)
    axes.plot(np.array(x)[order], np.array(truth)[order], color=INK, linewidth=1.5, label="true effect", zorder=3)
    for look, (epsilon, effects) in zip(_EPSILON_LOOKS, by_epsilon.items(), strict=False):
        axes.scatter(x, effects, s=14, linewidths=0.8, label=f"epsilon {epsilon:g}", **look)


def _legend(figure: Figure, axes: Axes, columns: int, below: float) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False)
    figure.tight_layout(rect=(0, below, 1, 1))


def _epsilons(predictions: Line) -> list[float]:
    return sorted({float(key.rpartition("/")[2]) for key in predictions["ours"]})


def _finite(result: Mapping[str, Any]) -> Figure:
    """Figures 3 and 9: predictions by second stage and epsilon."""
    predictions = result["predictions"]
    figure, grid = plt.subplots(2, 3, figsize=(13, 7.6))
    for row, meta in zip(grid, ("R", "DR"), strict=True):
        for axes, stage in zip(row, ("forest", "network", "linear"), strict=True):
            held = predictions["printed"][f"printed {meta}, {stage}"]
            fit = Fit(np.array(held["effects"]), held["sd"])
            noisy = {at: fit.noisy(at, np.random.default_rng(round(1000 * at))) for at in _epsilons(predictions)}
            axes.scatter(predictions["x0"], fit.effects, s=5, color=VERMILLION, label="fit without noise")
            _points(axes, predictions["x0"], noisy, predictions["truth"])
            axes.set_title(f"{meta}-learner, {stage}")
            axes.set_xlabel("x0")
        row[0].set_ylabel("effect")
    _legend(figure, grid[0][0], 5, 0.05)
    return figure


def _functional(result: Mapping[str, Any]) -> Figure:
    """Figures 4 and 10: predictions of the kernel version, printed and proved."""
    predictions = result["predictions"]
    figure, grid = plt.subplots(2, 3, figsize=(13, 7.6))
    at = np.array(predictions["x0"])
    for row, meta in zip(grid, ("R", "DR"), strict=True):
        for axes, reading in zip(row, ("mean", "mixed"), strict=False):
            held = predictions["printed"][f"printed {meta}, kernel, ridge of the {reading}"]
            fit = Fit(np.array(held["effects"]), held["sd"], _factor(at))
            noisy = {
                each: fit.noisy(each, np.random.default_rng((1, round(1000 * each)))) for each in _epsilons(predictions)
            }
            axes.scatter(at, fit.effects, s=5, color=VERMILLION, label="fit without noise")
            _points(axes, at.tolist(), noisy, predictions["truth"])
            way = "ridge as written" if reading == "mean" else "noise too small by n"
            axes.set_title(f"{meta}-learner, printed, {way}")
        label = "kernel learner" if meta == "R" else "kernel learner, DR"
        ours = {each: predictions["ours"][f"{label}/{each:g}"] for each in _epsilons(predictions)}
        _points(row[2], at.tolist(), ours, predictions["truth"])
        row[2].set_title(f"here: {name_of(label)}")
        for axes in row:
            axes.set_xlabel("x0")
        row[0].set_ylabel("effect")
    _legend(figure, grid[0][0], 5, 0.05)
    return figure


def _factor(x0: Any) -> Any:  # noqa: ANN401 (arrays)
    """Return a root of the kernel between queries as if they differed in the first covariate only."""
    along = np.column_stack([2 * x0 - 1, np.zeros(len(x0))])
    values, vectors = np.linalg.eigh(Kernel(2).between(along, along))
    return vectors * np.sqrt(np.maximum(values, 0))


def _errors(axes: Axes, rows: Sequence[Line], methods: Sequence[str]) -> None:
    """One curve for each method, a level line for those without epsilon."""
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    for method in methods:
        own = sorted(
            (row for row in rows if row["method"] == method and row["epsilon"]), key=lambda row: row["epsilon"]
        )
        if own:
            places, errors = [row["epsilon"] for row in own], [row["pehe"] for row in own]
        else:
            level = [row["pehe"] for row in rows if row["method"] == method]
            if not level:
                continue
            places, errors = [epsilons[0], epsilons[-1]], level * 2
        axes.plot(places, errors, markersize=5, label=name_of(method), **LOOKS.get(method, {"color": GREY}))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("epsilon")
    axes.grid(visible=True, which="major", color="#ececec")


def _pehe(rows: Sequence[Line]) -> Figure:
    """Figures 5 and 14: errors by epsilon; on the left as printed, on the right with a proof."""
    figure, grid = plt.subplots(2, 2, figsize=(12.5, 9), sharey="row")
    printed = [name for name in LOOKS if name.startswith("printed R")]
    ours = ("R-learner", "DR-learner", "kernel learner", "kernel learner, DR")
    for pair, table in zip(grid, ("Dataset 1", "Dataset 2"), strict=True):
        own = [row for row in rows if row["table"] == table]
        for axes, methods in zip(pair, (printed, ours), strict=True):
            _errors(axes, own, [*methods, "difference in means", NO_PRIVACY])
            axes.set_title(f"{table}, {'as printed (not private)' if methods is printed else 'proved'}")
            if table == "Dataset 2":
                axes.legend(frameon=False, fontsize=9.5, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        pair[0].set_ylabel("PEHE")
    figure.tight_layout()
    return figure


def _baselines(result: Mapping[str, Any]) -> Figure:
    """Figures 11 to 13: DP-EBM and k-anonymous data on Dataset 1."""
    predictions, rows = result["predictions"], [row for row in result["rows"] if row["table"] == "Dataset 1"]
    shown = [
        label for label in (PEERS[0], "R-learner") if f"{label}/{_epsilons(predictions)[0]:g}" in predictions["ours"]
    ]
    figure, grid = plt.subplots(1, len(shown) + 1, figsize=(4.6 * (len(shown) + 1), 4.6))
    for axes, label in zip(grid, shown, strict=False):
        ours = {each: predictions["ours"][f"{label}/{each:g}"] for each in _epsilons(predictions)}
        _points(axes, predictions["x0"], ours, predictions["truth"])
        axes.set_title(name_of(label) if label in PEERS else f"here: {name_of(label)}")
        axes.set_xlabel("x0")
        axes.set_ylabel("effect")
        axes.legend(frameon=False, fontsize=8.5)
    last = grid[-1]
    _errors(last, rows, ["printed R, forest", "R-learner", *PEERS, "difference in means"])
    for style, row in zip(
        ((0, (5, 1)), "--", ":"), (row for row in rows if "anonymous" in row["method"]), strict=False
    ):
        last.axhline(row["pehe"], color=VERMILLION, linestyle=style, label=row["method"].partition(",")[0])
    last.set_ylabel("PEHE")
    last.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _wide(wide: Line) -> Figure:
    """Figure 7: effects by the sum of all covariates; the truth is the same for everybody."""
    shown, lines = wide["shown"], wide["shown"]["lines"]
    figure, grid = plt.subplots(1, 2, figsize=(11, 4.4))
    fit = Fit(np.array(wide["printed"]["effects"]), wide["printed"]["sd"])
    by = {line["epsilon"]: line["effects"] for line in lines}
    noisy = {each: fit.noisy(each, np.random.default_rng(3)) for each in by}
    truth = [wide["effect"]] * len(shown["sums"])
    for axes, effects, title in (
        (grid[0], noisy, f"printed, network of {wide['printed']['columns']:,} columns (not private)"),
        (grid[1], by, f"here: {TEN_COLUMNS}"),
    ):
        _points(axes, shown["sums"], effects, truth)
        axes.set_title(title)
        axes.set_xlabel("sum of all covariates")
    grid[0].set_ylabel("effect")
    _legend(figure, grid[1], 4, 0.07)
    return figure


def _medical(curves: Sequence[Line]) -> Figure:
    """Figure 6, on open data: the effect along a covariate, with bands."""
    figure, grid = plt.subplots(len(curves), len(curves[0]["lines"]), figsize=(13, 4 * len(curves)), squeeze=False)
    for row, curve in zip(grid, curves, strict=True):
        bare, printed = curve["no_privacy"], curve["printed"]
        fit = Fit(np.array(printed["effect"]), printed["sd"])
        for axes, line in zip(row, curve["lines"], strict=True):
            if line["band"]:
                axes.fill_between(curve["places"], *line["band"], color=BAND, label="95 % interval")
            axes.plot(curve["places"], line["effect"], color=BLUE, linewidth=2.2, label="RLearner")
            axes.plot(curve["places"], bare["effect"], color=INK, linestyle="--", label="no privacy, with interval")
            for end in ("low", "high"):
                axes.plot(curve["places"], bare[end], color=INK, linestyle=":", linewidth=1)
            noisy = fit.noisy(line["epsilon"], np.random.default_rng(5))
            axes.scatter(
                curve["places"], noisy, s=14, marker="x", color=VERMILLION, label="printed, forest (not private)"
            )
            axes.set_ylim(-40, 40)
            axes.set_title(f"epsilon {line['epsilon']:g}")
            axes.set_xlabel({"age": "age", "smokeintensity": "cigarettes a day"}[curve["along"]])
        row[0].set_ylabel("effect of quitting on weight (kg)")
    fullest = max(grid.ravel(), key=lambda axes: len(axes.get_legend_handles_labels()[0]))  # an interval may be refused
    _legend(figure, fullest, 4, 0.05)
    return figure
