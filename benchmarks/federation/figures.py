"""Figures of the multi-site experiment: error against alpha, one panel for each table and split."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from benchmarks.pictures import STYLE, keep
from benchmarks.studies.figures import log_y, panels

Line = dict[str, Any]
Pick = dict[str, str]
"""What a curve must be to be drawn."""

MARKERS = {
    "minimum_variance": "o",
    "inverse_variance": "s",
    "sample_size": "^",
    "largest": "x",
    "random_effects": "D",
}
"""A rule has one marker, whoever's it is."""

PRINTED = {"color": "#8a8a8a", "linestyle": "--", "markerfacecolor": "white"}
OURS = {"color": "black", "linestyle": "-"}


def _rules(estimator: str) -> list[tuple[str, Pick, Line]]:
    """Return the paper's rules as printed, dashed and grey, and this library's."""
    curves: list[tuple[str, Pick, Line]] = []
    for by, look in (("paper", PRINTED), ("ours", OURS)):
        for rule, marker in MARKERS.items():
            named = f"{'the paper' if by == 'paper' else 'dpcausal'}, {rule.replace('_', ' ')}"
            curves.append((named, {"estimator": estimator, "by": by, "rule": rule}, look | {"marker": marker}))
    return curves


def _best(estimator: str, by: str = "ours", protects: str | None = None) -> Pick:
    """Return a curve of minimum variance."""
    pick = {"estimator": estimator, "by": by, "rule": "minimum_variance"}
    return pick if protects is None else pick | {"protects": protects}


_MATCHING = [
    ("the paper: exact matching, smooth", _best("exact matching, smooth", "paper"), PRINTED | {"marker": "o"}),
    ("exact matching, smooth", _best("exact matching, smooth"), OURS | {"marker": "o"}),
    ("difference in means", _best("difference in means"), OURS | {"marker": "x", "linestyle": ":"}),
    ("regression adjustment", _best("regression adjustment"), OURS | {"marker": "^", "linestyle": "-."}),
    ("stratification", _best("stratification"), {"color": "#d55e00", "linestyle": "-", "marker": "D"}),
]
_TRIALS = [
    (
        "the paper: difference in means, arms public",
        _best("difference in means", "paper"),
        PRINTED | {"marker": "o"},
    ),
    *(
        (
            f"{estimator}, {'arms public' if protects == 'record_within_arm' else 'whole record private'}",
            _best(estimator, protects=protects),
            {"marker": marker, "linestyle": style, "color": "black" if marker == "o" else "#d55e00"},
        )
        for estimator, marker in (("difference in means", "o"), ("regression adjustment", "^"))
        for protects, style in (("record_within_arm", "-"), ("record", ":"))
    ),
]
_OBSERVED, _RANDOMISED = ("Synth", "IHDP", "Lalonde"), ("IST", "STAR")


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """All figures for which there are results, as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    public: Pick = {"protects": "record_within_arm"}
    drawn: dict[str, tuple[Sequence[str], list[tuple[str, Pick, Line]], str, str]] = {
        "trials": (
            _RANDOMISED,
            [(label, pick | public, look) for label, pick, look in _rules("difference in means")],
            "not_private",
            "Trials over sites: difference in means, arms public; error from the estimate without noise on all units",
        ),
        "smooth": (
            _OBSERVED,
            _rules("exact matching, smooth"),
            "not_private",
            "Exact matching by smooth sensitivity; error from the estimate without noise on all units",
        ),
        "global": (
            _OBSERVED,
            _rules("exact matching, global"),
            "not_private",
            "Exact matching by global sensitivity; error from the estimate without noise on all units",
        ),
        "estimators": (
            _OBSERVED,
            _MATCHING,
            "truth",
            "What sites do, pooled by minimum variance; error from the true effect",
        ),
        "trial_estimators": (
            _RANDOMISED,
            _TRIALS,
            "truth",
            "What sites of a trial do, pooled by minimum variance; error from the trial's difference in means",
        ),
    }
    for name, (tables, curves, measured, title) in drawn.items():
        lines = [line for line in results["curves"] if line["table"] in tables]
        if lines:
            _figure(lines, curves, measured, results["alphas"], title, folder / f"federation_{name}.png")


def _figure(  # noqa: PLR0913, PLR0917
    lines: Sequence[Line],
    curves: Sequence[tuple[str, Pick, Line]],
    measured: str,
    alphas: Sequence[float],
    title: str,
    path: Path,
) -> None:
    """Draw a panel for each table and split, and the legend below."""
    places = list(dict.fromkeys((line["table"], line["split"]) for line in lines))
    columns = min(len(places), 5 if len(places) % 5 == 0 else 4)
    with mpl.rc_context(STYLE):
        figure, axes = panels(-(-len(places) // columns), columns, title, width=3.6, height=2.9)
        for panel in axes[len(places) :]:
            panel.set_axis_off()
        for panel, (table, split) in zip(axes, places, strict=False):
            here = [line for line in lines if (line["table"], line["split"]) == (table, split)]
            _panel(panel, here, curves, measured, alphas)
            panel.set_title(f"{table}, {split}" if ":" in split else f"{table} by {split}", fontsize=11)
        for panel in axes[::columns]:
            panel.set_ylabel("mean absolute error")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), columns), frameon=False, fontsize=10
        )
        keep(figure, path, dpi=90)


def _panel(
    panel: Axes, lines: Sequence[Line], curves: Sequence[tuple[str, Pick, Line]], measured: str, alphas: Sequence[float]
) -> None:
    for label, pick, look in curves:
        for line in lines:
            if all(line[name] == value for name, value in pick.items()):
                panel.plot(alphas, line[measured]["error"], label=label, markersize=4.5, linewidth=1.2, **look)
    panel.set_xscale("log")
    panel.set_xticks(alphas, [str(Fraction(alpha)) for alpha in alphas])
    panel.set_xticks([], minor=True)
    panel.set_xlabel("alpha: epsilon of the last site over that of the first", fontsize=8)
    panel.grid(visible=True, which="major", alpha=0.3)
    log_y(panel)
