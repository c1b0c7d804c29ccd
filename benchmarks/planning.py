"""Planned against realised width of 95 % intervals, over simulated studies with real vaults, ledgers and noise.

The plan is made from what a protocol could know: the outcome's mean and spread, the share treated, how much
confounding there is and how covariates are spread, all taken from another draw of the same simulation. What covariates
explain of the outcome a rehearsal assumes; a second plan is given a spread that makes up for the difference.

`python -m benchmarks.planning --runs 500 --json`

`python -m benchmarks.realistic` does so on realistic tables.
"""

import argparse
import itertools
import math
import statistics
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.coverage import ESTIMATORS, STRATA, STUDIES, Cell, Columns, Run, schema_of, simulate
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.planning.precision import half_width
from dpcausal.schema.schema import Protects

CHOSEN: dict[str, tuple[str, Protects]] = {
    "difference_in_means": ("even", "record"),
    "stratification": ("confounded", "record"),
    "propensity_matching": ("scored", "outcome"),
    "inverse_weighting": ("scored", "record"),
    "overlap_weighting": ("scored", "record"),
    "regression_of_four": ("four_linear", "record"),
    "doubly_robust_of_four": ("four_linear", "record"),
}
"""For each estimator, the kind of study, and what is protected."""

ASSUMED = {
    "stratification": 0.5 * (1 - STRATA**-0.25),
    "propensity_matching": 0.25,
    "regression_of_four": 0.25,
    "doubly_robust_of_four": 0.25,
}
"""The share of the outcome's variance that a rehearsal takes covariates to explain, where they are used to that end."""

PILOT = 50_000


def expectation(cell: Cell, *, explained: bool = False) -> dpc.Rehearsal:
    """Return what a protocol could know, from a large draw that no run sees; or also what covariates explain."""
    columns, truth = STUDIES[cell.outcome](np.random.default_rng((7, 7)), PILOT, cell.protects)
    arm, y = columns["arm"] == 1, columns["y"]
    sd = _within(columns, np.ones((len(y), 1)))
    known = _within(columns, _design(columns)) / math.sqrt(1 - ASSUMED.get(cell.estimator, 0.0))
    return dpc.Rehearsal(
        schema_of(columns, cell.protects),
        cell.n,
        treated_share=float(arm.mean()),
        outcome_mean=float(y.mean()),
        outcome_sd=known if explained and cell.estimator in ASSUMED else sd,
        confounding=min(abs(float(y[arm].mean() - y[~arm].mean()) - truth) / sd, 1.0),
        covariate_sd=_spread(columns),
    )


def _design(columns: Columns) -> NDArray[Any]:
    """Return the covariates, or the strata one by one."""
    if "x" in columns:
        return np.equal.outer(columns["x"], np.arange(STRATA)).astype(float)
    return np.column_stack([np.ones(PILOT), *(values for name, values in columns.items() if name not in ("arm", "y"))])


def _within(columns: Columns, design: NDArray[Any]) -> float:
    """Return the standard deviation that is left within arms by a regression on this."""
    squares = 0.0
    for arm in (0, 1):
        x, y = design[columns["arm"] == arm], columns["y"][columns["arm"] == arm]
        squares += float(((y - x @ np.linalg.lstsq(x, y)[0]) ** 2).sum())
    return math.sqrt(squares / PILOT)


def _spread(columns: Columns) -> float:
    """Return the covariates' mean standard deviation, in half ranges; all lie within 0 and 1, but for strata."""
    spreads = [2 * float(values.std()) for name, values in columns.items() if name not in ("arm", "y", "x")]
    return min(statistics.fmean(spreads), 1.0) if spreads else dpc.Rehearsal.covariate_sd


def summary(cell: Cell, runs: list[Run]) -> dict[str, object]:
    estimator = ESTIMATORS[cell.estimator][0]
    plan, informed = (
        estimator.estimate(expectation(cell, explained=explained), epsilon=cell.epsilon, delta=cell.delta)
        for explained in (False, True)
    )
    planned = half_width(replace(plan, no_interval=""))  # refused intervals are compared all the same
    widths = sorted(run.width / 2 for run in runs)
    realised = statistics.median(widths)
    return asdict(cell) | {
        "runs": len(runs),
        "planned": float(f"{planned:.4g}"),
        "realised": float(f"{realised:.4g}"),
        "ratio": round(realised / planned, 3),
        "ratio_informed": round(realised / half_width(replace(informed, no_interval="")), 3),
        "tenth": round(widths[len(widths) // 10] / planned, 3),
        "nine_tenths": round(widths[-1 - len(widths) // 10] / planned, 3),
        "planned_refused": bool(plan.no_interval),
        "refused": round(statistics.fmean(run.refused for run in runs), 3),
        "planned_sampling_sd": plan.sampling_sd,
        "planned_privacy_sd": plan.privacy_sd,
        "informed_sampling_sd": informed.sampling_sd,
        "sampling_sd": statistics.median(run.sampling_sd for run in runs),
        "privacy_sd": statistics.median(run.privacy_sd for run in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 500)
    parser.add_argument("--estimator", nargs="+", choices=CHOSEN, default=list(CHOSEN))
    parser.add_argument("--n", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    chosen = parser.parse_args()
    settings = itertools.product(chosen.estimator, chosen.n, chosen.epsilon)
    cells = [Cell(name, CHOSEN[name][1], CHOSEN[name][0], n, epsilon, 0.0) for name, n, epsilon in settings]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
