"""Coverage, width, plans and verdicts on ordinary tables, through the public interface, at epsilon 1 and delta 1e-6.

`python -m benchmarks.ordinary --tables HF HIP --estimators "first ranked" --n 20000 --runs 40 --minutes 30` adds runs
until there are 40 of each for the code that runs now, or the minutes are over. Stop it and start it again as you like.

`python -m benchmarks.ordinary --summary` prints what the runs come to, with Monte Carlo errors.
`python -m benchmarks.ordinary --publish` stores that, and writes it into the page.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from benchmarks.ordinary.cells import GROUPS, TABLES
from benchmarks.ordinary.page import FILE, as_text, publish
from benchmarks.ordinary.records import FOLDER, add, code, read
from benchmarks.ordinary.runs import ESTIMATORS, Run, simulate
from benchmarks.ordinary.summary import lines, summaries

Task = tuple[str, int, int, tuple[str, ...]]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--group", nargs="+", choices=GROUPS, help="all tables of these groups; all groups by default")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--n", type=int, nargs="+", help="units; by default each table's usual number")
    parser.add_argument("--runs", type=int, default=0, help="how many there should be of each, with those on disk")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many minutes")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where runs are")
    parser.add_argument("--code", default=code(), help="whose runs to summarise; by default those of the present code")
    parser.add_argument("--summary", action="store_true", help="print what the runs come to")
    parser.add_argument("--cost", action="store_true", help="print the CPU minutes that more runs would take")
    parser.add_argument("--publish", action="store_true", help="write the summary into the page")
    chosen = parser.parse_args(words)
    names = chosen.tables or [table.name for group in chosen.group or GROUPS for table in GROUPS[group]]
    tables = [(name, n) for name in names for n in chosen.n or [TABLES[name].n]]
    tasks = _tasks(chosen.folder, tables, chosen.estimators, chosen.runs)
    done = 0
    for (name, n, _, _), found in _simulated(tasks, chosen.workers, time.monotonic() + 60 * chosen.minutes):
        done += 1
        for estimator, run in found.items():
            add(chosen.folder, name, n, estimator, run)
    if tasks:
        print(f"code {code()}: {done} of {len(tasks)} tables run")
    cells = summaries(chosen.folder, chosen.code)
    if chosen.summary:
        print(f"code {chosen.code}", *lines(cells), sep="\n")
    if chosen.cost:
        seconds = sum(cell.get("cpu", 0.0) for estimators in cells.values() for cell in estimators.values())
        for runs in (400, 100, 40):
            print(f"{runs} runs of all {len(cells)} tables: {seconds * runs / 60:,.0f} CPU minutes")
    if chosen.publish:
        FILE.write_text(as_text({"code": chosen.code, "cells": cells}), encoding="utf-8")
        publish()


def _tasks(folder: Path, tables: Sequence[tuple[str, int]], estimators: Sequence[str], runs: int) -> list[Task]:
    """Return the runs that are not there yet, all first runs before all second ones."""
    there = {
        (name, n, each): {run["run"] for run in read(folder, name, n, each, code())}
        for name, n in tables
        for each in estimators
    }
    return [
        (name, n, run, left)
        for run in range(runs)
        for name, n in tables
        if (left := tuple(each for each in estimators if run not in there[name, n, each]))
    ]


def _simulated(tasks: Sequence[Task], workers: int, until: float) -> Iterator[tuple[Task, dict[str, Run]]]:
    """Yield tasks and what they gave, as they are done; begin none after the time is over."""
    left = iter(tasks)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[dict[str, Run]], Task] = {}
        while True:
            while len(running) < workers and time.monotonic() < until and (task := next(left, None)):
                running[pool.submit(simulate, task)] = task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


if __name__ == "__main__":
    main()
