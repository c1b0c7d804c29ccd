"""The runs: one table at a time, kept line by line, so that a run that was stopped goes on; and what they add up to."""

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.heterogeneity.tables import table
from benchmarks.papers.dp_cate.contestants import CONTESTANTS, DELTA, REFERENCES, Contestant, r_learner, vault
from benchmarks.papers.dp_cate.tables import Table, paper
from benchmarks.progress import progress

Line = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One table and one contestant, for all epsilons."""

    table: str
    n: int
    repeat: int
    contestant: Contestant
    epsilons: tuple[float, ...]

    @property
    def key(self) -> str:
        """What tells it from other tasks."""
        return json.dumps([self.table, self.n, self.repeat, self.contestant.label])


def tasks_of(name: str, n: int, repeats: int, epsilons: tuple[float, ...]) -> list[Task]:
    """All tasks of one table and size."""
    return [
        Task(name, n, repeat, contestant, () if contestant in REFERENCES else epsilons)
        for repeat in range(repeats)
        for contestant in (*CONTESTANTS, *REFERENCES)
        if repeat < contestant.repeats(n, repeats)
    ]


def done(tasks: Sequence[Task], folder: str | None, kept: Path | None) -> list[Line]:
    """Return the runs of all tasks, and make those that the file does not hold yet."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []
    known = {each["key"]: each["runs"] for each in map(json.loads, lines)}
    missing = [task for task in tasks if task.key not in known]
    for task in progress(missing, len(missing), "contestants"):
        chosen = table(task.table, task.n, task.repeat, folder)
        known[task.key] = [_run(task, chosen, epsilon) for epsilon in task.epsilons or (None,)]
        if kept:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": task.key, "runs": known[task.key]}) + "\n")
    return [run for task in tasks for run in known[task.key]]


def _run(task: Task, chosen: Table, epsilon: float | None) -> Line:
    contestant = task.contestant
    generator = np.random.default_rng((task.repeat, round(1000 * (epsilon or 0))))
    start = time.process_time()
    found = contestant.ask(chosen, epsilon or math.inf, generator)
    seconds = time.process_time() - start
    truth = chosen.effects[: len(found.effects)]
    covered = None
    if found.low is not None and found.high is not None:
        covered = float(np.mean((found.low <= truth) & (truth <= found.high)))
    return {
        "table": task.table,
        "n": chosen.data.n,
        "sd": float(chosen.effects.std()),
        "epsilon": epsilon,
        "contestant": contestant.label,
        "group": contestant.group,
        "private": contestant.private,
        "pehe": float(np.sqrt(np.mean((found.effects - truth) ** 2))),
        "covered": covered,
        "seconds": seconds,
    }


def rows(runs: Sequence[Line]) -> list[Line]:
    """One row for each table, size, epsilon and contestant.

    `pehe` is the mean over repeats of the root mean squared error of effects, `pehe_to_sd` the same as a share of the
    effects' standard deviation, which is 1 for the best constant and is what realisations of IHDP, whose scales differ
    by a factor of ninety, can be compared by. `coverage` the mean share of profiles
    whose 95 % interval holds the true effect, among the repeats in which there were `intervals`. `seconds` are of
    processor time, opening the vault and asking the curve included, and the median over repeats.
    """
    groups: defaultdict[tuple[Any, ...], list[Line]] = defaultdict(list)
    names = ("table", "n", "epsilon", "contestant", "group", "private")
    for run in runs:
        groups[tuple(run[name] for name in names)].append(run)
    return [dict(zip(names, key, strict=True)) | _summary(group) for key, group in groups.items()]


def _summary(group: Sequence[Line]) -> Line:
    errors = np.array([run["pehe"] for run in group])
    covered = [run["covered"] for run in group if run["covered"] is not None]
    count = len(group)
    summary = {
        "pehe": errors.mean(),
        "pehe_se": errors.std(ddof=1) / math.sqrt(count) if count > 1 else None,
        "sd_of_effect": np.mean([run["sd"] for run in group]),
        "pehe_to_sd": np.mean([run["pehe"] / run["sd"] for run in group]),
        "coverage": np.mean(covered) if covered else None,
        "seconds": np.median([run["seconds"] for run in group]),
    }
    rounded = {name: None if value is None else float(f"{value:.4g}") for name, value in summary.items()}
    return rounded | {"intervals": len(covered), "repeats": count}


def curves(n: int, epsilons: Sequence[float]) -> Line:
    """Return the R-learner's curve of Dataset 1 at several epsilons, with a band that holds for the whole curve."""
    chosen = paper(1, n, 0)
    places = np.linspace(0, 1, 101)
    grid = {"x0": places, "x1": np.full_like(places, 0.5)}
    lines = []
    for epsilon in epsilons:
        curve = r_learner(chosen).estimate(vault(chosen), epsilon=epsilon, delta=DELTA)
        band = () if curve.no_interval else curve.effect_interval(grid, simultaneous=True)
        lines.append({"epsilon": epsilon, "effect": _listed(curve.effect(grid)), "band": [*map(_listed, band)]})
    truth = np.exp(2 * places) + 3 * np.sin(4 * places)
    return {"n": n, "x0": _listed(places), "truth": _listed(truth), "lines": lines}


def _listed(values: Any) -> list[float]:  # noqa: ANN401 (an array of any kind)
    return [round(float(value), 4) for value in values]
