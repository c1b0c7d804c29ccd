"""Estimates on realistic tables, run by run, and what they come to."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import connection
from benchmarks.realistic.tables import KINDS, Draw, Kind, aipw
from dpcausal.audit.tables import Unmetered
from dpcausal.planning.interval_refusals import REHEARSALS, count_refusals
from dpcausal.planning.precision import half_width
from dpcausal.planning.strata import propose_strata
from dpcausal.results.effect import Effect, Estimator
from tests.support.engines import CachedEngine

EPSILON, DELTA = 1.0, 1e-6

_FIRST = 10_000

Run = dict[str, Any]
"""What one estimate gave: its error, standard errors, half width and whether there was an interval."""


@cache
def _best(name: str, n: int) -> Estimator:
    """Return what the library recommends for a kind of table, from public numbers."""
    kind, guarantee = KINDS[name], dpc.Guarantee(epsilon=EPSILON, delta=DELTA)
    return dpc.rank_estimators(kind.rehearsal(n), guarantee, covariates=[] if kind.randomised else None).best


ESTIMATORS: dict[str, Callable[[Kind, int], Estimator]] = {
    "difference in means": lambda _, __: dpc.DifferenceInMeans(),
    "winsorised difference in means": lambda _, __: dpc.Winsorised(dpc.DifferenceInMeans()),
    "regression adjustment": lambda kind, _: dpc.RegressionAdjustment(covariates=kind.names),
    "doubly robust": lambda kind, _: dpc.DoublyRobust(covariates=kind.names),
    "inverse weighting, ATE": lambda kind, _: dpc.InverseWeighting(covariates=kind.names),
    "inverse weighting, ATO": lambda kind, _: dpc.InverseWeighting(covariates=kind.names, estimand="ATO"),
    "stratification": lambda kind, n: dpc.Stratification(by=_strata(kind, n)),
    "best ranked": lambda kind, n: _best(kind.name, n),
}


def _strata(kind: Kind, n: int) -> tuple[str | dpc.Cut, ...]:
    """Return strata from public facts; by the first covariate where units are too few to cut all of them."""
    by = propose_strata(kind.schema, n, kind.names, treated_share=kind.treated_share)
    return by or propose_strata(kind.schema, n, kind.names[:1], treated_share=kind.treated_share)


def estimand_of(effect: Effect) -> str:
    """Return the estimand that an effect prints, as a key of a kind's truths."""
    return "ATO" if "overlap" in effect.estimand else "ATE"


def truth_of(effect: Effect, estimator: Estimator, kind: Kind, draw: Draw) -> float:
    """Return the true value of the estimand that an effect prints: of all such tables, or of the strata in this one."""
    if isinstance(estimator, dpc.Stratification) and "overlap population of strata" in effect.estimand:
        return _in_strata(estimator, int(effect.method.rpartition("cap ")[2]), draw)
    return kind.truth[estimand_of(effect)]


def _in_strata(estimator: dpc.Stratification, cap: int, draw: Draw) -> float:
    """Return the mean effect in strata, each counting as it does for the estimator."""
    by = (cut if isinstance(cut, dpc.Cut) else dpc.Cut(cut) for cut in estimator.by)
    codes = [
        np.digitize(draw.columns[cut.name], cut.edges)
        if cut.edges
        else np.unique(draw.columns[cut.name], return_inverse=True)[1]
        for cut in by
    ]
    _, stratum = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    treated = draw.columns["treated"]
    t, c, effects = (np.bincount(stratum, weights) for weights in (treated, 1 - treated, draw.effect))
    m = np.minimum(t, cap * c) + np.minimum(c, cap * t)
    return float((m * effects / (t + c)).sum() / m.sum())


def simulate(task: tuple[str, int, int, tuple[str, ...], float, float]) -> dict[str, Run]:
    """Return what each estimator gave on one table, and AIPW without privacy."""
    name, n, run, estimators, epsilon, delta = task
    kind = KINDS[name]
    # Constants of the estimators were chosen on tables of smaller numbers; these are fresh ones.
    draw = kind.draw(np.random.default_rng((ord(name[0]), len(name), n, _FIRST + run)), n)
    source = Unmetered(CachedEngine(connection().from_arrow(draw.table()), kind.schema), kind.schema)
    estimate, error = aipw(kind, draw)
    found: dict[str, Run] = {
        "AIPW without privacy": {"error": estimate - kind.truth["ATE"], "se": error, "half": 1.96 * error}
    }
    for each in estimators:
        if isinstance(kind.outcome, dpc.Binary) and each.startswith("winsorised"):
            continue  # it has the narrowest bounds already
        estimator = ESTIMATORS[each](kind, n)
        effect = estimator.estimate(source, epsilon=epsilon, delta=delta)
        low, high = replace(effect, no_interval="").interval(0.95)
        found[each] = {
            "error": effect.estimate - truth_of(effect, estimator, kind, draw),
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
        "coverage_of_all": round(float(covered.mean()), 4),
        "bias_over_sd": round(float(errors.mean()) / sd, 3),
        "sd": float(f"{sd:.4g}"),
        "half_width": float(f"{float(np.median(halves)):.4g}"),
        "half_width_over_ideal": round(float(np.median(halves)) / 1.96 / sd, 3),
        "standard_error_over_sd": round(float(np.median([run["se"] for run in runs])) / sd, 3),
    } | ({"coverage": round(float(covered[given].mean()), 4)} if given.any() else {})


def planned(name: str, n: int, estimator: str, epsilon: float, delta: float) -> dict[str, float]:
    """Return the half width and the share of refusals that a plan foretells; nothing for what is not private."""
    if estimator not in ESTIMATORS:
        return {}
    made, rehearsal = ESTIMATORS[estimator](KINDS[name], n), KINDS[name].rehearsal(n)
    effect = made.estimate(rehearsal, epsilon=epsilon, delta=delta)
    half = half_width(replace(effect, no_interval=""))  # where it is refused, widths are compared all the same
    refused = count_refusals(made, rehearsal, dpc.Guarantee(epsilon=epsilon, delta=delta)) / REHEARSALS
    return {"planned_half_width": float(f"{half:.4g}"), "planned_refusals": refused}
