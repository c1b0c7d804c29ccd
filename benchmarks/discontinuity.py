"""How often 95 % intervals of regression discontinuities cover the effect at the cutoff.

`python -m benchmarks.discontinuity --runs 400 --json`. Without privacy: the same local linear regressions on the same
tables, with textbook errors.
"""

import argparse
import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.designs import Columns, SeededSource
from benchmarks.simulation import averages, show

SIZES = (5_000, 20_000)
MEANS = {"linear": 0.0, "mildly curved": 0.25}
"""The second derivative of the mean outcome on each side, where the running variable goes from 0 to 1: the outcome's
range from 0 to 1 is crossed by a parabola of this curvature."""

EFFECT, CUTOFF = 0.1, 0.4
BANDWIDTHS = (0.15, 0.3)


def table(generator: Generator, n: int, curvature: float) -> Columns:
    """Return units whose treatment a score decides on; slope and curvature differ between the sides."""
    score = generator.beta(2, 2, n)
    arm, beyond = (score >= CUTOFF).astype(float), score - CUTOFF
    mean = 0.4 + 0.2 * beyond + arm * (EFFECT + 0.1 * beyond) + curvature / 2 * beyond**2 * (2 * arm - 1)
    return {"arm": arm, "y": generator.normal(mean, 0.1), "score": score}


def local_linear(columns: Columns, bandwidth: float) -> tuple[float, float]:
    """Return the jump at the cutoff and its standard error, without privacy."""
    beyond, found = columns["score"] - CUTOFF, []
    for inside in ((beyond < 0) & (beyond >= -bandwidth), (beyond >= 0) & (beyond <= bandwidth)):
        features = np.column_stack([np.ones(inside.sum()), beyond[inside]])
        inverse = np.linalg.inv(features.T @ features)
        solution = inverse @ features.T @ columns["y"][inside]
        residuals = columns["y"][inside] - features @ solution
        found.append((solution[0], residuals @ residuals / (len(residuals) - 2) * inverse[0, 0]))
    return float(found[1][0] - found[0][0]), float(found[0][1] + found[1][1]) ** 0.5


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    mean: str
    bandwidth: float
    n: int
    epsilon: float = 1.0


def simulate(cell: Cell, seed: tuple[int, int]) -> dict[str, float]:
    """Return what one simulated study gave."""
    generator = np.random.default_rng(seed)
    columns = table(generator, cell.n, MEANS[cell.mean])
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real("score", 0, 1)]
    )
    source = SeededSource(schema, columns, generator)
    estimator = dpc.RegressionDiscontinuity("score", CUTOFF, cell.bandwidth)
    effect = estimator.estimate(source, epsilon=cell.epsilon)
    low, high = replace(effect, no_interval="").interval(0.95)
    public, error = local_linear(columns, cell.bandwidth)
    return {
        "coverage": low <= EFFECT <= high,
        "refused": bool(effect.no_interval),
        "error": effect.estimate - EFFECT,
        "mean_width": high - low,
        "sampling_sd": effect.sampling_sd or 0.0,
        "privacy_sd": effect.privacy_sd,
        "public_coverage": abs(public - EFFECT) <= 1.96 * error,
        "public_width": 2 * 1.96 * error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="simulated studies for each setting")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    cells = [Cell(*each) for each in itertools.product(MEANS, BANDWIDTHS, SIZES)]
    lines = [
        averages(cell, [simulate(cell, (place, run)) for run in range(chosen.runs)]) for place, cell in enumerate(cells)
    ]
    show(lines, chosen)


if __name__ == "__main__":
    main()
