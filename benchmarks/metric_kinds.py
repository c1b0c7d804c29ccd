"""How much wider privacy makes intervals, and from how many users on by at most 5 %, by kind of metric.

Each metric has an experiment, and its whole epsilon, for itself: 200,000 users an arm, through a vault, with a delta of
1e-6 under a zCDP budget. The median is asked for by itself, with delta 0. What is linearised takes its slope and bounds
from a scorecard of other users, and shares its epsilon with its denominator.

`python -m benchmarks.metric_kinds --runs 5 --json`
"""

import argparse
import json
import math
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.experiments import POPULATION, Columns, population

RESULTS = Path(__file__).parent / "results" / "metric_kinds.json"
UNITS, WITHIN, DELTA = 400_000, 0.05, 1e-6
REVENUE, BEFORE = dpc.Real("revenue", 0, 100, missing=0), dpc.Real("before", 0, 100)
CLICKS, VIEWS = dpc.Real("clicks", 0, 20, missing=0), dpc.Real("views", 0, 60, missing=0)
KINDS = {
    "mean": dpc.Metric(REVENUE),
    "proportion of 5 %": dpc.Metric(dpc.Binary("bought", missing=0)),
    "ratio": dpc.Metric(CLICKS, denominator=VIEWS),
    "CUPED": dpc.Metric(REVENUE, covariate=BEFORE),
}
TREATMENT = dpc.Treatment("arm", labels=("control", "treated"))
EDGES = [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50]


def users(random: Generator, worlds: tuple[Columns, Columns]) -> pa.Table:
    """Return users of both arms."""
    chosen, arm = random.integers(0, POPULATION, UNITS), random.integers(0, 2, UNITS)
    columns = {name: np.where(arm == 1, worlds[1][name][chosen], each[chosen]) for name, each in worlds[0].items()}
    return pa.table({"arm": arm, **columns})


def asked(table: pa.Table, epsilon: float, *metrics: dpc.Metric) -> dpc.Scorecard:
    """Return the scorecard of an experiment of these metrics."""
    experiment = dpc.Experiment(name="kinds", treatment=TREATMENT, metrics=metrics, epsilon=epsilon, delta=DELTA)
    return experiment.run(_vault(table, experiment.schema, epsilon))


def _vault(table: pa.Table, schema: dpc.Schema, epsilon: float) -> dpc.Vault:
    budget = dpc.Budget(epsilon=epsilon, delta=DELTA, rule="zcdp")
    return dpc.Vault(table, schema, ledger="sqlite://", budget=budget)


def errors(table: pa.Table, earlier: pa.Table, epsilon: float) -> dict[str, tuple[float, float]]:
    """Return the sampling error and the privacy noise of each kind of metric."""
    cards = {kind: asked(table, epsilon, metric) for kind, metric in KINDS.items()}
    found = {kind: card.effects[0] for kind, card in cards.items()}
    before = asked(earlier, epsilon, KINDS["ratio"], dpc.Metric(VIEWS))
    ratio = dpc.Metric(
        CLICKS, denominator=VIEWS, earlier=dpc.Earlier.ratio(before.effects[0], before.effects[1].control_mean or 1.0)
    )
    found["linearised ratio, with its denominator"] = asked(table, epsilon, ratio, dpc.Metric(VIEWS)).effects[0]
    schema = dpc.Schema(treatment=TREATMENT, outcome=REVENUE)
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=epsilon))
    found["median, of a histogram"] = dpc.QuantileEffects([0.5], edges=EDGES).estimate(vault, epsilon=epsilon)
    return {kind: (effect.sampling_sd or math.nan, effect.privacy_sd) for kind, effect in found.items()}


def measured(runs: int) -> list[dict[str, Any]]:
    """Return for each epsilon and kind the width over that without privacy, and the users for 5 %."""
    random = np.random.default_rng(7)
    worlds, cells = population(random), []
    for epsilon in (1.0, 4.0):
        found = [errors(users(random, worlds), users(random, worlds), epsilon) for _ in range(runs)]
        for kind in found[0]:
            parts = [(noise / sampling) ** 2 for sampling, noise in (each[kind] for each in found)]
            width, more = math.sqrt(1 + median(parts)), median(parts) / (WITHIN * (2 + WITHIN))
            cells.append({"epsilon": epsilon, "kind": kind, "width": width, "users": UNITS * more})
    return cells


def kinds_table(result: dict[str, Any]) -> str:
    """Return the table of docs/experiments.md."""
    cells = {(cell["kind"], cell["epsilon"]): cell for cell in result["cells"]}
    kinds = dict.fromkeys(kind for kind, _ in cells)
    head = ["metric", *(each for e in (1, 4) for each in (f"width, epsilon {e}", "users for 5 %"))]
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for kind in kinds:
        line = [kind]
        for epsilon in (1.0, 4.0):
            cell = cells[kind, epsilon]
            rounded = float(f"{cell['users']:.2g}")
            line += [f"{cell['width']:.3f}", f"{rounded:,.0f}"]
        lines.append(" | ".join(line))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Measure, and print or store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--json", action="store_true", help=f"write {RESULTS.name}")
    chosen = options.parse_args()
    result = {"runs": chosen.runs, "units": UNITS, "delta": DELTA, "cells": measured(chosen.runs)}
    print(kinds_table(result))
    if chosen.json:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
