"""The evaluation of Koga, Chaudhuri and Page (2024) on one site's synthetic data, done again.

Smooth sensitivity against the number of units and against imbalance: as the paper's Theorem 1 prints it, with what it
gets wrong corrected, and by this library's tighter bound; beside them the global sensitivity. Then errors of the
estimators, each draw with a table of its own and a real vault.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.progress import progress
from benchmarks.studies.setup import Setup
from benchmarks.studies.tables import cells
from dpcausal.effect import Estimator
from dpcausal.queries import GRID
from dpcausal.vault.answers.stratum_matches import smooth_bound

Sizes = NDArray[np.int64]
"""The numbers of treated and of control units, stratum by stratum."""

EPSILON, DELTA = 1.0, 1e-5
CELLS = 100
UNITS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
IMBALANCES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

ESTIMATORS: dict[str, tuple[Estimator, float]] = {
    "exact matching, smooth": (dpc.ExactMatching(by=["x"]), DELTA),
    "exact matching, global": (dpc.ExactMatching(by=["x"]), 0.0),
    "stratification": (dpc.Stratification(by=["x"]), 0.0),
    "difference in means": (dpc.DifferenceInMeans(), 0.0),
}


@dataclass(frozen=True)
class Sensitivities:
    """What noise could be in proportion to, for outcomes within 0 and 1: means over draws of the table."""

    against: str
    at: float
    draws: int
    printed: float
    corrected: float
    ours: float
    largest: float


@dataclass(frozen=True)
class Errors:
    """How far one estimator was from the true effect."""

    estimator: str
    epsilon: float
    delta: float
    repeats: int
    mean_absolute_error: float
    rmse: float
    bias: float


def sizes_of(table: DataSet) -> Sizes:
    """How many treated and control units each cell holds, cells without units too."""
    cell, arm = table.column("x"), table.column("t")
    size = len(table.covariates[0].values)  # type: ignore[union-attr]
    return np.stack([np.bincount(cell[arm == 1], minlength=size), np.bincount(cell[arm == 0], minlength=size)], axis=1)


def smoothed(sizes: Sizes, n: int, beta: float, *, corrected: bool) -> float:
    """Equation 1 of the paper.

    Args:
        sizes: The numbers of treated and of control units in each stratum.
        n: The number of units.
        beta: The smoothness.
        corrected: As printed, the ratio is max + k where an arm can run out within k steps, one less than can be
            reached, and strata without units are left out. Corrected, it is (max + k + 1) / 1 there, and there always
            is one stratum without units: a value that nobody has yet. Where strata come from a public list and all of
            them have many units, as here with very many units, only the first of these matters.
    """
    present = sizes[sizes.sum(axis=1) > 0]
    strata = np.vstack([present, [[0, 0]]]) if corrected else present
    most, least = np.unique(np.stack([strata.max(axis=1), strata.min(axis=1)], axis=1), axis=0).T[:, :, None]
    # Beyond this distance even the largest ratio there is weighs less than the smallest at distance 0.
    k = np.arange(min(n, math.ceil(math.log(2 * n + 2) / beta)) + 1)
    ratio = np.ceil((most + k + 1) / np.maximum(least - k, 1))
    if not corrected:
        ratio = np.where(least <= k, most + k, ratio)
    return float((np.exp(-beta * k) * 4 / n * (1 + ratio)).max())


def paper_beta(epsilon: float, delta: float) -> float:
    return epsilon / 2 / math.log(2 / delta)


def sensitivities(table: DataSet) -> tuple[float, float, float, float]:
    """Return the four sensitivities, all with the paper's smoothness at epsilon 1."""
    sizes, n, beta = sizes_of(table), table.n, paper_beta(EPSILON, DELTA)
    return (
        smoothed(sizes, n, beta, corrected=False),
        smoothed(sizes, n, beta, corrected=True),
        smooth_bound(sizes, n, beta) / (2 * GRID * n),
        (n + 1) / n,
    )


def curve(generator: Generator, setup: Setup) -> Iterator[Sensitivities]:
    draws = 3 if setup.quick else 30
    settings: list[tuple[str, float, int, float | None]] = [
        ("units", float(n), n, None) for n in UNITS if not setup.quick or n <= 10_000
    ]
    settings += [("imbalance", a, 10_000, a) for a in IMBALANCES]
    for against, at, n, imbalance in progress(settings, len(settings), "sensitivities"):
        found = np.array([sensitivities(cells(generator, n, CELLS, imbalance)) for _ in range(draws)]).mean(axis=0)
        yield Sensitivities(against, at, draws, *(float(f"{value:.4g}") for value in found))


def errors(generator: Generator, setup: Setup) -> Iterator[Errors]:
    repeats = setup.times(120, quick=4)
    epsilons = (0.5, 1.0, 4.0) if setup.quick else EPSILONS
    tasks = [(name, epsilon) for name in ESTIMATORS for epsilon in epsilons]
    found: dict[tuple[str, float], list[float]] = {task: [] for task in tasks}
    for _ in progress(range(repeats), repeats, "tables"):
        table = cells(generator, 10_000, CELLS)
        vault = table.vault()
        for name, epsilon in tasks:
            estimator, delta = ESTIMATORS[name]
            effect = estimator.estimate(vault, epsilon=epsilon, delta=delta)
            found[name, epsilon].append(effect.estimate - table.truth)
    for (name, epsilon), missed in found.items():
        values = np.array(missed)
        absolute, rmse, bias = np.abs(values).mean(), np.sqrt((values**2).mean()), values.mean()
        rounded = (float(f"{value:.4g}") for value in (absolute, rmse, bias))
        yield Errors(name, epsilon, ESTIMATORS[name][1], repeats, *rounded)


def run(setup: Setup) -> dict[str, Any]:
    generator = np.random.default_rng(2024)
    missed = list(errors(generator, setup))
    rmse = {each.estimator: each.rmse for each in missed if each.epsilon == EPSILON}
    return {
        "study": "exact_matching",
        "ratio_at_epsilon_1": round(rmse["exact matching, smooth"] / rmse["stratification"], 2),
        "sensitivities": [asdict(each) for each in curve(generator, setup)],
        "errors": [asdict(each) for each in missed],
    }


def text(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result as lines."""
    names = ("printed", "corrected", "ours", "largest")
    for against, unit in (("units", "n"), ("imbalance", "a")):
        yield f"Sensitivity against {against}, {CELLS} cells, epsilon {EPSILON:g}, delta {DELTA:g}"
        yield f"{unit:>10}" + "".join(f"{name:>12}" for name in names)
        for line in result["sensitivities"]:
            if line["against"] == against:
                yield f"{line['at']:>10g}" + "".join(f"{line[name]:>12.3g}" for name in names)
        yield ""
    missed = result["errors"]
    epsilons = list(dict.fromkeys(line["epsilon"] for line in missed))
    for measure in ("mean_absolute_error", "rmse", "bias"):
        yield f"{measure.replace('_', ' ')}, 10,000 units, {CELLS} cells, {missed[0]['repeats']} tables"
        yield f"{'':>24}" + "".join(f"{f'eps {epsilon:g}':>11}" for epsilon in epsilons)
        for name in ESTIMATORS:
            yield f"{name:>24}" + "".join(f"{e[measure]:>11.3g}" for e in missed if e["estimator"] == name)
        yield ""
    yield f"RMSE of smooth exact matching over that of stratification at epsilon 1: {result['ratio_at_epsilon_1']:g}"
