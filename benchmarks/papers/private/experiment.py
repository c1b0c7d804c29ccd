"""Which tasks a run has, what it leaves out, and the result that is made of what they found."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import from_files
from benchmarks.papers.paper import Result, Task
from benchmarks.papers.private import synthesis, work
from benchmarks.papers.private.grid import (
    DATA,
    EPSILONS,
    FEWEST,
    NEIGHBOURS,
    SPLIT_EPSILONS,
    SPLITS,
    USUAL,
    Level,
)
from benchmarks.papers.private.methods import METHODS

LEVELS: tuple[Level, ...] = ("label", "sample")
QUICK_EPSILONS = (1.0, 4.0)
COSTED = ("label", "sample", "label_printed", "sample_printed", "ipw_printed", "smooth", "dpci_printed")
"""Methods whose time and memory are measured."""
SYNTHETIC = ("IHDP", "Lalonde", "Synth")
"""Data sets that are synthesised; ACIC would take hours, as it took the paper's authors."""
SYNTHETIC_EPSILONS = (1.0, 4.0)


def names(quick: bool, data: Path | None) -> Sequence[str]:
    """Return the data sets of a run: those that need no files, and in a quick run with files the smallest."""
    there = [name for name in DATA if data is not None or not from_files([name])]
    return [name for name in there if not quick or name in {"Lalonde", "Synth"}]


def tasks(quick: bool, data: Path | None) -> Sequence[Task]:
    """Return the tasks of a run, the dearest last."""
    folder = None if data is None else str(data)
    chosen = names(quick, data)
    found = [*_main(quick, chosen, folder), *([] if quick else _full(chosen, folder))]
    return sorted(found, key=lambda task: task.key.startswith("sweep ours sample ACIC"))


def _main(quick: bool, chosen: Sequence[str], folder: str | None) -> Iterator[Task]:
    epsilons, neighbours, repeats = (QUICK_EPSILONS, (USUAL,), 3) if quick else (EPSILONS, NEIGHBOURS, FEWEST)
    for name in chosen:
        yield Task(f"reference {name}", work.reference, (name, folder))
        for epsilon in epsilons:
            yield Task(f"theorem {name} {epsilon:g}", work.theorem_3, (name, folder, epsilon))
            keys = tuple(METHODS)
            yield Task(f"methods {name} {epsilon:g}", work.methods, (name, folder, epsilon, repeats, keys))
    for by, level, counts in (
        ("printed", "label", neighbours),
        ("ours", "label", neighbours),
        ("printed", "sample", (USUAL,)),
        ("ours", "sample", neighbours),
    ):
        for name in chosen:
            for count in sorted(counts, key=lambda count: count != USUAL):
                for epsilon in epsilons:
                    key = f"sweep {by} {level} {name} {count} {epsilon:g}"
                    yield Task(key, work.sweep, (by, level, name, folder, count, epsilon, repeats))


def _full(chosen: Sequence[str], folder: str | None) -> Iterator[Task]:
    for name in chosen:
        for epsilon in SPLIT_EPSILONS:
            for scoring in dict.fromkeys(tenths[0] for tenths in SPLITS):
                key = f"split {name} {epsilon:g} {scoring}"
                yield Task(key, work.split, (name, folder, epsilon, scoring, FEWEST))
    for method in COSTED:
        yield Task(f"cost {method}", work.cost_of, (tuple(chosen), folder, method))
    if synthesis.available():
        synthetic = tuple(name for name in chosen if name in SYNTHETIC)
        for algorithm in synthesis.ALGORITHMS:
            yield Task(f"cost {algorithm}", work.cost_of, (synthetic, folder, algorithm))
        for epsilon in SYNTHETIC_EPSILONS:
            for algorithm in synthesis.ALGORITHMS:
                for name in synthetic:
                    key = f"synthetic {name} {algorithm} {epsilon:g}"
                    yield Task(key, work.synthetic, (name, folder, algorithm, epsilon, FEWEST))


def left_out(quick: bool, data: Path | None) -> Sequence[str]:
    """Return what a run leaves out, and why."""
    found = []
    if data is None:
        found.append("IHDP, which does not ship with the benchmarks: give --data FOLDER")
    if quick:
        found.append("ACIC, and IHDP with it: a quick run has Lalonde and Synth")
    if quick:
        found.append(
            "six of eight epsilons, N = 1, 3 and 7, the division of epsilon (Fig. 12), time and memory (Tables IV "
            "and V), 7 of 10 repeats at sample level: leave out --quick"
        )
    if quick or not synthesis.available():
        why = "they take minutes" if quick else "the package mbi is not installed: pip install 'opendp[mbi]'"
        found.append(f"AIM and MST, synthetic data: {why}")
    elif data is not None:
        found.append("AIM and MST on ACIC: hours for each estimate (the paper: 12,570 and 4,862 s)")
    return found


def result(found: Mapping[str, Any]) -> Result:
    """Return the figures from what the tasks found."""
    by = [(key.split(), value) for key, value in found.items()]
    epsilons = sorted({float(words[-1]) for words, _ in by if words[0] == "methods"})
    return {
        "paper": "private",
        "noise": "discrete",
        "epsilons": epsilons,
        "references": {words[1]: value for words, value in by if words[0] == "reference"},
        "methods": list(_curves(by, "methods", ("data",), "method")),
        "sweeps": list(_curves(by, "sweep", ("by", "level", "data", "neighbours"), "setting")),
        "splits": [
            {"data": words[1], "epsilon": float(words[2]), "split": split, **value}
            for words, each in by
            if words[0] == "split"
            for split, value in each.items()
        ],
        "theorem": [
            {"data": words[1], "epsilon": float(words[2]), "setting": setting, **arm}
            for words, each in by
            if words[0] == "theorem"
            for setting, arms in each.items()
            for arm in arms
        ],
        "cost": [
            {"data": name, "method": words[1], **value}
            for words, each in by
            if words[0] == "cost"
            for name, value in each.items()
        ],
        "synthetic": [
            {"data": words[1], "method": words[2], "epsilon": float(words[3]), **value}
            for words, value in by
            if words[0] == "synthetic"
        ],
    }


def _curves(
    by: Sequence[tuple[list[str], Any]], kind: str, named: Sequence[str], last: str
) -> Iterator[dict[str, Any]]:
    """Yield curves over epsilon, one for each name that the tasks of a kind returned."""
    gathered: dict[tuple[str, ...], dict[float, Any]] = {}
    for words, value in by:
        if words[0] == kind:
            for name, each in value.items():
                gathered.setdefault((*words[1:-1], name), {})[float(words[-1])] = each
    for key, at in gathered.items():
        lines = [at[epsilon] for epsilon in sorted(at)]
        names = dict(zip((*named, last), key, strict=True))
        numbers = {word: [line[word] for line in lines] for word in lines[0] if word != "repeats"}
        yield names | {"repeats": min(line["repeats"] for line in lines)} | numbers
