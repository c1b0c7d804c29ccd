"""The tables of the documentation's page, and the same for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.papers.paper import Result
from benchmarks.papers.pp_ipw.algorithm import EPSILONS
from benchmarks.papers.pp_ipw.real import PRINTED, PRINTED_PLAIN
from benchmarks.papers.pp_ipw.synthetic import CORRECTED, EFFECTS, FIXED_FITTED_ON, MEANS, OURS

Line = dict[str, Any]

NAMES = {
    CORRECTED: 'PP-IPW corrected, `InverseWeighting(scores="output")`, split, vaults',
    OURS: "`InverseWeighting`, all 2,000 units, vaults",
    MEANS: "difference in means, all 2,000 units, vaults",
}


def tables(result: Result) -> Mapping[str, Iterable[str]]:
    """Return the tables by the names of their places."""
    found = {
        "signs": _signs(result),
        "counterexamples": _counterexamples(result),
        "planned": _planned(result),
    }
    for number, name in enumerate(PRINTED, start=2):
        found[f"table {number}"] = _table(result, name)
    return found


def text(result: Result) -> Iterator[str]:
    """Yield the tables for a terminal."""
    for name, lines in tables(result).items():
        yield f"\n{name}"
        yield from lines


def share(number: float) -> str:
    """Return a share with three decimals and without a 0 in front."""
    return f"{number:.3f}".removeprefix("0")


def number(value: float) -> str:
    """Return an estimate of any size."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(line)} |" for line in lines)


def _signs(result: Result) -> Iterator[str]:
    lines = []
    for effect in EFFECTS:
        printed = [
            each for each in result["synthetic"] if (each["effect"], each["fitted_on"]) == (effect, FIXED_FITTED_ON)
        ]
        for label, measure in (("as printed, τ̂n", "score_only_wrong"), ("as printed, τ̂εn", "fully_wrong")):
            cells = {each["epsilon"]: each[measure] for each in printed}
            lines.append(_line(effect, label, f"{printed[0]['trials']} trials", cells))
        for name, label in NAMES.items():
            chosen = [
                each
                for each in result["vaults"]
                if (each["estimator"], each["effect"]) == (name, effect)
                and each["fitted_on"] in (FIXED_FITTED_ON, 2 * FIXED_FITTED_ON)
                and (name != CORRECTED or each["fitted_on"] == FIXED_FITTED_ON)
            ]
            cells = {each["epsilon"]: each["wrong"] for each in chosen}
            lines.append(_line(effect, label, f"{chosen[0]['tables']} tables", cells))
    head = ("τ", "P(wrong sign)", "repeats", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    return _rows(head, lines)


def _line(effect: float, label: str, repeats: str, cells: Mapping[float, float]) -> list[str]:
    shares = (share(cells[epsilon]) if epsilon in cells else "" for epsilon in EPSILONS)
    return [f"{effect:g}", label, repeats, *shares]


_LABELS = {
    "score only": "τ̂n as printed",
    "fully, real C_y": "τ̂εn as printed, C_y of the sample",
    "fully, C_y = 1": "τ̂εn as printed, C_y = 1",
    "corrected": "PP-IPW corrected: public bounds, clip 0.1, halves",
    "InverseWeighting": "`InverseWeighting`, all units, vaults",
    "difference in means": "difference in means, all units, vaults",
}


def _table(result: Result, name: str) -> Iterator[str]:
    """Mean estimates and, in brackets, shares of wrong signs."""
    paper = PRINTED[name]
    lines = []
    for label, key in (("**paper**, τ̂n", "score_only"), ("**paper**, τ̂εn", "fully")):
        cells = zip(paper[key], paper[f"{key}_wrong"], strict=True)
        lines.append([label, "1,000", f"{PRINTED_PLAIN[name]:,.2f}", *_cells(cells)])
    for line in (each for each in result["tables"] if each["table"] == name):
        row, _, covariates = line["row"].partition(", covariates ")
        label = _LABELS[row] + (f", X {covariates.replace('they are', 'it is')}" if covariates else "")
        plain = number(line["plain"]) if "plain" in line else ""
        lines.append([label, f"{line['runs']:,}", plain, *_cells(zip(line["mean"], line["wrong"], strict=True))])
    return _rows(("row", "runs", "τ̂", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)), lines)


def _cells(pairs: Iterable[tuple[float, float]]) -> list[str]:
    return [f"{number(mean)} ({share(wrong)})" for mean, wrong in pairs]


def _counterexamples(result: Result) -> Iterator[str]:
    setting = "where everybody has one x of length 1 and"
    head = ("result", setting, "bounded", "printed bound", "with g corrected", "exact")
    lines = (
        [
            each["where"],
            each["setting"],
            each["bounded"].replace("|", "\\|"),
            *(f"{each[name]:.2g}" for name in ("bound", "corrected_bias_bound", "probability")),
        ]
        for each in result["counterexamples"]
    )
    return _rows(head, lines)


def _planned(result: Result) -> Iterator[str]:
    lines = (
        [
            each["kind"],
            f"{each['effect']:g}",
            f"{each['epsilon']:g}",
            f"{each['planned']:.3f}",
            f"{each['measured']:.3f}",
            f"{each['tables']}",
        ]
        for each in result["signs"]
    )
    return _rows(("study of 2,000 units", "effect", "ε", "planned P(wrong sign)", "measured", "tables"), lines)
