"""Two figures: errors against matching without privacy, and errors against the truth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.accuracy.entries import NOT_PRIVATE
from benchmarks.accuracy.summary import Line
from benchmarks.pictures import STYLE, keep


@dataclass(frozen=True)
class Curve:
    """One estimator's line in every panel."""

    key: str
    label: str
    colour: str
    style: str = "-"
    marker: str = "o"


_MATCHING = (
    Curve("outcome: propensity matching", "propensity matching, outcome", "#1b6ca8"),
    Curve(
        f"outcome: propensity matching, {NOT_PRIVATE}",
        "the same, range from the data (not private)",
        "#1b6ca8",
        "--",
        "s",
    ),
    Curve("outcome: difference in means", "difference in means, outcome", "#7fb8de", "-", "^"),
    Curve("record: propensity matching", "propensity matching, record", "#c1440e"),
    Curve("record: difference in means", "difference in means, record", "#e9a07a", "-", "^"),
)
_TRUTH = (
    Curve("record: difference in means", "difference in means", "#e9a07a", "-", "^"),
    Curve("record: stratification", "stratification", "#1a7f5a"),
    Curve("record: weighting ATE, short list", "weighting, ATE, short list", "#1b6ca8"),
    Curve("record: weighting ATO, short list", "weighting, ATO, short list", "#1b6ca8", "--", "s"),
    Curve("record: weighting ATE, short list, output", "weighting, ATE, output noise", "#7fb8de", ":", "v"),
    Curve("record: weighting ATE, all", "weighting, ATE, all covariates", "#6a4c93"),
    Curve("record: exact matching, smooth", "exact matching, smooth", "#8a8a8a", "-", "D"),
    Curve("record: exact matching, global", "exact matching, global", "#8a8a8a", ":", "D"),
    Curve("record: propensity matching", "propensity matching", "#c1440e"),
)


def draw(result: Mapping[str, Any], folder: Path) -> None:
    """Both figures, as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with plt.rc_context(STYLE):
        _panels(result, "error_to_matching_same_score", _MATCHING, folder / "accuracy_papers_matching.png")
        _panels(result, "error_to_truth", _TRUTH, folder / "accuracy_papers_truth.png")


_TITLES = {
    "error_to_matching_same_score": "Mean relative error against matching on the same score without privacy",
    "error_to_truth": "Mean relative error against the true effect, one whole record protected",
}


def _panels(result: Mapping[str, Any], error: str, curves: Sequence[Curve], path: Path) -> None:
    names = list(result["references"])
    figure, grid = plt.subplots(2, 2, figsize=(9, 8.2), squeeze=False)
    for name, axes in zip(names, grid.flat, strict=False):
        for curve in curves:
            lines = [line for line in result["cells"] if _is(line, name, curve.key)]
            axes.plot(
                [line["epsilon"] for line in lines],
                [line[error]["mean"] for line in lines],
                color=curve.colour,
                linestyle=curve.style,
                marker=curve.marker,
                markersize=4,
                label=curve.label,
            )
        if curves is _MATCHING:
            errors = result["reimplemented"]["error_to_matching"]["outcome"][name]
            label = "the paper's algorithm re-implemented, outcome"
            axes.plot(result["reimplemented"]["epsilons"], errors, color="#222222", linestyle=":", label=label)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if _decades(axes.get_ylim()) < 2 else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_title(name)
        axes.grid(visible=True, which="major", color="#e4e4e4")
        axes.set_xticks([0.5, 1, 2, 3, 4], ["½", "1", "2", "3", "4"])
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes in grid[1]:
        axes.set_xlabel("epsilon")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.suptitle(_TITLES[error], fontsize=13)
    columns = 2 if curves is _MATCHING else 3
    height = 0.03 + 0.032 * -(-len(labels) // columns)
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False, fontsize=10.5)
    figure.tight_layout(rect=(0, height, 1, 0.99))
    keep(figure, path)
    plt.close(figure)


def _decades(limits: tuple[float, float]) -> float:
    return math.log10(limits[1] / limits[0])


def _is(line: Line, name: str, key: str) -> bool:
    return line["data"] == name and f"{line['protects']}: {line['estimator']}" == key
