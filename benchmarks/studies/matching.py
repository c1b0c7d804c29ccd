"""The evaluation of Yuan et al. (2025) done again: limits, error coefficients, neighbours and the split of epsilon.

Errors are relative to matching without privacy or limits, as in the paper, and to the true effect. Each repeat opens a
new vault and asks it everything; a question that stands in two sweeps is answered once.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import DataSet, synth
from benchmarks.progress import progress
from benchmarks.studies.setup import Setup
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import MatchedContrast
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS
from dpcausal.queries.query import outcome_tick
from dpcausal.vault.answers.logistic import public_fit, score
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.matching import matched

Level = Literal["outcome", "record"]
Sweep = Literal["limit", "error", "neighbours", "split"]

EPSILONS = (0.5, 1.0, 2.0, 4.0)
SPLIT_EPSILONS = (1.5, 3.0)
LIMITS: tuple[int | None, ...] = (1, 10, 50, None)
ERRORS = (0.0001, 0.001, 0.01, 0.1, 1.0)
NEIGHBOURS = (1, 3, 5, 7)
UNLIMITED = 1000
LARGE = 2000


@dataclass(frozen=True)
class Setting:
    """One way to match, at one epsilon."""

    sweep: Sweep
    value: str
    epsilon: float
    estimator: dpc.PropensityMatching


@dataclass(frozen=True)
class Cell:
    """What one setting gave over all repeats; errors are means of absolute relative errors."""

    table: str
    level: Level
    sweep: Sweep
    value: str
    epsilon: float
    repeats: int
    error: float
    error_se: float
    error_of_truth: float
    estimate: float
    non_private: float


def sweeps(covariates: Sequence[str], epsilons: Sequence[float]) -> Iterator[Setting]:
    plain = dpc.PropensityMatching(covariates=covariates)
    for epsilon in epsilons:
        for limit in LIMITS:
            yield Setting("limit", "adaptive" if limit is None else str(limit), epsilon, replace(plain, limit=limit))
        for error in ERRORS:
            yield Setting("error", f"{error:g}", epsilon, replace(plain, error=error))
        for neighbours in NEIGHBOURS:
            yield Setting("neighbours", str(neighbours), epsilon, replace(plain, neighbours=neighbours))


def splits(covariates: Sequence[str], tenths: int) -> Iterator[Setting]:
    """All divisions of epsilon among scores, arms and outcomes in steps of some tenths."""
    parts = range(tenths, 10, tenths)
    for epsilon, scoring, arm in itertools.product(SPLIT_EPSILONS, parts, parts):
        if scoring + arm < 10:
            split = (scoring / 10, arm / 10, (10 - scoring - arm) / 10)
            estimator = dpc.PropensityMatching(covariates=covariates, split=split)
            yield Setting("split", ":".join(f"{share:g}" for share in split), epsilon, estimator)


def non_private(table: DataSet, neighbours: int) -> float:
    """Return the estimate of matching without noise; no unit comes near the limit."""
    schema = table.schema("outcome")
    query = MatchedContrast(table.names, neighbours, UNLIMITED, 0.01)
    guarantee = dpc.Guarantee(epsilon=1.0, protects="outcome")
    answer = exact_answer(query, schema, DuckDBEngine(table.relation(), schema), guarantee)
    largest = next(each.value for each in answer.public_values if each.name == "largest")
    return answer.ticks["effect"] * largest * outcome_tick(schema) / COEFFICIENT_TICKS


def crowding(table: DataSet, neighbours: int = 5) -> tuple[int, float]:
    """Return the larger arm's size, and how often, in units of neighbours, a unit would serve without a limit."""
    schema = table.schema("outcome")
    features = Features(table.names, schema)
    engine = DuckDBEngine(table.relation(), schema)
    batch = engine.collect(("treatment", *features.columns), 10**6)
    scores = np.rint(2**40 * score(public_fit(engine, features), features.ticks(batch), features)).astype(np.int64)
    _, serves = matched(scores, batch["treatment"], neighbours, (table.n + 1, table.n + 1))
    treated = int(batch["treatment"].sum())
    return max(treated, table.n - treated), int(serves.max()) / neighbours


def adaptive_limit(epsilon: float, error: float, larger: int, most: float, *, printed: bool) -> float:
    """Return the limit of the smaller arm: with the paper's divisor of 2, or the square root of 2, which minimises."""
    best = math.sqrt(epsilon * error * larger * most / (2 if printed else math.sqrt(2)))
    return min(max(round(best), 1), most)


def limits(table: DataSet) -> list[dict[str, Any]]:
    larger, most = crowding(table)
    return [
        {
            "table": table.name,
            "epsilon": epsilon,
            "most_without_limit": most,
            "printed": adaptive_limit(epsilon, 0.01, larger, most, printed=True),
            "corrected": adaptive_limit(epsilon, 0.01, larger, most, printed=False),
        }
        for epsilon in np.round(np.arange(0.25, 8.01, 0.25), 2).tolist()
    ]


def summary(table: DataSet, level: Level, setting: Setting, reference: float, estimates: Sequence[float]) -> Cell:
    values = np.array(estimates)
    errors = np.abs(values - reference) / abs(reference)
    return Cell(
        table=table.name,
        level=level,
        sweep=setting.sweep,
        value=setting.value,
        epsilon=setting.epsilon,
        repeats=len(values),
        error=round(float(errors.mean()), 4),
        error_se=round(float(errors.std() / math.sqrt(len(errors))), 4),
        error_of_truth=round(float(np.abs(values / table.truth - 1).mean()), 4),
        estimate=round(float(values.mean()), 4),
        non_private=round(reference, 4),
    )


def plans(table: DataSet, setup: Setup) -> Iterator[tuple[Level, list[Setting], int]]:
    """Yield the levels, what to ask at each, and how many repeats; less where a question takes long."""
    large, ours = table.n > LARGE, table.name == "Synth"
    repeats = setup.times(50) if ours else max(setup.times(50) // (16 if large else 6), 1)
    epsilons = EPSILONS[1::2] if setup.quick or large else EPSILONS
    yield "outcome", list(sweeps(table.names, epsilons)), repeats
    yield "record", list(sweeps(table.names, epsilons)), max(repeats // 2, 1)
    yield "record", list(splits(table.names, 1 if ours and not setup.quick else 2)), max(repeats // 4, 1)


def measured(table: DataSet, setup: Setup) -> Iterator[Cell]:
    references = {neighbours: non_private(table, neighbours) for neighbours in NEIGHBOURS}
    for level, settings, repeats in plans(table, setup):
        estimates: list[list[float]] = [[] for _ in settings]
        for _ in progress(range(repeats), repeats, f"{table.name}, {level} level, {len(settings)} settings"):
            vault = table.vault(level)
            for place, setting in enumerate(settings):
                estimates[place].append(setting.estimator.estimate(vault, epsilon=setting.epsilon).estimate)
        for setting, found in zip(settings, estimates, strict=True):
            yield summary(table, level, setting, references[setting.estimator.neighbours], found)


def run(setup: Setup) -> dict[str, Any]:
    tables = [synth(), *setup.tables()]
    found = [asdict(cell) for table in tables for cell in measured(table, setup)]
    return {"study": "matching", "cells": found, "limits": [line for table in tables for line in limits(table)]}


def text(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result as lines: errors against matching without privacy, and against the truth in brackets."""
    cells = result["cells"]
    for table, level, sweep in dict.fromkeys((cell["table"], cell["level"], cell["sweep"]) for cell in cells):
        chosen = [c for c in cells if (c["table"], c["level"], c["sweep"]) == (table, level, sweep)]
        epsilons = list(dict.fromkeys(cell["epsilon"] for cell in chosen))
        yield f"{table}, {level} level, by {sweep}: relative error (of the truth), {chosen[0]['repeats']} repeats"
        yield f"{'':>12}" + "".join(f"{f'eps {epsilon:g}':>18}" for epsilon in epsilons)
        for value in dict.fromkeys(cell["value"] for cell in chosen):
            line = [f"{c['error']:9.3f} ({c['error_of_truth']:6.3f})" for c in chosen if c["value"] == value]
            yield f"{value:>12}" + "".join(line)
        yield ""
    yield "Adaptive limit: printed, corrected"
    for line in result["limits"]:
        if line["epsilon"] in EPSILONS:
            yield f"{line['table']:>12}  eps {line['epsilon']:g}: {line['printed']:g}, {line['corrected']:g}"
