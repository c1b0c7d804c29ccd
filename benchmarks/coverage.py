"""How often 95 % intervals cover the truth, over simulated trials with a vault's answers and noise, and no ledger.

`python -m benchmarks.coverage --estimator difference_in_means --runs 2000 --json`
"""

import argparse
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import connection
from benchmarks.leaderboard.tables import generated
from benchmarks.parts import PUBLISHED
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Protects
from tests.support.engines import CachedEngine

Columns = dict[str, NDArray[Any]]
Study = tuple[Columns, float]
"""A table and the true effect in it; arms are fixed by design, or drawn, as the schema says."""

STRATA = 20


def arms(generator: Generator, n: int, protects: Protects) -> NDArray[Any]:
    return np.arange(n) % 2 if protects != "record" else generator.integers(0, 2, n)


def even(generator: Generator, n: int, protects: Protects) -> Study:
    """Outcomes spread over their range."""
    arm = arms(generator, n, protects)
    return {"arm": arm, "y": np.where(arm == 1, generator.beta(3, 2, n), generator.beta(2, 3, n))}, 0.2


def skewed(generator: Generator, n: int, protects: Protects) -> Study:
    """Outcomes crowded at one end of their range."""
    arm = arms(generator, n, protects)
    return {"arm": arm, "y": np.where(arm == 1, generator.beta(2, 18, n), generator.beta(1, 19, n))}, 0.05


def yes_or_no(generator: Generator, n: int, protects: Protects) -> Study:
    """Risks of 0.3 and 0.4."""
    arm = arms(generator, n, protects)
    return {"arm": arm, "y": generator.binomial(1, 0.3 + 0.1 * arm).astype(float)}, 0.1


def confounded(generator: Generator, n: int, _: Protects) -> Study:
    """Treatment from 30 to 70 % over twenty strata that also move the outcome; one effect."""
    stratum = generator.integers(0, STRATA, n)
    x = stratum / (STRATA - 1)
    arm = (generator.random(n) < 0.3 + 0.4 * x).astype(int)
    return {"arm": arm, "x": stratum, "y": 0.1 + 0.4 * x + 0.1 * arm + generator.uniform(0, 0.4, n)}, 0.1


def varied(generator: Generator, n: int, _: Protects) -> Study:
    """Return the same, with effects from 0 to 0.2 and spreads from 0.2 to 0.4; the truth is that of the table's mix."""
    stratum = generator.integers(0, STRATA, n)
    x = stratum / (STRATA - 1)
    arm = (generator.random(n) < 0.3 + 0.4 * x).astype(int)
    noise = generator.uniform(-0.5, 0.5, n) * (0.2 + 0.2 * x)
    return {"arm": arm, "x": stratum, "y": 0.3 + 0.3 * x + 0.2 * x * arm + noise}, float(np.mean(0.2 * x))


def risky(generator: Generator, n: int, _: Protects) -> Study:
    """Return a table with a binary outcome: its risk rises over strata from 0.1 to 0.5, and by 0.1 with treatment."""
    stratum = generator.integers(0, STRATA, n)
    x = stratum / (STRATA - 1)
    arm = (generator.random(n) < 0.3 + 0.4 * x).astype(int)
    return {"arm": arm, "x": stratum, "y": generator.binomial(1, 0.1 + 0.4 * x + 0.1 * arm).astype(float)}, 0.1


def scored(generator: Generator, n: int, _: Protects) -> Study:
    """Two real covariates that move both treatment, by a logistic regression, and the outcome; one effect."""
    x = generator.uniform(0, 1, (2, n))
    arm = (generator.random(n) < 1 / (1 + np.exp(-1.5 * (x[0] - 0.5) - (x[1] - 0.5)))).astype(int)
    noise = generator.uniform(-0.2, 0.2, n)
    return {"arm": arm, "a": x[0], "b": x[1], "y": 0.2 + 0.3 * x[0] + 0.1 * x[1] + 0.1 * arm + noise}, 0.1


def scored_risk(generator: Generator, n: int, protects: Protects) -> Study:
    """Return the same with a binary outcome."""
    columns, effect = scored(generator, n, protects)
    risk = 0.2 + 0.3 * columns["a"] + 0.1 * columns["b"] + 0.1 * columns["arm"]
    return columns | {"y": generator.binomial(1, risk).astype(float)}, effect


def four_linear(generator: Generator, n: int, _: Protects) -> Study:
    """Return the leaderboard's generated table with four covariates."""
    data = generated(n, 4, int(generator.integers(2**32)))
    return {"arm": data.column("t"), "y": data.column("y")} | {
        name: data.column(name) for name in data.names
    }, data.truth


TRIALS: tuple[Callable[[Generator, int, Protects], Study], ...] = (even, skewed, yes_or_no)
OBSERVATIONAL: tuple[Callable[[Generator, int, Protects], Study], ...] = (confounded, varied, risky)
SCORED: tuple[Callable[[Generator, int, Protects], Study], ...] = (scored, scored_risk)
STUDIES = {made.__name__: made for made in (*TRIALS, *OBSERVATIONAL, *SCORED, four_linear)}


_FOUR = [f"x{place}" for place in range(1, 5)]

ESTIMATORS: dict[str, tuple[Estimator, list[str]]] = {
    "difference_in_means": (dpc.DifferenceInMeans(), [made.__name__ for made in TRIALS]),
    "stratification": (dpc.Stratification(by=["x"], cap=3), [made.__name__ for made in OBSERVATIONAL]),
    "exact_matching": (dpc.ExactMatching(by=["x"]), [made.__name__ for made in OBSERVATIONAL]),
    "propensity_matching": (
        dpc.PropensityMatching(covariates=["a", "b"]),
        [made.__name__ for made in SCORED],
    ),
    "inverse_weighting": (dpc.InverseWeighting(covariates=["a", "b"]), [made.__name__ for made in SCORED]),
    "overlap_weighting": (
        dpc.InverseWeighting(covariates=["a", "b"], estimand="ATO"),
        [made.__name__ for made in SCORED],
    ),
    "regression_of_four": (dpc.RegressionAdjustment(covariates=_FOUR), ["four_linear"]),
    "doubly_robust_of_four": (dpc.DoublyRobust(covariates=_FOUR), ["four_linear"]),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    estimator: str
    protects: Protects
    outcome: str
    n: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Run:
    """What one simulated study gave."""

    covered: bool
    refused: bool
    error: float
    width: float
    sampling_sd: float
    privacy_sd: float


def schema_of(columns: Columns, protects: Protects) -> dpc.Schema:
    covariates: list[dpc.Category | dpc.Real] = [
        dpc.Category("x", list(range(STRATA))) if name == "x" else dpc.Real(name, 0, 1)
        for name in columns
        if name not in ("arm", "y")
    ]
    return dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0),
        covariates=covariates,
        protects=protects,
    )


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    columns, truth = STUDIES[cell.outcome](np.random.default_rng(seed), cell.n, cell.protects)
    table = connection().from_arrow(pa.table(columns))
    schema = schema_of(columns, cell.protects)
    source = Unmetered(CachedEngine(table, schema), schema)
    effect = ESTIMATORS[cell.estimator][0].estimate(source, epsilon=cell.epsilon, delta=cell.delta)
    # Refused intervals are made all the same, to see what they would have been worth.
    low, high = replace(effect, no_interval="").interval(0.95)
    assert effect.sampling_sd is not None
    return Run(
        low <= truth <= high,
        bool(effect.no_interval),
        effect.estimate - truth,
        high - low,
        effect.sampling_sd,
        effect.privacy_sd,
    )


def _given(runs: list[Run]) -> float | None:
    """Return the coverage of the intervals that were not refused."""
    given = [run.covered for run in runs if not run.refused]
    return round(float(np.mean(given)), 4) if given else None


def summary(cell: Cell, runs: list[Run]) -> dict[str, object]:
    share = float(np.mean([run.covered for run in runs]))
    errors = np.array([run.error for run in runs])
    return asdict(cell) | {
        "runs": len(runs),
        "coverage": round(share, 4),
        "coverage_given": _given(runs),
        "refused": round(float(np.mean([run.refused for run in runs])), 4),
        "coverage_se": round(math.sqrt(share * (1 - share) / len(runs)), 4),
        "bias": round(float(errors.mean()), 6),
        "rmse": round(float(np.sqrt((errors**2).mean())), 6),
        "mean_width": round(float(np.mean([run.width for run in runs])), 6),
        "sampling_sd": round(float(np.median([run.sampling_sd for run in runs])), 6),
        "privacy_sd": round(float(np.median([run.privacy_sd for run in runs])), 6),
    }


SHOWN = {
    "difference_in_means": "`DifferenceInMeans`",
    "stratification": "`Stratification`",
    "propensity_matching": "`PropensityMatching`, outcomes private",
    "inverse_weighting": "`InverseWeighting`",
}
"""The results that docs/benchmarks.md shows."""


def page() -> Iterator[str]:
    """Return coverage over all settings of each stored result, as a table of docs/benchmarks.md."""
    yield "| estimator | units | epsilon | settings | studies for each | coverage, %: lowest | median | highest |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, words in SHOWN.items():
        cells = json.loads((PUBLISHED / f"coverage_{name}.json").read_text(encoding="utf-8"))["cells"]
        units, epsilons = ([f"{each:,g}" for each in sorted({cell[key] for cell in cells})] for key in ("n", "epsilon"))
        covered = [100 * cell["coverage"] for cell in cells]
        found = " | ".join(f"{share:.1f}" for share in (min(covered), median(covered), max(covered)))
        least = min(cell["runs"] for cell in cells)
        yield f"| {words} | {' and '.join(units)} | {', '.join(epsilons)} | {len(cells)} | {least:,} | {found} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="difference_in_means")
    add_arguments(parser, 2000)
    parser.add_argument("--n", type=int, nargs="+", default=[400, 4000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--delta", type=float, nargs="+", default=[0.0])
    parser.add_argument("--protects", nargs="+", choices=get_args(Protects), default=["record_within_arm", "record"])
    parser.add_argument("--outcome", nargs="+", choices=STUDIES, help="kinds of study; all that suit, if left out")
    chosen = parser.parse_args()
    outcomes = chosen.outcome or ESTIMATORS[chosen.estimator][1]
    settings = itertools.product(chosen.protects, outcomes, chosen.n, chosen.epsilon, chosen.delta)
    cells = [Cell(chosen.estimator, *setting) for setting in settings]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
