"""Estimates on realistic tables, run by run, and what they come to."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import connection
from benchmarks.realistic.tables import KINDS, Kind, aipw
from dpcausal.audit.tables import Unmetered
from dpcausal.effect import Effect, Estimator
from tests.support.engines import CachedEngine

EPSILON, DELTA = 1.0, 1e-6

Run = dict[str, Any]
"""What one estimate gave: its error, standard errors, half width and whether there was an interval."""

ESTIMATORS: dict[str, Callable[[Kind, int], Estimator]] = {
    "difference in means": lambda _, __: dpc.DifferenceInMeans(),
    "winsorised difference in means": lambda _, __: dpc.Winsorised(dpc.DifferenceInMeans()),
    "regression adjustment": lambda kind, _: dpc.RegressionAdjustment(covariates=kind.names),
    "doubly robust": lambda kind, _: dpc.DoublyRobust(covariates=kind.names),
    "inverse weighting, ATE": lambda kind, _: dpc.InverseWeighting(covariates=kind.names),
    "inverse weighting, ATO": lambda kind, _: dpc.InverseWeighting(covariates=kind.names, estimand="ATO"),
    "stratification": lambda kind, _: dpc.Stratification(by=_strata(kind)),
    "best ranked": lambda kind, n: _best(kind.name, n),
}


@cache
def _best(name: str, n: int) -> Estimator:
    """Return what the library recommends for a kind of table, from public numbers."""
    kind, guarantee = KINDS[name], dpc.Guarantee(epsilon=EPSILON, delta=DELTA)
    return dpc.rank_estimators(kind.rehearsal(n), guarantee, covariates=[] if kind.randomised else None).best


def _strata(kind: Kind) -> list[str | dpc.Cut]:
    """Return strata as someone would cut these covariates: a number into bins of equal width."""
    bins = {"age": 7, "severity": 8, "comorbidities": 4}
    return [
        dpc.Cut(each.name, [each.low + (each.high - each.low) * place / count for place in range(1, count)])
        if isinstance(each, dpc.Real)
        else each.name
        for each in kind.covariates
        for count in [bins.get(each.name, 3)]
    ]


def estimand_of(effect: Effect) -> str:
    """Return the estimand that an effect prints, as a key of a kind's truths."""
    return "ATO" if "overlap" in effect.estimand else "ATE"


def simulate(task: tuple[str, int, int, tuple[str, ...], float, float]) -> dict[str, Run]:
    """Return what each estimator gave on one table, and AIPW without privacy."""
    name, n, run, estimators, epsilon, delta = task
    kind = KINDS[name]
    draw = kind.draw(np.random.default_rng((ord(name[0]), len(name), n, run)), n)
    source = Unmetered(CachedEngine(connection().from_arrow(draw.table()), kind.schema), kind.schema)
    estimate, error = aipw(kind, draw)
    found: dict[str, Run] = {
        "AIPW without privacy": {"error": estimate - kind.truth["ATE"], "se": error, "half": 1.96 * error}
    }
    for each in estimators:
        effect = ESTIMATORS[each](kind, n).estimate(source, epsilon=epsilon, delta=delta)
        low, high = replace(effect, no_interval="").interval(0.95)
        found[each] = {
            "error": effect.estimate - kind.truth[estimand_of(effect)],
            "se": effect.standard_error,
            "sampling": effect.sampling_sd,
            "half": (high - low) / 2,
        } | ({"refused": effect.no_interval} if effect.no_interval else {})
    return found


def summary(runs: list[Run]) -> dict[str, float]:
    """Return what runs of one estimator on one kind of table come to."""
    errors, halves = np.array([run["error"] for run in runs]), np.array([run["half"] for run in runs])
    given = np.array(["refused" not in run for run in runs])
    sd = float(errors.std(ddof=1))
    covered = np.abs(errors) <= halves
    return {
        "runs": len(runs),
        "given": round(float(given.mean()), 4),
        "coverage": round(float(covered[given].mean()), 4) if given.any() else math.nan,
        "coverage_of_all": round(float(covered.mean()), 4),
        "bias_over_sd": round(float(errors.mean()) / sd, 3),
        "sd": float(f"{sd:.4g}"),
        "half_width": float(f"{float(np.median(halves)):.4g}"),
        "half_width_over_ideal": round(float(np.median(halves)) / 1.96 / sd, 3),
        "standard_error_over_sd": round(float(np.median([run["se"] for run in runs])) / sd, 3),
    }
