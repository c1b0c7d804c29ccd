"""How often 95 % intervals of effects that vary cover the truth: each by itself, and all together.

`python -m benchmarks.curve_coverage --runs 1000 --json`
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import connection
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.results.curve import CurveEstimator
from tests.support.engines import CachedEngine

Array = NDArray[np.float64]

SITES = list(range(8))
COVARIATES: list[dpc.Category | dpc.Real] = [dpc.Category("site", SITES), dpc.Real("age", 0, 1), dpc.Real("dose", 0, 1)]
SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=COVARIATES)

Effect = Callable[[Array, Array, Array], Array]
"""The true effect as a function of site, age and dose."""


def by_site(site: Array, _: Array, __: Array) -> Array:
    """Effects of 0 to 0.2 that differ between sites."""
    return 0.2 * site / (len(SITES) - 1)


def by_age(_: Array, age: Array, dose: Array) -> Array:
    """Effects of -0.1 to 0.3 that are linear in age and dose."""
    return -0.1 + 0.3 * age + 0.1 * dose


def by_bend(_: Array, age: Array, __: Array) -> Array:
    """Effects that rise and fall with age."""
    return 0.2 * np.sin(3 * age)


def by_both(_: Array, age: Array, dose: Array) -> Array:
    """Effects that rise and fall with age and with dose."""
    return 0.2 * np.sin(3 * age) - 0.1 * np.cos(4 * dose)


STUDIES: dict[str, tuple[CurveEstimator, Effect, bool]] = {
    "subgroups": (dpc.SubgroupEffects(by=["site"]), by_site, False),
    "subgroups_adjusted": (dpc.SubgroupEffects(by=["site"], covariates=["age", "dose"]), by_site, True),
    "r_learner_linear": (dpc.RLearner(["age", "dose"], dpc.Polynomial(["age", "dose"])), by_age, True),
    "dr_learner_linear": (dpc.DRLearner(["age", "dose"], dpc.Polynomial(["age", "dose"])), by_age, True),
    "r_learner_spline": (dpc.RLearner(["age", "dose"], dpc.Spline(["age"])), by_bend, True),
    "dr_learner_spline": (dpc.DRLearner(["age", "dose"], dpc.Spline(["age"])), by_bend, True),
    "r_learner_two_splines": (dpc.RLearner(["age", "dose"], dpc.Spline(["age", "dose"])), by_both, True),
}
"""Estimators, each with a true effect, and whether age and dose are confounders."""


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    study: str
    n: int
    epsilon: float
    delta: float


def made_up(generator: Generator, n: int, effect: Effect, confounded: bool) -> dict[str, Array]:
    """Return a table in which treatment moves outcomes by a known effect."""
    site = generator.integers(0, len(SITES), n).astype(float)
    age, dose = generator.uniform(0, 1, n), generator.uniform(0, 1, n)
    logit = confounded * (1.5 * (age - 0.5) - (dose - 0.5))
    arm = (generator.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    moved = confounded * (0.15 * age + 0.1 * dose)
    noise = generator.uniform(-0.15, 0.15, n)
    return {
        "arm": arm,
        "y": 0.3 + moved + effect(site, age, dose) * arm + noise,
        "site": site,
        "age": age,
        "dose": dose,
    }


def profiles(study: str) -> dict[str, Array]:
    """Where coverage is looked at: all groups, or some profiles over all ranges."""
    if study.startswith("subgroups"):
        return {"site": np.array(SITES, dtype=float)}
    ages, doses = np.meshgrid(np.linspace(0.05, 0.95, 10), np.linspace(0.05, 0.95, 4))
    return {"age": ages.ravel(), "dose": doses.ravel()}


def simulate(task: tuple[Cell, tuple[int, int]]) -> tuple[float, bool, float, bool]:
    """Of one study: the share of profiles whose intervals cover, whether all do, their mean width, any refusal."""
    cell, seed = task
    estimator, effect, confounded = STUDIES[cell.study]
    table = made_up(np.random.default_rng(seed), cell.n, effect, confounded)
    relation = connection().from_arrow(pa.table(table))
    source = Unmetered(CachedEngine(relation, SCHEMA), SCHEMA)
    curve = estimator.estimate(source, epsilon=cell.epsilon, delta=cell.delta)
    if curve.no_interval:
        return float("nan"), False, float("nan"), True
    at = profiles(cell.study)
    nothing = np.zeros(len(next(iter(at.values()))))
    truth = effect(*(at.get(name, nothing) for name in ("site", "age", "dose")))
    low, high = curve.effect_interval(at)
    least, most = curve.effect_interval(at, simultaneous=True)
    every = bool(((least <= truth) & (truth <= most)).all())
    return float(((low <= truth) & (truth <= high)).mean()), every, float((high - low).mean()), False


def summary(cell: Cell, runs: list[tuple[float, bool, float, bool]]) -> dict[str, object]:
    """One line of results."""
    given = [run for run in runs if not run[3]]
    return asdict(cell) | {
        "runs": len(runs),
        "refused": round(1 - len(given) / len(runs), 4),
        "pointwise": round(float(np.mean([run[0] for run in given])), 4) if given else None,
        "simultaneous": round(float(np.mean([run[1] for run in given])), 4) if given else None,
        "mean_width": round(float(np.mean([run[2] for run in given])), 4) if given else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    add_arguments(parser, 1000)
    parser.add_argument("--n", type=int, nargs="+", default=[5000, 20_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--delta", type=float, nargs="+", default=[1e-6])
    chosen = parser.parse_args()
    cells = [Cell(*each) for each in itertools.product(chosen.study, chosen.n, chosen.epsilon, chosen.delta)]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
