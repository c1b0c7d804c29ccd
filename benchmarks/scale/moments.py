"""A release of all second moments of twenty covariates, beside SQL and numpy by hand."""

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scale.data import COVARIATE, OUTCOME, Study, written
from benchmarks.scale.options import Options
from benchmarks.scale.processes import beside, in_turns, run
from benchmarks.scale.tasks import Task
from dpcausal.queries.regression_moments import CONSTANT, FINE

ROWS = 10_000_000
TARGET = 1.0
"""The most that a release may cost, in processor time, beside all SUM(x * y) in SQL."""


def measure(options: Options) -> dict[str, Any]:
    """Time a release, the same integers by SQL, plain SQL, and numpy."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    with written(Study(rows), options.folder) as folder:
        tasks = {work: Task(work, str(folder), "moments") for work in ("release", "fixed", "plain", "arrow")}
        runs = in_turns(tasks, repeats, "moments")
        exact = run(Task("answer", str(folder), "moments"))["value"]
    line = beside("release", runs)
    by_arm = in_steps(runs["fixed"][0]["value"])
    return {
        "rows": rows,
        "covariates": tasks["release"].covariates,
        "repeats": repeats,
        "target": TARGET,
        **line,
        "same_integers": same(tasks["release"], exact, by_arm),
        "numpy_apart": apart(by_arm, np.array(runs["arrow"][0]["value"])),
        "within_target": {work: line["ratios"][work]["cpu"] <= TARGET for work in ("fixed", "plain")},
    }


def in_steps(by_hand: list[list[int]]) -> NDArray[np.int64]:
    """Return sums by hand, arm by arm, as tables of all products of two numbers; the first is FINE for every unit."""
    size = int(np.sqrt(2 * len(by_hand[0])))
    tables = np.zeros((2, size, size), dtype=np.int64)
    for arm, *sums in by_hand:
        for (first, second), total in zip(combinations_with_replacement(range(size), 2), sums, strict=True):
            constants = [first, second].count(CONSTANT)
            tables[arm, first, second] = tables[arm, second, first] = total * FINE**constants
    return tables


def same(task: Task, exact: dict[str, int], by_arm: NDArray[np.int64]) -> bool:
    """Whether sums by hand are what the vault adds up."""
    sums = {False: by_arm[0] + by_arm[1], True: by_arm[1] - by_arm[0]}
    found = []
    for moment in task.question.moments(task.schema):  # type: ignore[attr-defined]
        table = sums[moment.signed]
        total = int(table[moment.first, moment.second])
        found.append(int(table[CONSTANT, CONSTANT]) - total if moment.deficit else total)
    return found == list(exact.values())


def apart(by_arm: NDArray[np.int64], in_floats: NDArray[np.float64]) -> float:
    """How far numpy's sums are from the integers, for each unit, where numbers lie within -1 and 1."""
    halves = np.array([1.0, *((high - low) / 2 for low, high in [OUTCOME, *[COVARIATE] * (len(in_floats[0]) - 2)])])
    units = in_floats[:, CONSTANT, CONSTANT].sum()
    return float(np.abs(by_arm / FINE**2 - in_floats / np.outer(halves, halves)).max() / units)
