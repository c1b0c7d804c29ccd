"""Planned against realised intervals on realistic tables: their half width, and how often there is none.

The plan knows what a planner would who knows a similar study: the outcome's mean and spread, the share treated.
"""

import argparse
import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.progress import progress
from benchmarks.realistic.runs import DELTA, EPSILON, ESTIMATORS, Run, simulate
from benchmarks.realistic.tables import KINDS
from dpcausal.planning.interval_refusals import REHEARSALS, count_refusals
from dpcausal.planning.precision import half_width

RESULTS = Path(__file__).parent.parent / "results" / "planning_realistic.json"

SKIPPED = "difference in means"
"""Estimators that do not adjust have this in their names."""


def planned(name: str, n: int, estimator: str) -> dict[str, Any]:
    """Return what a plan says about an estimator on a kind of table."""
    kind = KINDS[name]
    made, rehearsal = ESTIMATORS[estimator](kind, n), kind.rehearsal(n)
    effect = made.estimate(rehearsal, epsilon=EPSILON, delta=DELTA)
    half = half_width(replace(effect, no_interval=""))  # where it is refused, widths are compared all the same
    refusals = count_refusals(made, rehearsal, dpc.Guarantee(epsilon=EPSILON, delta=DELTA))
    return {
        "estimator": type(made).__name__,
        "delta": effect.guarantee.delta,
        "planned": float(f"{half:.4g}"),
        "planned_refused": refusals / REHEARSALS,
    }


def compared(plan: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """Return a plan beside what runs of it gave."""
    realised = float(np.median([run["half"] for run in runs]))
    refused = float(np.mean(["refused" in run for run in runs]))
    return {
        **plan,
        "realised": float(f"{realised:.4g}"),
        "planned_over_realised": round(plan["planned"] / realised, 3),
        "refused": round(refused, 3),
        "runs": len(runs),
    }


def compare(chosen: argparse.Namespace) -> None:
    """Print each setting's plan beside what became of it, and write all of them to a file."""
    file = RESULTS if chosen.publish else chosen.result
    names = [name for name in ESTIMATORS if SKIPPED not in name]
    results: dict[str, dict[str, Any]] = {}
    for kind in chosen.kind:
        for n in chosen.n:
            plans = {name: planned(kind, n, name) for name in names}
            tasks = [(kind, n, run, tuple(names), EPSILON, DELTA) for run in range(chosen.runs)]
            with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
                done = list(progress(pool.imap(simulate, tasks, chunksize=2), len(tasks), f"{kind} {n}"))
            for name in names:
                line = compared(plans[name], [run[name] for run in done])
                results.setdefault(f"{kind} {n}", {})[name] = line
                print(
                    f"{kind} {n:>6} {name:24}", "  ".join(f"{key} {value}" for key, value in line.items()), flush=True
                )
            file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
