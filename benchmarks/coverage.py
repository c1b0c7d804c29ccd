"""How often 95 % intervals cover the truth, over simulated trials with real vaults, ledgers and noise.

`python -m benchmarks.coverage --estimator difference_in_means --runs 2000 --json`
"""

import argparse
import itertools
import json
import math
import multiprocessing
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import get_args

import duckdb
import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.schema import Protects

Draw = Callable[[Generator, int], NDArray[np.float64]]

ESTIMATORS = {"difference_in_means": dpc.DifferenceInMeans()}
OUTCOMES: dict[str, tuple[Draw, Draw, float]] = {
    # Control outcomes, treated outcomes, true effect; all within 0 and 1.
    "even": (lambda g, k: g.beta(2, 3, k), lambda g, k: g.beta(3, 2, k), 0.2),
    "skewed": (lambda g, k: g.beta(1, 19, k), lambda g, k: g.beta(2, 18, k), 0.05),
    "yes_or_no": (
        lambda g, k: g.binomial(1, 0.3, k).astype(float),
        lambda g, k: g.binomial(1, 0.4, k).astype(float),
        0.1,
    ),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    estimator: str
    protects: Protects
    outcome: str
    n: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Run:
    """What one simulated study gave."""

    covered: bool
    error: float
    width: float
    sampling_sd: float
    privacy_sd: float


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """One database for each worker: opening one takes longer than a study."""
    return duckdb.connect(config={"threads": 1})


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng(seed)
    control, treated, truth = OUTCOMES[cell.outcome]
    arm = np.arange(cell.n) % 2 if cell.protects != "record" else generator.integers(0, 2, cell.n)
    outcome = np.where(arm == 1, treated(generator, cell.n), control(generator, cell.n))
    schema = dpc.Schema(treatment=dpc.Binary("arm"), outcome=dpc.Real("y", 0, 1), protects=cell.protects)
    table = connection().from_arrow(pa.table({"arm": arm, "y": outcome}))
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=0.1))
    effect = ESTIMATORS[cell.estimator].estimate(vault, epsilon=cell.epsilon, delta=cell.delta)
    low, high = effect.interval(0.95)
    assert effect.sampling_sd is not None
    return Run(low <= truth <= high, effect.estimate - truth, high - low, effect.sampling_sd, effect.privacy_sd)


def summary(cell: Cell, runs: list[Run]) -> dict[str, object]:
    share = float(np.mean([run.covered for run in runs]))
    errors = np.array([run.error for run in runs])
    return asdict(cell) | {
        "runs": len(runs),
        "coverage": round(share, 4),
        "coverage_se": round(math.sqrt(share * (1 - share) / len(runs)), 4),
        "bias": round(float(errors.mean()), 6),
        "rmse": round(float(np.sqrt((errors**2).mean())), 6),
        "mean_width": round(float(np.mean([run.width for run in runs])), 6),
        "sampling_sd": round(float(np.median([run.sampling_sd for run in runs])), 6),
        "privacy_sd": round(float(np.median([run.privacy_sd for run in runs])), 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="difference_in_means")
    parser.add_argument("--runs", type=int, default=2000, help="simulated studies for each setting")
    parser.add_argument("--n", type=int, nargs="+", default=[400, 4000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--delta", type=float, nargs="+", default=[0.0])
    parser.add_argument("--protects", nargs="+", choices=get_args(Protects), default=["record_within_arm", "record"])
    parser.add_argument("--outcome", nargs="+", choices=OUTCOMES, default=list(OUTCOMES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    settings = itertools.product(chosen.protects, chosen.outcome, chosen.n, chosen.epsilon, chosen.delta)
    cells = [Cell(chosen.estimator, *setting) for setting in settings]
    tasks = [(cell, (place, run)) for place, cell in enumerate(cells) for run in range(chosen.runs)]
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        done = list(progress(pool.imap(simulate, tasks, chunksize=50), len(tasks), "studies"))
    table = [summary(cell, done[place * chosen.runs : (place + 1) * chosen.runs]) for place, cell in enumerate(cells)]
    if chosen.json:
        print(json.dumps({"level": 0.95, "cells": table}, indent=1))
        return
    for line in table:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
