"""How often 95 % intervals of cluster-randomised trials cover the truth, over simulated trials with a vault's answers.

`python -m benchmarks.clusters --runs 400 --json`

Noise has the laws and sizes of the vault's, from a seed.
"""

import argparse
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, get_args

import numpy as np

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.schema.schema import Protects
from tests.support.noise import seeded

SD, EFFECT, MEAN = 15.0, 4.0, 45.0
"""The outcome's standard deviation over persons, the effect and the control mean, on a scale from 0 to 100."""


@dataclass(frozen=True)
class Cell:
    """One setting: intracluster correlation, clusters in each arm, and the mean number of persons in each."""

    icc: float
    clusters: int
    persons: int
    protects: Protects
    epsilon: float


@dataclass(frozen=True)
class Run:
    """What one simulated trial gave."""

    covered: bool
    forgetful: bool
    error: float
    width: float
    privacy_sd: float


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng(seed)
    count = 2 * cell.clusters
    # Sizes vary by a quarter of their mean.
    sizes = np.maximum(generator.normal(cell.persons, cell.persons / 4, count).round().astype(int), 2)
    cluster = np.repeat(np.arange(count), sizes)
    arm = cluster % 2
    between = generator.normal(0, SD * cell.icc**0.5, count)
    outcome = MEAN + EFFECT * arm + between[cluster] + generator.normal(0, SD * (1 - cell.icc) ** 0.5, len(cluster))
    column, names = dpc.Real("y", 0, 100), [f"c{place}" for place in range(count)]
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=column,
        covariates=[dpc.Category("cluster", names)],
        protects=cell.protects,
    )
    engine: Any = ArrayEngine(outcome, {"treatment": arm, "covariate_0": cluster}, column)
    with seeded(int(generator.integers(2**31))):
        source = Unmetered(engine, schema)
        effect = dpc.ClusterTrial("cluster", names[1::2], cell.icc).estimate(source, epsilon=cell.epsilon)
        alone = dpc.DifferenceInMeans().estimate(source, epsilon=cell.epsilon)
    # Noise is the sum of many parts, so the critical value is the normal one; the tests compare both.
    half, forgotten = (NormalDist().inv_cdf(0.975) * (each.standard_error or 0.0) for each in (effect, alone))
    error = effect.estimate - EFFECT
    return Run(abs(error) <= half, abs(alone.estimate - EFFECT) <= forgotten, error, 2 * half, effect.privacy_sd)


def summary(cell: Cell, runs: Sequence[Run]) -> dict[str, object]:
    errors = np.array([run.error for run in runs])
    return asdict(cell) | {
        "runs": len(runs),
        "coverage": round(float(np.mean([run.covered for run in runs])), 4),
        "coverage_without_clusters": round(float(np.mean([run.forgetful for run in runs])), 4),
        "bias": round(float(errors.mean()), 4),
        "rmse": round(float(np.sqrt((errors**2).mean())), 4),
        "mean_width": round(float(np.mean([run.width for run in runs])), 4),
        "privacy_sd": round(float(np.median([run.privacy_sd for run in runs])), 4),
    }


SHOWN = 0.05
"""The intracluster correlation whose settings the page shows."""


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the docs page: one line for each setting of one correlation, and the range over all."""
    text = "| clusters an arm | persons a cluster | coverage | width | noise | forgetting clusters |\n"
    text += "|---|---|---|---|---|---|\n"
    for line in lines:
        if line["icc"] == SHOWN:
            noise = min((line["privacy_sd"] / line["rmse"]) ** 2, 1.0)
            found = f"{100 * line['coverage']:.1f} % | {line['mean_width']:.1f} | {100 * noise:.0f} %"
            forgetful = f"{100 * line['coverage_without_clusters']:.1f} %"
            text += f"| {line['clusters']} | {line['persons']} | {found} | {forgetful} |\n"
    ranges = [
        f"{100 * min(shares):.1f} to {100 * max(shares):.1f} %"
        for shares in ([line[name] for line in lines] for name in ("coverage", "coverage_without_clusters"))
    ]
    correlations = ", ".join(f"{icc:g}" for icc in sorted({line["icc"] for line in lines}))
    return (
        f"{text}\nIn all {len(lines)} settings, with an ICC of {correlations}, intervals cover in {ranges[0]}. "
        f"Those that forget clusters cover in {ranges[1]}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 400)
    parser.add_argument("--icc", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--clusters", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--persons", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--protects", nargs="+", choices=get_args(Protects), default=["record"])
    chosen = parser.parse_args()
    settings = itertools.product(chosen.icc, chosen.clusters, chosen.persons, chosen.protects, chosen.epsilon)
    cells = [Cell(*setting) for setting in settings]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
