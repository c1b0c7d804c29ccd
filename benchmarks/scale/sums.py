"""Releases of arm totals, arm moments and a hundred strata, beside SQL by hand."""

from typing import Any

from benchmarks.scale.data import Study, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import beside, cost, in_turns, run
from benchmarks.scale.tasks import CAP, Task
from dpcausal.vault.answers.stratum_contrasts import contrast

ROWS = 10_000_000
TARGETS = {"fixed": 1.25, "plain": 2.0}
"""The most that a release may cost, in processor time, beside the same integers and beside plain sums."""

QUERIES = ("arm_totals", "arm_moments", "strata")


def measure(options: Options) -> dict[str, Any]:
    """Each query: a release, the same integers by hand, plain sums by hand."""
    rows, repeats = options.rows or ROWS, options.repeats or 5
    found = {}
    with written(Study(rows), options.folder) as folder:
        for query in QUERIES:
            tasks = {work: Task(work, str(folder), query) for work in ("release", *TARGETS)}
            runs = in_turns(tasks, repeats, f"sums, {query}")
            exact = run(Task("answer", str(folder), query))["value"]
            line = beside("release", runs)
            line["same_integers"] = same(query, exact, runs["fixed"][0]["value"])
            line["within_target"] = {work: line["ratios"][work]["cpu"] <= most for work, most in TARGETS.items()}
            found[query] = line
        opened = in_turns({"opening": Task("opening", str(folder))}, repeats, "sums, opening")
    opening = cost(opened["opening"])
    return {"rows": rows, "repeats": repeats, "targets": TARGETS, "queries": found, "opening": opening}


def same(query: str, exact: dict[str, int], by_hand: list[list[int]]) -> bool:
    """Whether sums by hand are what the vault adds up."""
    if query.startswith("arm"):
        names = ("size", "total", "deficit")
        sums = {f"{name}_{arm}": value for arm, *values in by_hand for name, value in zip(names, values, strict=False)}
        sums["compared"] = sums.pop("size_0") + sums["size_1"]
        return len(by_hand) == 2 and all(value == sums[name] for name, value in exact.items())
    arms = {tuple(line[:-3]): (line[-3], line[-2], line[-1]) for line in by_hand}
    cells, nobody = {key[:-1] for key in arms}, (0, 0, 0)
    each = [contrast(arms.get((*cell, 0), nobody), arms.get((*cell, 1), nobody), CAP) for cell in cells]
    return [sum(line[place] for line in each) for place in range(4)] == list(exact.values())[:4]
