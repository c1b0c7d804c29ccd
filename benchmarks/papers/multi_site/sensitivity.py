"""One site's synthetic data: the sensitivities of matching (figures 6 and 7), and errors of estimators.

Smooth sensitivity against the number of units and against imbalance: as the paper's Theorem 1 prints it, and by this
library's tighter bound; beside them the global sensitivity.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.papers.multi_site.tables import cells
from benchmarks.papers.multi_site.unmetered import Unmetered
from dpcausal.queries import GRID
from dpcausal.results.effect import Estimator
from dpcausal.vault.answers.stratum_matches import smooth_bound

Sizes = NDArray[np.int64]
"""The numbers of treated and of control units, stratum by stratum."""

EPSILON, DELTA = 1.0, 1e-5
CELLS = 100
UNITS = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
IMBALANCES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
KINDS = ("printed", "ours", "global")

ESTIMATORS: dict[str, tuple[Estimator, float]] = {
    "exact matching, smooth": (dpc.ExactMatching(by=["x"]), DELTA),
    "exact matching, global": (dpc.ExactMatching(by=["x"]), 0.0),
    "stratification": (dpc.Stratification(by=["x"], cap=4), 0.0),
    "difference in means": (dpc.DifferenceInMeans(), 0.0),
}


def sizes_of(table: DataSet) -> Sizes:
    """How many treated and control units each cell holds, cells without units too."""
    cell, arm = table.column("x"), table.column("t")
    size = len(table.covariates[0].values)  # type: ignore[union-attr]
    return np.stack([np.bincount(cell[arm == 1], minlength=size), np.bincount(cell[arm == 0], minlength=size)], axis=1)


def smoothed(sizes: Sizes, n: int, beta: float, *, corrected: bool) -> float:
    """Equation 1 of the paper.

    Args:
        sizes: The numbers of treated and of control units in each stratum of the public list. One without units has
            the ratio k at distance k, as the paper's appendix says; beside a stratum with units and an arm that can
            run out it never matters.
        n: The number of units.
        beta: The smoothness.
        corrected: As printed, the ratio is max + k where an arm can run out within k steps. Where both arms hold a
            unit, max + k + 1 can be reached: one unit is left in the smaller arm. Corrected, the ratio is that.
    """
    most, least = np.unique(np.stack([sizes.max(axis=1), sizes.min(axis=1)], axis=1), axis=0).T[:, :, None]
    # Beyond this distance even the largest ratio there is weighs less than the smallest at distance 0.
    k = np.arange(min(n, math.ceil(math.log(2 * n + 2) / beta)) + 1)
    ratio = np.ceil((most + k + 1) / np.maximum(least - k, 1))
    ratio = np.where((least == 0) | ((least <= k) & (not corrected)), most + k, ratio)
    return float((np.exp(-beta * k) * 4 / n * (1 + ratio)).max())


def paper_beta(epsilon: float, delta: float) -> float:
    return epsilon / 2 / math.log(2 / delta)


def sensitivities(table: DataSet) -> tuple[float, float, float]:
    """Return the three sensitivities, all with the paper's smoothness at epsilon 1."""
    sizes, n, beta = sizes_of(table), table.n, paper_beta(EPSILON, DELTA)
    return (
        smoothed(sizes, n, beta, corrected=False),
        smooth_bound(sizes, n, beta) / (2 * GRID * n),
        (n + 1) / n,
    )


def sensitivities_at(against: str, at: float, draws: int) -> dict[str, Any]:
    """Return the means of the three sensitivities over draws of the table, for outcomes within 0 and 1."""
    generator = np.random.default_rng((2024, int(10 * at), against == "units"))
    n, imbalance = (int(at), None) if against == "units" else (10_000, at)
    found = np.array([sensitivities(cells(generator, n, CELLS, imbalance)) for _ in range(draws)]).mean(axis=0)
    values = (float(f"{value:.4g}") for value in found)
    return {"against": against, "at": at, "draws": draws, **dict(zip(KINDS, values, strict=True))}


def estimates(numbers: Sequence[int], epsilons: Sequence[float] = EPSILONS) -> dict[str, Any]:
    """Return the errors of each estimator on one site's tables, epsilon by epsilon."""
    missed: dict[str, list[list[float]]] = {name: [] for name in ESTIMATORS}
    for number in numbers:
        generator = np.random.default_rng((2024, number))
        table = cells(generator, 10_000, CELLS)
        source = Unmetered(table.vault(), generator)
        for name, (estimator, delta) in ESTIMATORS.items():
            effects = (estimator.estimate(source, epsilon=epsilon, delta=delta) for epsilon in epsilons)
            missed[name].append([float(f"{effect.estimate - table.truth:.6g}") for effect in effects])
    return {"epsilons": list(epsilons), "missed": missed}


def errors(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean absolute error, RMSE and bias of each estimator on one site, epsilon by epsilon."""
    found: dict[str, Any] = {}
    for name in ESTIMATORS:
        missed = np.concatenate([np.array(part["missed"][name]) for part in parts])
        numbers = {"error": np.abs(missed), "rmse": missed**2, "bias": missed}
        means = {measure: each.mean(axis=0) for measure, each in numbers.items()}
        means["rmse"] **= 0.5
        found[name] = {measure: [float(f"{value:.3g}") for value in each] for measure, each in means.items()}
    tables = sum(len(next(iter(part["missed"].values()))) for part in parts)
    return {"epsilons": parts[0]["epsilons"], "tables": tables, "by": found}
