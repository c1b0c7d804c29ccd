"""How often intervals of complier effects with covariates cover, and their width beside two-stage least squares.

`python -m benchmarks.two_stage --runs 500 --json`. Without privacy: two-stage least squares with robust errors, on the
same tables.
"""

import argparse
import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.designs import Columns, SeededSource
from benchmarks.simulation import averages, show
from dpcausal.schema.schema import Protects

SIZES = (5_000, 20_000)
ASSIGNED: dict[str, Protects] = {"randomised": "record_within_arm", "confounded": "record"}
"""How the assignment came about, and what is protected: a trial's arms are public."""

EFFECT = 0.15
NAMES = ("age", "smoker")


def table(generator: Generator, n: int, assigned: str) -> Columns:
    """Return a trial, or a study in which age and smoking decide on the assignment too; both predict the outcome.

    Older people comply more often. Those who always take the drug are better off anyhow.
    """
    age, smoker = generator.uniform(-1, 1, n), generator.integers(0, 2, n)
    chance = 0.5 if assigned == "randomised" else 1 / (1 + np.exp(-age - 0.5 * smoker + 0.25))
    arm = (generator.random(n) < chance).astype(np.int64)
    complies, always = generator.random(n) < 0.6 + 0.2 * age, generator.random(n) < 0.5
    took = np.where(complies, arm, always)
    mean = 0.35 + 0.1 * age + 0.1 * smoker + 0.05 * (always & ~complies) + EFFECT * took
    return {"arm": arm, "y": generator.normal(mean, 0.08), "took": took, "age": age, "smoker": smoker}


def two_stage(columns: Columns) -> tuple[float, float]:
    """Return the estimate of two-stage least squares and its robust standard error."""
    ones = np.ones(len(columns["y"]))
    shared = [ones, *(columns[name] for name in NAMES)]
    instruments = np.column_stack([*shared, columns["arm"]]).astype(float)
    regressors = np.column_stack([*shared, columns["took"]]).astype(float)
    inverse = np.linalg.inv(instruments.T @ regressors)
    solution = inverse @ instruments.T @ columns["y"]
    residuals = columns["y"] - regressors @ solution
    covariance = inverse @ (instruments.T * residuals**2) @ instruments @ inverse.T
    return float(solution[-1]), float(covariance[-1, -1]) ** 0.5


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    assigned: str
    interaction: bool
    protects: Protects
    n: int
    epsilon: float = 1.0


def simulate(cell: Cell, seed: tuple[int, int]) -> dict[str, float]:
    """Return what one simulated study gave."""
    generator = np.random.default_rng(seed)
    columns = table(generator, cell.n, cell.assigned)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0),
        covariates=[dpc.Binary("took", missing=0), dpc.Real("age", -1, 1), dpc.Binary("smoker")],
        protects=cell.protects,
    )
    source = SeededSource(schema, columns, generator)
    estimator = dpc.ComplierEffect("took", covariates=NAMES, interaction=cell.interaction)
    effect = estimator.estimate(source, epsilon=cell.epsilon)
    low, high = replace(effect, no_interval="").interval(0.95)
    public, error = two_stage(columns)
    return {
        "coverage": low <= EFFECT <= high,
        "refused": bool(effect.no_interval),
        "error": effect.estimate - EFFECT,
        "mean_width": high - low,
        "sampling_sd": effect.sampling_sd or 0.0,
        "privacy_sd": effect.privacy_sd,
        "two_stage_coverage": abs(public - EFFECT) <= 1.96 * error,
        "two_stage_width": 2 * 1.96 * error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="simulated studies for each setting")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    settings = itertools.product(ASSIGNED, (True, False), SIZES)
    cells = [Cell(assigned, interaction, ASSIGNED[assigned], n) for assigned, interaction, n in settings]
    lines = [
        averages(cell, [simulate(cell, (place, run)) for run in range(chosen.runs)]) for place, cell in enumerate(cells)
    ]
    show(lines, chosen)


if __name__ == "__main__":
    main()
