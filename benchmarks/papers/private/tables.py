"""The tables of the page and of the terminal, from the figures of a run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers.private.grid import COEFFICIENTS, DATA, LIMITS, SPLIT, Level, adaptive
from benchmarks.papers.private.methods import METHODS, Method
from benchmarks.papers.private.published import MEGABYTES, SECONDS

Result = Mapping[str, Any]
Cells = dict[tuple[str, int, float], dict[str, float]]
"""Errors of settings, for each data set, number of neighbours and epsilon."""


def tables(result: Result) -> dict[str, Iterable[str]]:
    """Return every table of the page."""
    return {
        "competitors": competitors(result),
        "label": label(result),
        "truth": truth(result),
        "answer": answer(result),
        "limits": limits(result),
        "coefficients": coefficients(result),
        "splits": splits(result),
        "theorem": theorem(result),
        "equation": equation(result),
        "cost": cost(result),
    }


def text(result: Result) -> Iterator[str]:
    """Yield the tables that this result has numbers for."""
    for name, lines in tables(result).items():
        yield name
        yield from lines
        yield ""


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table of the documentation."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"


def short(value: float) -> str:
    """Return a number with two or three digits."""
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def names(result: Result) -> list[str]:
    """Return the data sets of a result, in the paper's order."""
    return [name for name in DATA if name in result["references"]]


def methods(result: Result) -> dict[str, Method]:
    """Return the methods that a result has; one was added after the stored run."""
    there = {line["method"] for line in result["methods"]}
    return {key: method for key, method in METHODS.items() if key in there}


def cells(result: Result, by: str, level: Level, *, of: Sequence[str]) -> Cells:
    """Return the errors of some settings, cell by cell."""
    found: Cells = {}
    for line in result["sweeps"]:
        if (line["by"], line["level"]) == (by, level) and line["setting"] in of:
            for epsilon, mean in zip(result["epsilons"], line["mean"], strict=True):
                at = line["data"], int(line["neighbours"]), epsilon
                found.setdefault(at, {})[line["setting"]] = mean
    return found


def best(found: Cells) -> Counter[str]:
    """Return in how many cells each setting has the smallest error."""
    return Counter(min(each, key=lambda setting: each[setting]) for each in found.values())


def excess(found: Cells, setting: str) -> float:
    """Return the geometric mean, over cells, of a setting's error over the smallest one."""
    ratios = [np.log(each[setting] / min(each.values())) for each in found.values()]
    return float(np.exp(np.mean(ratios)))


def limit_settings(level: Level) -> list[str]:
    """Return the fixed limits and the adaptive one with the paper's coefficient."""
    return [*(f"limit {limit}" for limit in LIMITS), adaptive(level, paper=True)]


def coefficient_settings() -> list[str]:
    """Return every coefficient."""
    return [f"coefficient {error:g}" for error in COEFFICIENTS]


ADAPTIVE = (0.01, 0.003, 0.001)
"""Coefficients whose adaptive limits stand beside fixed ones: the paper's c, the default here, the paper's h."""

SWEEPS: tuple[tuple[str, Level, str], ...] = (
    ("printed", "label", "label, as printed"),
    ("ours", "label", "label, here"),
    ("printed", "sample", "sample, as printed"),
    ("ours", "sample", "sample, here"),
)


def _wins(result: Result, settings: Mapping[Level, Sequence[str]], heads: Sequence[str]) -> Iterator[str]:
    def lines() -> Iterator[list[str]]:
        for by, level, words in SWEEPS:
            found = cells(result, by, level, of=settings[level])
            if found:
                won = best(found)
                numbers = [f"{won[each]} ({excess(found, each):.2f})" for each in settings[level]]
                yield [words, str(len(found)), *numbers]

    return rows(["level", "cells", *heads], lines())


def limits(result: Result) -> Iterator[str]:
    """Figures 3, 5, 8 and 10: which limit is best, and how much worse than the best one each is."""
    of = [*(f"limit {limit}" for limit in LIMITS), *(f"coefficient {error:g}" for error in ADAPTIVE)]
    heads = [each.replace("coefficient", "adaptive,") for each in of]
    return _wins(result, {"label": of, "sample": of}, heads)


def answer(result: Result) -> Iterator[str]:
    """Does the adaptive limit help? At label level, in words with their numbers."""
    of = [*limit_settings("label"), *(f"coefficient {error:g}" for error in ADAPTIVE[1:])]
    for by, words in (("printed", "As printed"), ("ours", "Here")):
        four = cells(result, by, "label", of=limit_settings("label"))
        won, six = best(four), cells(result, by, "label", of=of)
        over = {each: f"{excess(six, each):.2f}" for each in of}
        yield (
            f"- {words}, of limits 1, 10, 50 and the adaptive one with the paper's c = 0.01, the smallest error has "
            f"limit 1 in {won['limit 1']} of {len(four)} cells, the adaptive one in {won['coefficient 0.01']}. Over "
            f"the best in each cell, errors are on average {over['coefficient 0.01']} times as large with c = 0.01, "
            f"{over['coefficient 0.003']} with 0.003, {over['coefficient 0.001']} with 0.001, and {over['limit 1']} "
            "with limit 1."
        )


def coefficients(result: Result) -> Iterator[str]:
    """Figures 4, 6, 9 and 11: which coefficient is best."""
    of = coefficient_settings()
    return _wins(result, {"label": of, "sample": of}, [f"{error:g}" for error in COEFFICIENTS])


def competitors(result: Result) -> Iterator[str]:
    """Figure 2 as a table: mean and standard deviation of relative errors."""
    shown = [epsilon for epsilon in (1.0, 4.0) if epsilon in result["epsilons"]]

    def numbers(key: str, epsilon: float) -> Iterator[str]:
        at = result["epsilons"].index(epsilon)
        for name in names(result):
            line = next(each for each in result["methods"] if (each["data"], each["method"]) == (name, key))
            yield f"{short(line['mean'][at])} ± {short(line['sd'][at])}"

    def synthetic(algorithm: str, epsilon: float) -> Iterator[str]:
        for name in names(result):
            found = [
                line
                for line in result["synthetic"]
                if (line["data"], line["method"], line["epsilon"]) == (name, algorithm, epsilon)
            ]
            yield f"{short(found[0]['mean'])} ± {short(found[0]['sd'])}" if found else "-"

    def lines() -> Iterator[list[str]]:
        for epsilon in shown:
            for key, method in methods(result).items():
                private = "yes" if method.private else "no"
                yield [f"{epsilon:g}", method.label, method.level, private, *numbers(key, epsilon)]
            for algorithm in dict.fromkeys(line["method"] for line in result["synthetic"]):
                yield [f"{epsilon:g}", f"{algorithm}, short list", "sample", "yes", *synthetic(algorithm, epsilon)]

    return rows(["epsilon", "method", "level", "private", *names(result)], lines())


def label(result: Result) -> Iterator[str]:
    """Return the label level as printed beside this library's with the same bounds, against matching on own scores."""

    def lines() -> Iterator[list[str]]:
        for name in names(result):
            by = {line["method"]: line for line in result["methods"] if line["data"] == name}
            yield [f"{name}, as printed", *map(short, by["label_printed"]["mean"])]
            yield ["… here, the table's own bounds", *map(short, by["label_own_bounds"]["own"])]
            yield ["… here, public bounds", *map(short, by["label"]["own"])]

    return rows(["epsilon", *(f"{epsilon:g}" for epsilon in result["epsilons"])], lines())


def truth(result: Result) -> Iterator[str]:
    """Errors against the true effect at sample level."""
    shown = [place for place, epsilon in enumerate(result["epsilons"]) if epsilon in {0.5, 1.0, 2.0, 4.0}]

    def lines() -> Iterator[list[str]]:
        for key, method in methods(result).items():
            of = [
                line
                for name in names(result)
                for line in result["methods"]
                if (line["data"], line["method"]) == (name, key)
            ]
            yield [method.label, *(" ".join(short(line["truth"][place]) for place in shown) for line in of)]

    head = "method, epsilon " + " ".join(f"{result['epsilons'][place]:g}" for place in shown)
    return rows([head, *names(result)], lines())


def splits(result: Result) -> Iterator[str]:
    """Figure 12: the best division of epsilon, and the paper's."""
    paper = ":".join(f"{share:g}" for share in SPLIT)

    def lines() -> Iterator[list[str]]:
        for name, epsilon in dict.fromkeys((line["data"], line["epsilon"]) for line in result["splits"]):
            of = [line for line in result["splits"] if (line["data"], line["epsilon"]) == (name, epsilon)]
            found = {line["split"]: line["mean"] for line in of}
            first = min(found, key=lambda split: found[split])
            low = [mean for split, mean in found.items() if float(split.split(":")[1]) <= 0.3]
            high = [mean for split, mean in found.items() if float(split.split(":")[1]) >= 0.6]
            means = [short(float(np.median(each))) for each in (low, high)]
            yield [f"{name}, epsilon {epsilon:g}", first, short(found[first]), short(found[paper]), *means]

    heads = ["", "best division", "its error", f"{paper}, the paper's", "median, arms ≤ 0.3", "median, arms ≥ 0.6"]
    return rows(heads, lines())


def theorem(result: Result) -> Iterator[str]:
    """Theorem 3 at epsilon 1: the parts of the error of the treated outcomes' mean, and the bound."""

    def lines() -> Iterator[list[str]]:
        for line in result["theorem"]:
            if line["epsilon"] == 1.0 and line["arm"] == 1:
                words = line["setting"].replace("coefficient", "adaptive, c =")
                numbers = [line[part] for part in ("noise", "matching", "simulated", "bound", "bound_as_printed")]
                parts = [f"{number:.3g}" for number in numbers]
                counted = [str(line[part]) for part in ("replaced", "replaced_as_printed", "moved", "unmatched")]
                weight = f"{line['heaviest']:.3g} of {line['limit']:g}"
                yield [line["data"], words, *counted, *parts, weight]

    heads = ["data", "limit", "R, with k N", "R, as printed", "matches moved", "units without a match"]
    heads += ["noise", "matching", "error, simulated", "bound", "bound, R as printed", "largest weight of k"]
    return rows(heads, lines())


def equation(result: Result) -> Iterator[str]:
    """Equations 9 and 10: the limit as printed, and the one that minimises Equation 8."""

    def lines() -> Iterator[list[str]]:
        for name in names(result):
            reference = result["references"][name]
            pairs = zip(reference["limits"]["printed"], reference["limits"]["corrected"], strict=True)
            most = f"{reference['most_without_limit']:g}"
            yield [name, most, *(f"{printed:g} / {corrected:g}" for printed, corrected in pairs)]

    epsilons = [f"{epsilon:g}" for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)]
    return rows(["data", "most without a limit", *epsilons], lines())


def cost(result: Result) -> Iterator[str]:
    """Return seconds and megabytes beside the paper's Tables IV and V."""
    found = {(line["method"], line["data"]): line for line in result["cost"]}

    def lines() -> Iterator[list[str]]:
        for key in dict.fromkeys(method for method, _ in found):
            method = METHODS.get(key)
            words, paper = (method.label, method.paper) if method else (f"{key}, short list", _STANDS.get(key, key))
            for unit, published in (("seconds", SECONDS), ("megabytes", MEGABYTES)):
                of = [found.get((key, name)) for name in DATA]
                numbers = [f"{each[unit]:g}" if each else "-" for each in of]
                theirs = [f"{published[paper][name]:g}" for name in DATA]
                yield [words, unit, *(f"{a} [{b}]" for a, b in zip(numbers, theirs, strict=True))]

    return rows(["method", "", *(f"{name}" for name in DATA)], lines())


_STANDS = {"MST": "PrivSyn"}
