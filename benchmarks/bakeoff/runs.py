"""Intervals on one table after another, and what they come to."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.bakeoff.methods import EPSILON, PEERS, without_privacy
from benchmarks.bakeoff.tables import SETTINGS
from benchmarks.datasets import connection
from dpcausal.audit.tables import Unmetered
from dpcausal.vault.engines.duckdb import DuckDBEngine

OURS, NONE = "dpcausal", "no privacy"

Run = dict[str, Any]
"""What one interval came to: its error, half width, CPU seconds, and whether it was given."""


def simulate(task: tuple[str, int, int]) -> dict[str, Run]:
    """Return the interval of every method on one table."""
    name, n, run = task
    setting = SETTINGS[name]
    random = np.random.default_rng((list(SETTINGS).index(name), n, run))
    drawn = setting.draw(random, n)
    source = Unmetered(DuckDBEngine(connection().from_arrow(drawn.table), setting.schema), setting.schema)
    start = time.process_time()
    effect = setting.ours.estimate(source, epsilon=EPSILON, delta=setting.delta)
    low, high = replace(effect, no_interval="").interval(0.95)
    found = {OURS: _run(low, high, setting.own_truth, start) | {"given": not effect.no_interval}}
    methods = {NONE: without_privacy} | {
        key: peer.method for key, peer in PEERS.items() if peer.regression or not len(drawn.x)
    }
    for key, method in methods.items():
        start = time.process_time()
        low, high = method(drawn, setting, random)
        found[key] = _run(low, high, setting.truth, start) | {"given": True}
    return found


def _run(low: float, high: float, truth: float, start: float) -> Run:
    return {"error": (low + high) / 2 - truth, "half": (high - low) / 2, "seconds": time.process_time() - start}


def summary(runs: list[dict[str, Run]]) -> dict[str, dict[str, float | None]]:
    """Return coverage, width and time of each method on one kind of table."""
    narrow = float(np.median([run[NONE]["half"] for run in runs]))
    ours = float(np.median([run[OURS]["seconds"] for run in runs]))
    lines: dict[str, dict[str, float | None]] = {}
    for key in runs[0]:
        own = [run[key] for run in runs]
        errors, halves = np.array([each["error"] for each in own]), np.array([each["half"] for each in own])
        given = np.array([each["given"] for each in own])
        covered = (np.abs(errors) <= halves)[given]
        lines[key] = {
            "given": round(float(given.mean()), 3),
            "coverage": round(float(covered.mean()), 4) if given.any() else None,
            "width": float(f"{float(np.median(halves)) / narrow:.4g}"),
            "error": float(f"{float(np.sqrt(np.mean(errors**2))) * 1.96 / narrow:.4g}"),
            "time": float(f"{float(np.median([each['seconds'] for each in own])) / ours:.2g}"),
        }
    return lines
