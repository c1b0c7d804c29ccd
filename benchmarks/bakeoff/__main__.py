"""Private intervals of this library and of others, on the same tables with the same guarantee.

`python -m benchmarks.bakeoff --runs 200 --publish`
"""

import argparse
import json
import multiprocessing
from pathlib import Path
from typing import Any

from benchmarks.bakeoff.methods import DELTA, EPSILON
from benchmarks.bakeoff.page import write
from benchmarks.bakeoff.runs import Run, simulate, summary
from benchmarks.bakeoff.tables import SETTINGS
from benchmarks.parts import add_result_options, result_file
from benchmarks.progress import progress


def main(words: list[str] | None = None) -> None:
    """Run the bake-off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--n", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    add_result_options(parser)
    chosen = parser.parse_args(words)
    file = result_file(parser, chosen, "bakeoff")
    results: dict[str, Any] = {"runs": chosen.runs, "epsilon": EPSILON, "delta": DELTA, "cells": {}, "raw": {}}
    for name in chosen.setting:
        for n in chosen.n:
            done = _simulated([(name, n, run) for run in range(chosen.runs)], chosen.workers)
            results["cells"][f"{name} {n}"] = summary(done)
            results["raw"][f"{name} {n}"] = _raw(done)
            for key, cell in results["cells"][f"{name} {n}"].items():
                print(f"{name:9} {n:>6} {key:26}", "  ".join(f"{what} {value}" for what, value in cell.items()))
    _save(results, file)
    if chosen.publish:
        write(results)


def _simulated(tasks: list[tuple[str, int, int]], workers: int) -> list[dict[str, Run]]:
    label = f"{tasks[0][0]} {tasks[0][1]}"
    if workers == 0:
        return [simulate(task) for task in tasks]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return list(progress(pool.imap(simulate, tasks, chunksize=5), len(tasks), label))


def _raw(done: list[dict[str, Run]]) -> dict[str, dict[str, list[float]]]:
    """Return the error and half width of every interval."""
    return {
        key: {what: [float(f"{run[key][what]:.4g}") for run in done] for what in ("error", "half")} for key in done[0]
    }


def _save(results: dict[str, Any], file: Path) -> None:
    """Write results, what is raw on one line each."""
    raw = {cell: {key: json.dumps(lists) for key, lists in keys.items()} for cell, keys in results["raw"].items()}
    text = json.dumps(results | {"raw": raw}, indent=1)
    for keys in raw.values():
        for line in keys.values():
            text = text.replace(json.dumps(line), line)
    file.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
