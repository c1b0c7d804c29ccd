"""Curves, subgroups and metrics over sites beside one table: `python -m benchmarks.secure_queries --json`.

As in `benchmarks.secure_sums`, sites' exact answers get their shares of noise from the vault's sampler and are added
up; there are no masks and no ledger. Tables are trials in which the effect grows with a covariate.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine, ticks
from benchmarks.coverage import STRATA, Columns
from benchmarks.secure_sums import HARDLY_ANY_NOISE, NUMBER, OUTCOME, STRATUM, SecureSites, ShareSums, X, honest_of
from dpcausal.audit.tables import Unmetered
from dpcausal.experiment import Experiment, Metric
from dpcausal.source import Source
from dpcausal.utils.arrays import Array

EPSILON, DELTA, UNITS, SITES = 1.0, 1e-6, 24_000, 12
SHARES = ShareSums(SITES)
SLOPE = 0.2
"""The effect is this times the share of the covariate's range."""

Found = tuple[Array, Array, Array]
"""Estimates, and the bounds of their 95 % intervals."""


def sources(columns: Columns, schema: dpc.Schema) -> tuple[SecureSites, Unmetered]:
    """Return a table divided among sites, and all of it as one table."""
    places = np.array_split(np.arange(UNITS), SITES)
    sites = [_engine({name: each[place] for name, each in columns.items()}, schema) for place in places]
    return SecureSites(sites, schema, SHARES), Unmetered(_engine(columns, schema), schema)


def _engine(columns: Columns, schema: dpc.Schema) -> ArrayEngine:
    covariate = ticks(columns["x"].astype(float), X) if schema is NUMBER else columns["x"]
    return ArrayEngine(columns["y"], {"treatment": columns["arm"], "covariate_0": covariate}, OUTCOME)


def drawn(run: int) -> Columns:
    """Return a trial: a covariate of 20 values, two arms, and an outcome."""
    generator = np.random.default_rng((7, run))
    x, arm = generator.integers(0, STRATA, UNITS), generator.integers(0, 2, UNITS)
    share = x / (STRATA - 1)
    y = 0.3 + 0.3 * share + SLOPE * share * arm + generator.uniform(-0.1, 0.1, UNITS)
    return {"arm": arm, "x": x, "y": y}


def curve(source: Source, epsilon: float, delta: float) -> Found:
    """Return the R-learner's curve, without models of the outcome, at three values of the covariate."""
    learner = dpc.RLearner(covariates=["x"], basis=dpc.Polynomial(["x"]), propensity=0.5, outcome_models=False)
    found, at = learner.estimate(source, epsilon=epsilon, delta=delta), {"x": list(AT)}
    return found.effect(at), *found.effect_interval(at)


def subgroups(source: Source, epsilon: float, delta: float) -> Found:
    """Return the effect in the group of each value of the covariate."""
    found = dpc.SubgroupEffects(by=["x"]).estimate(source, epsilon=epsilon, delta=delta)
    at = {"x": list(map(str, range(STRATA)))}
    return found.effect(at), *found.effect_interval(at)


def metrics(source: Source, epsilon: float, delta: float) -> Found:
    """Return the effects on two metrics: the outcome, and the covariate, which treatment does not change."""
    bundle = [Metric(OUTCOME), Metric(X)]
    experiment = Experiment(name="metrics", treatment=NUMBER.treatment, metrics=bundle, epsilon=epsilon, delta=delta)
    effects = experiment.run(source).effects
    bounds = np.array([effect.interval(0.95) for effect in effects])
    return np.array([effect.estimate for effect in effects]), bounds[:, 0], bounds[:, 1]


AT = (2.0, 10.0, 17.0)
PARTS: dict[str, tuple[Callable[[Source, float, float], Found], dpc.Schema, Array]] = {
    "curve": (curve, NUMBER, SLOPE * np.array(AT) / (STRATA - 1)),
    "subgroups": (subgroups, STRATUM, SLOPE * np.arange(STRATA) / (STRATA - 1)),
    "metrics": (metrics, NUMBER, np.array([SLOPE / 2, 0.0])),
}
"""For each part of a study, how it is estimated, what tables declare, and the truth."""


def measure(name: str, runs: int) -> dict[str, Any]:
    """Return how precise one part of a study is over sites, beside one table, and how often intervals cover."""
    estimate, schema, truth = PARTS[name]
    over_sites, one_table, apart, covered, covered_alone = [], [], [], [], []
    for run in range(runs):
        secure, one = sources(drawn(run), schema)
        found, low, high = estimate(secure, EPSILON, DELTA)
        alone, least, most = estimate(one, EPSILON, DELTA)
        exact = estimate(one, HARDLY_ANY_NOISE, DELTA)[0]
        over_sites.append(found - exact)
        one_table.append(alone - exact)
        apart.append(found - alone)
        covered.append((low <= truth) & (truth <= high))
        covered_alone.append((least <= truth) & (truth <= most))
    privacy_sd = np.sqrt(np.mean(np.square(one_table), axis=0))
    ratios = np.sqrt(np.mean(np.square(over_sites), axis=0)) / privacy_sd
    return {
        "part": name,
        "sites": SITES,
        "honest": honest_of(SITES),
        "tables": runs,
        "units": UNITS,
        "numbers": len(truth),
        "privacy_sd_ratio": round(float(np.sqrt(np.mean(ratios**2))), 3),
        "expected_ratio": round(math.sqrt(SITES / honest_of(SITES)), 3),
        "difference_over_privacy_sd": round(float(np.sqrt(np.mean((np.std(apart, axis=0) / privacy_sd) ** 2))), 3),
        "expected_difference": round(math.sqrt(SITES / honest_of(SITES) + 1), 3),
        "coverage": round(float(np.mean(covered)), 4),
        "coverage_of_one_table": round(float(np.mean(covered_alone)), 4),
        "coverage_se": round(float(np.std(np.mean(covered, axis=1)) / math.sqrt(runs)), 4),
    }


def results(runs: int, parts: list[str]) -> Iterator[dict[str, Any]]:
    """Yield one line for each part."""
    for name in parts:
        yield measure(name, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="simulated tables for each part")
    parser.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS), help="what to measure")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    lines = []
    for line in results(chosen.runs, chosen.part):
        lines.append(line)
        print(json.dumps(line), file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps({"parts": lines}, indent=1))


if __name__ == "__main__":
    main()
