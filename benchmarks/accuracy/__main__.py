"""The command: `python -m benchmarks.accuracy --help`."""

import argparse
import json
import multiprocessing
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from benchmarks.accuracy.entries import ENTRIES, EPSILONS
from benchmarks.accuracy.figures import draw
from benchmarks.accuracy.memory import measured
from benchmarks.accuracy.published import REIMPLEMENTED, SECONDS
from benchmarks.accuracy.references import references
from benchmarks.accuracy.runs import Cell, Run, run, timed
from benchmarks.accuracy.summary import Line, line, printed, rounded, times
from benchmarks.data.files import add_data_option
from benchmarks.datasets import NAMES, from_files, load
from benchmarks.leaderboard.contestants import GROUPS
from benchmarks.leaderboard.figures import draw as leaderboard_figures
from benchmarks.leaderboard.page import publish
from benchmarks.leaderboard.suite import PLANS, leaderboard, tables_for
from benchmarks.progress import progress

Task = tuple[Cell, str | None]

LARGE = "ACIC"


def repeats_of(cell: Cell, repeats: int) -> int:
    """Fewer for a score of all covariates on the widest table; how many is in the result."""
    entry = ENTRIES[cell.entry]
    if cell.data == LARGE and entry.fits:
        return max(repeats // (2 if entry.protects == "outcome" else 5), 1)
    return repeats


def papers(  # noqa: PLR0913
    names: Sequence[str],
    folder: str | None,
    *,
    epsilons: Sequence[float],
    repeats: int,
    timings: int,
    workers: int,
) -> dict[str, object]:
    """Run the suite on the data sets of the private-matching paper."""
    memory = measured(names, folder) if timings else []
    compared = {name: references(load(name, folder)) for name in names}
    cells = [Cell(name, entry, epsilon) for name in names for entry in ENTRIES for epsilon in epsilons]
    once = [Cell(name, entry, 1.0) for name in names for entry in ENTRIES] if timings else []
    tasks = [(cell, folder) for cell in cells for _ in range(repeats_of(cell, repeats))]
    done = _done(run, tasks, "estimates", workers)
    # One at a time, so that workers do not slow each other down.
    clocked = _done(timed, [(cell, folder) for cell in once for _ in range(timings)], "timings", 1 if timings else 0)
    ends = list(accumulate((repeats_of(cell, repeats) for cell in cells), initial=0))
    lines = [
        line(cell, done[start:end], compared[cell.data])
        for cell, (start, end) in zip(cells, pairwise(ends), strict=True)
    ]
    seconds = [times(cell, clocked[place * timings : (place + 1) * timings]) for place, cell in enumerate(once)]
    return {
        "suite": "papers",
        "level": 0.95,
        "references": {
            name: {which: rounded(value, 6) for which, value in each.items()} for name, each in compared.items()
        },
        "cells": lines,
        "times": [_beside_paper(each) for each in seconds],
        "memory": memory,
        "reimplemented": {"epsilons": EPSILONS, "error_to_matching": REIMPLEMENTED},
    }


def _done(work: Callable[[Task], Run], tasks: Sequence[Task], what: str, workers: int) -> list[Run]:
    if workers == 0:  # here and now, without a process of its own
        return list(map(work, tasks))
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return list(progress(pool.imap(work, tasks, chunksize=10 if workers > 1 else 1), len(tasks), what))


def _beside_paper(each: Line) -> Line:
    if each["estimator"] != "propensity matching":
        return each | {"paper": None}
    return each | {"paper": next(SECONDS[level][str(each["data"])] for level in SECONDS if level == each["protects"])}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--suite", choices=["papers", "leaderboard"], default="papers")
    add_data_option(parser)
    parser.add_argument("--datasets", nargs="+", choices=sorted({*NAMES, *PLANS}), help="all, if left out")
    parser.add_argument("--results", default="leaderboard", help="a folder that keeps the leaderboard's runs")
    parser.add_argument("--epsilons", nargs="+", type=float, help="the leaderboard's plan, if left out")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS, help="whose estimators to run")
    parser.add_argument("--repeats", type=int, default=50, help="estimates for each setting")
    parser.add_argument("--quick", action="store_true", help="one epsilon, or on the leaderboard one repeat, and done")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0 for none but this one")
    parser.add_argument("--figures", help="a folder to draw figures into")
    parser.add_argument("--publish", action="store_true", help="put the leaderboard's run into the documentation")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(given)
    chosen.data = str(chosen.data) if chosen.data else None
    known = NAMES if chosen.suite == "papers" else tables_for(chosen.data)
    names = chosen.datasets or known
    if not set(names) <= set(known):
        parser.error(f"this suite has {', '.join(known)}" + ("" if chosen.data else ", and more with --data FOLDER"))
    if chosen.publish and (chosen.quick or chosen.suite != "leaderboard"):
        parser.error("--publish is for a run of the leaderboard that is not quick")
    if chosen.suite == "leaderboard":
        _leaderboard(chosen, names)
        return
    if from_files(names) and chosen.data is None:
        parser.error("these data sets are read from files: give --data FOLDER, or --datasets without IHDP")
    result = papers(
        names,
        chosen.data,
        epsilons=(1.0,) if chosen.quick else EPSILONS,
        repeats=3 if chosen.quick else chosen.repeats,
        timings=0 if chosen.quick else 3,
        workers=chosen.workers,
    )
    if chosen.figures:
        draw(result, Path(chosen.figures))
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for title in ("cells", "times", "memory"):
        table = result[title]
        if isinstance(table, list) and table:
            print(printed(table, title), end="\n\n")


def _leaderboard(chosen: argparse.Namespace, names: Sequence[str]) -> None:
    result = leaderboard(
        names,
        chosen.data,
        chosen.results,
        repeats=1 if chosen.quick else chosen.repeats,
        workers=chosen.workers,
        epsilons=chosen.epsilons,
        groups=chosen.groups,
    )
    if chosen.publish:
        publish(result)
    if chosen.figures:
        leaderboard_figures(result, Path(chosen.figures))
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    for title in ("lines", "choices"):
        if result[title]:
            print(printed(result[title], title), end="\n\n")


if __name__ == "__main__":
    main()
