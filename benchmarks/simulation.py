"""Many simulated studies of many settings, on several processes, and their results as lines."""

import argparse
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from benchmarks.progress import progress

Cell = TypeVar("Cell")
Run = TypeVar("Run")


def add_arguments(parser: argparse.ArgumentParser, runs: int) -> None:
    parser.add_argument("--runs", type=int, default=runs, help="simulated studies for each setting")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def simulated(
    cells: Sequence[Cell], simulate: Callable[[tuple[Cell, tuple[int, int]]], Run], chosen: argparse.Namespace
) -> list[list[Run]]:
    """Return what each setting gave, run by run; a run is seeded by the places of setting and run."""
    tasks = [(cell, (place, run)) for place, cell in enumerate(cells) for run in range(chosen.runs)]
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        done = list(progress(pool.imap(simulate, tasks, chunksize=25), len(tasks), "studies"))
    return [done[place * chosen.runs : (place + 1) * chosen.runs] for place in range(len(cells))]


def averages(cell: Any, runs: Sequence[Mapping[str, float]]) -> dict[str, object]:  # noqa: ANN401 (any dataclass)
    """Return a line of results: the mean over runs of each number, and bias and RMSE in place of the error."""
    mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    rmse = float(np.sqrt(np.mean([run["error"] ** 2 for run in runs])))
    line = {"bias": mean.pop("error"), "rmse": rmse} | mean
    return asdict(cell) | {"runs": len(runs)} | {name: round(value, 5) for name, value in line.items()}


def show(table: Sequence[Mapping[str, object]], chosen: argparse.Namespace) -> None:
    """Print the lines of results, for people or as JSON."""
    if chosen.json:
        print(json.dumps({"level": 0.95, "cells": table}, indent=1))
        return
    for line in table:
        print("  ".join(f"{name} {value}" for name, value in line.items()))
