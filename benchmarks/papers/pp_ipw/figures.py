"""The paper's figures, and its two tables of wrong signs as figures, from the result of a run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.paper import Result
from benchmarks.papers.pp_ipw.algorithm import EPSILONS
from benchmarks.papers.pp_ipw.real import PRINTED
from benchmarks.papers.pp_ipw.synthetic import CORRECTED, EFFECTS, FIXED_EPSILON, FIXED_FITTED_ON, MEANS, OURS
from benchmarks.pictures import BLUE, GREEN, GREY, INK, PURPLE, VERMILLION, keep

Line = dict[str, Any]

VAULTS = {
    CORRECTED: ("PP-IPW corrected, split (vaults)", BLUE, "s"),
    OURS: ("InverseWeighting (vaults)", GREEN, "D"),
    MEANS: ("difference in means (vaults)", PURPLE, "v"),
}


def draw(result: Result, folder: Path) -> None:
    """Draw all figures of a result into a folder."""
    drawings: dict[str, Callable[[Result], Figure]] = {"bias": _bias, "signs": _signs, "estimates": _estimates}
    if result["tables"]:
        drawings["tables"] = _tables
    for name, drawing in drawings.items():
        keep(drawing(result), folder / f"papers_pp_ipw_{name}.svg")


def _panels(rows: int, columns: int, title: str, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.0 * columns, height * rows + 0.5), layout="constrained")
    figure.suptitle(title, fontsize=12)
    return figure, np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel().tolist()


def _by_epsilon(lines: Sequence[Line], effect: float, estimator: str) -> list[Line]:
    """Return the lines of Figures 2a and 2b: all epsilons, the score fitted on 1,000 units, or on all where unsplit."""
    m = FIXED_FITTED_ON if estimator == CORRECTED else 2 * FIXED_FITTED_ON
    at = (estimator, effect, m)
    return [each for each in lines if (each["estimator"], each["effect"], each["fitted_on"]) == at]


def _printed_by(result: Result, effect: float, x: str) -> list[Line]:
    fixed, value = ("fitted_on", FIXED_FITTED_ON) if x == "epsilon" else ("epsilon", FIXED_EPSILON)
    return [each for each in result["synthetic"] if each["effect"] == effect and each[fixed] == value]


def _bias(result: Result) -> Figure:
    trials = result["synthetic"][0]["trials"]
    figure, axes = _panels(2, 2, f"Figure 1: bias g that noise in the score gives the estimate, {trials} trials")
    styles: dict[str, tuple[str, dict[str, Any]]] = {
        "corrected_bias": ("Lemma 3, corrected", {"color": BLUE}),
        "printed_bias": ("Lemma 3, as printed", {"color": VERMILLION, "linestyle": "--"}),
        "bias": ("simulated", {"color": INK, "marker": "o", "linestyle": "none", "markersize": 6}),
        "bias_of_debiased": (
            "simulated, weights corrected",
            {"color": GREEN, "marker": "D", "linestyle": "none", "markersize": 5},
        ),
    }
    settings = [(x, effect) for x in ("fitted_on", "epsilon") for effect in EFFECTS]
    for panel, (x, effect) in zip(axes, settings, strict=True):
        lines = _printed_by(result, effect, x)
        for name, (words, style) in styles.items():
            panel.plot([line[x] for line in lines], [line[name] for line in lines], label=words, **style)
        panel.axhline(0, color=GREY, linewidth=0.8)
        panel.set_ylabel("bias g")
        fixed = f"ε = {FIXED_EPSILON:g}" if x == "fitted_on" else f"m = {FIXED_FITTED_ON:,}"
        _finish(panel, f"τ = {effect:g}, {fixed}", x)
    axes[0].legend(fontsize=8)
    return figure


def _finish(panel: Axes, title: str, x: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_xlabel("ε" if x == "epsilon" else "m, units that the score is fitted on")
    panel.grid(visible=True, alpha=0.3)


def _signs(result: Result) -> Figure:
    trials, tables = result["synthetic"][0]["trials"], result["vaults"][0]["tables"]
    title = (
        f"Figures 2a, 2b: wrong signs, d = 50, n = 1,000; {trials} trials as printed, {tables} tables through vaults"
    )
    figure, axes = _panels(1, 2, title, height=4.2)
    for panel, effect, place in zip(axes, EFFECTS, "ab", strict=True):
        lines = _printed_by(result, effect, "epsilon")
        at = [line["epsilon"] for line in lines]
        panel.plot(at, [line["score_only_wrong"] for line in lines], "o-", color=GREY, label="as printed, τ̂n")
        panel.plot(at, [line["fully_wrong"] for line in lines], "^-", color=VERMILLION, label="as printed, τ̂εn")
        for name, (words, colour, marker) in VAULTS.items():
            chosen = _by_epsilon(result["vaults"], effect, name)
            wrong = [line["wrong"] for line in chosen]
            panel.plot([line["epsilon"] for line in chosen], wrong, f"{marker}--", color=colour, label=words)
        panel.set_ylim(-0.02, 0.72)
        panel.set_ylabel("P(wrong sign)")
        _finish(panel, f"2{place}: τ = {effect:g}", "epsilon")
    axes[1].legend(fontsize=8)
    return figure


def _estimates(result: Result) -> Figure:
    title = f"Figures 2c, 2d: mean estimates and 95 % intervals of the mean, ε = {FIXED_EPSILON:g}"
    figure, axes = _panels(2, 2, title)
    for place, effect in enumerate(EFFECTS):
        above, below = axes[place], axes[2 + place]
        lines = _printed_by(result, effect, "fitted_on")
        shown = (("plain", "τ̂", INK, "x"), ("one_score_only", "τ̂n", GREY, "o"), ("one_fully", "τ̂εn", VERMILLION, "^"))
        for shift, (name, words, colour, marker) in enumerate(shown):
            _bars(above, lines, name, shift, {"label": f"as printed, {words}", "color": colour, "marker": marker})
        words, colour, marker = VAULTS[CORRECTED]
        chosen = [
            line
            for line in result["vaults"]
            if (line["estimator"], line["effect"], line["epsilon"]) == (CORRECTED, effect, FIXED_EPSILON)
        ]
        chosen.sort(key=lambda line: line["fitted_on"])
        _bars(below, chosen, "mean", 1, {"label": words, "color": colour, "marker": marker})
        for panel, who in ((above, f"{lines[0]['trials']} trials"), (below, f"{chosen[0]['tables']} tables")):
            panel.axhline(effect, color=GREY, linestyle=":", label="true effect")
            panel.set_ylabel("estimate")
            _finish(panel, f"2{'cd'[place]}: τ = {effect:g}, {who}", "fitted_on")
            panel.legend(fontsize=8)
    return figure


def _bars(panel: Axes, lines: Sequence[Line], name: str, shift: int, look: dict[str, Any]) -> None:
    at = [line["fitted_on"] + 40 * (shift - 1) for line in lines]
    errors = [1.96 * line[f"{name}_se"] for line in lines]
    panel.errorbar(at, [line[name] for line in lines], yerr=errors, capsize=3, **look)


def _tables(result: Result) -> Figure:
    figure, axes = _panels(1, 2, "Tables 2 and 3: wrong signs, the paper's numbers beside ours", height=4.4)
    rows = {
        "IHDP": {
            "score only, covariates as they are": ("ours, τ̂n, X as it is", GREY, "o", "--"),
            "score only, covariates in the unit ball": ("ours, τ̂n, X in the unit ball", PURPLE, "v", "--"),
            "fully, real C_y, covariates in the unit ball": ("ours, τ̂εn, unit ball, real C_y", VERMILLION, "^", "--"),
            "corrected": ("corrected", BLUE, "s", "-"),
            "difference in means": ("difference in means (vaults)", GREEN, "D", "-"),
        },
        "Lalonde": {
            "score only, covariates in the unit ball": ("ours, τ̂n", GREY, "o", "--"),
            "fully, C_y = 1, covariates in the unit ball": ("ours, τ̂εn, C_y = 1", PURPLE, "P", "--"),
            "fully, real C_y, covariates in the unit ball": ("ours, τ̂εn, real C_y", VERMILLION, "^", "--"),
            "corrected": ("corrected", BLUE, "s", "-"),
            "difference in means": ("difference in means (vaults)", GREEN, "D", "-"),
        },
    }
    for panel, (name, drawn), number in zip(axes, rows.items(), (2, 3), strict=True):
        panel.plot(EPSILONS, PRINTED[name]["score_only_wrong"], "x-", color=INK, label="paper, τ̂n")
        panel.plot(EPSILONS, PRINTED[name]["fully_wrong"], "+:", color=INK, markersize=9, label="paper, τ̂εn")
        for line in (line for line in result["tables"] if line["table"] == name and line["row"] in drawn):
            words, colour, marker, style = drawn[line["row"]]
            panel.plot(EPSILONS, line["wrong"], f"{marker}{style}", color=colour, label=words)
        panel.set_ylim(-0.02, 0.82)
        panel.set_ylabel("P(wrong sign)")
        _finish(panel, f"Table {number}: {name}", "epsilon")
        panel.legend(fontsize=7, loc="upper right", ncols=2)
    return figure
