"""How often the decision rule of an experiment is wrong, at one look and at eight, through vaults.

Each run draws users who enter over eight weeks. One experiment reads its scorecard after the last week, and another
after each week, for one payment: one goal, three guardrails. `python -m benchmarks.decisions --runs 200 --json`
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc

LOOKS, UNITS, MARGIN = 8, 100_000, 0.05
BUDGET = dpc.Budget(epsilon=1, delta=1e-6)
EXPERIMENT = dpc.Experiment(
    name="decisions",
    treatment=dpc.Treatment("arm", arms=("old", "new"), labels=("old", "new")),
    metrics=[
        dpc.Metric(dpc.Real("revenue", 0, 100, missing=0)),
        dpc.Metric(dpc.Binary("returned", missing=0)),
        dpc.Metric(dpc.Real("seconds", 0, 10, missing=10), lower_is_better=True),
        dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", 0, 60, missing=0)),
    ],
    epsilon=1.0,
    delta=1e-6,
    cohorts=dpc.Category("week", list(range(1, LOOKS + 1))),
    planned_n=UNITS,
    rule=dpc.DecisionRule(
        goals=["revenue"],
        guardrails=[
            dpc.Guardrail("returned", MARGIN, relative=True),
            dpc.Guardrail("seconds", 0.1),
            dpc.Guardrail("clicks per views", 2 * MARGIN, relative=True),
        ],
    ),
)
SCENES = {
    "a guardrail is worse by its margin, the goal is better": {"goal": 1.1, "returned": 1 - MARGIN},
    "no effect": {"goal": 1.0, "returned": 1.0},
    "the goal is better, guardrails are unchanged": {"goal": 1.1, "returned": 1.0},
}


def users(random: Generator, *, goal: float, returned: float) -> pa.Table:
    """Return users of both arms, in the order in which they enter."""
    treated = random.random(UNITS) < 0.5
    habit = random.lognormal(1.5, 1.0, UNITS)
    views = 1.0 + random.poisson(8, UNITS)
    columns: dict[str, Any] = {
        "arm": np.where(treated, "new", "old"),
        "revenue": np.minimum(habit * random.gamma(4, 0.25, UNITS) * np.where(treated, goal, 1.0), 100.0),
        "returned": random.binomial(1, 0.4 * np.where(treated, returned, 1.0)),
        "seconds": np.minimum(random.gamma(4, 0.5, UNITS), 10.0),
        "clicks": np.minimum(random.binomial(views.astype(int), random.beta(3, 7, UNITS)), 30).astype(float),
        "views": np.minimum(views, 60.0),
        "week": np.repeat(np.arange(1, LOOKS + 1), UNITS // LOOKS),
    }
    return pa.table(columns)


AT_ONCE = replace(EXPERIMENT, cohorts=None, planned_n=None)


def decisions_at_looks(table: pa.Table) -> list[dpc.ArmDecision]:
    """Return the decision at each of eight looks."""
    ledger = dpc.Ledger.create("sqlite://", BUDGET, as_of="week 1")
    found: list[dpc.ArmDecision] = []
    for week in range(1, LOOKS + 1):
        if week > 1:
            ledger.add_version(f"week {week}")
        so_far = table.slice(0, week * (UNITS // LOOKS))
        vault = dpc.Vault(so_far, EXPERIMENT.schema, ledger=ledger, as_of=f"week {week}")
        found += EXPERIMENT.run(vault, week).decisions
    return found


def decisions_at_once(table: pa.Table) -> list[dpc.ArmDecision]:
    """Return the decision at the only look."""
    return list(AT_ONCE.run(dpc.Vault(table, AT_ONCE.schema, ledger="sqlite://", budget=BUDGET)).decisions)


def counted(runs: Sequence[Sequence[dpc.ArmDecision]]) -> dict[str, list[float]]:
    """Return by look the share of runs that shipped, or stopped for harm, at that look or before."""
    looks = len(runs[0])
    found = {"shipped": [0.0] * looks, "stopped for harm": [0.0] * looks}
    for run in runs:
        for what, events in (
            ("shipped", [each.action == "ship" for each in run]),
            ("stopped for harm", [each.harm for each in run]),
        ):
            first = events.index(True) if any(events) else looks
            for look in range(first, looks):
                found[what][look] += 1 / len(runs)
    return {what: [round(share, 4) for share in shares] for what, shares in found.items()}


def decisions_table(result: dict[str, Any]) -> str:
    """Return the table of docs/experiments.md: what was done at the last look or before."""
    lines = ["truth | looks | runs | shipped | stopped for harm", "--- | --- | --- | --- | ---"]
    for cell in result["scenes"]:
        last = (f"{100 * cell[what][-1]:.1f} %" for what in ("shipped", "stopped for harm"))
        lines.append(" | ".join([cell["scene"], str(cell["looks"]), str(result["runs"]), *last]))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Simulate, and print or store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--json", action="store_true", help="print the result alone, as it is stored")
    chosen = options.parse_args()
    randoms = {scene: np.random.default_rng([4, place]) for place, scene in enumerate(SCENES)}
    waits: dict[str, list[list[dpc.ArmDecision]]] = {scene: [] for scene in SCENES}
    at_once: dict[str, list[list[dpc.ArmDecision]]] = {scene: [] for scene in SCENES}
    result: dict[str, Any] = {}
    for run in range(1, chosen.runs + 1):
        for scene, effects in SCENES.items():
            table = users(randoms[scene], **effects)
            waits[scene].append(decisions_at_looks(table))
            at_once[scene].append(decisions_at_once(table))
        if run % 10 and run < chosen.runs:
            continue
        result = {"runs": run, "units": UNITS, "epsilon": EXPERIMENT.epsilon}
        result["scenes"] = [
            {"scene": scene, "looks": looks, **counted(runs[scene])}
            for scene in SCENES
            for looks, runs in ((1, at_once), (LOOKS, waits))
        ]
        if run < chosen.runs or not chosen.json:
            print(json.dumps(result), file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
