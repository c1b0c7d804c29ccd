"""How often 95 % intervals of formulas of sums cover the truth, over simulated tables with a vault's answers.

`python -m benchmarks.custom_sums --runs 200 --json`

Noise has the laws and sizes of the vault's, from a seed.
"""

import argparse
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

import dpcausal as dpc
from benchmarks.simulation import add_arguments, averages, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table
from tests.support.noise import seeded

SLOPE = dpc.FormulaEstimator(
    estimand="mean difference in score for one more mg of dose",
    formula="covariance(dose, score) / variance(dose)",
    variance="(variance(score) - estimate * covariance(dose, score)) / variance(dose) / (n - 2)",
)
LOG_RATIO = dpc.FormulaEstimator(
    estimand="log risk ratio of death",
    cells=["arm"],
    formula="log(mean(died)[drug] / mean(died)[placebo])",
    variance="(1 / mean(died)[drug] - 1) / n[drug] + (1 / mean(died)[placebo] - 1) / n[placebo]",
)
ARMS = ("placebo", "drug")
DOSES = dpc.Schema(dpc.Treatment("arm", arms=ARMS), dpc.Real("score", 0, 100), [dpc.Real("dose", 0, 40)])
DEATHS = dpc.Schema(dpc.Treatment("arm", arms=ARMS), dpc.Binary("died"))

DATABASE = connect()
Columns = dict[str, np.ndarray]
Z = NormalDist().inv_cdf(0.975)


def _doses(random: np.random.Generator, dose: np.ndarray, noise: np.ndarray, slope: float) -> Columns:
    return {"arm": random.integers(0, 2, len(dose)), "dose": dose, "score": 30 + slope * dose + noise}


def _deaths(random: np.random.Generator, n: int, treated: float, risks: tuple[float, float]) -> Columns:
    arm = (random.random(n) < treated).astype(int)
    return {"arm": arm, "died": (random.random(n) < np.array(risks)[arm]).astype(int)}


@dataclass(frozen=True)
class Generator:
    """Tables of a kind: which estimator they are for, what is true, and how one is drawn."""

    estimator: str
    truth: float
    drawn: Callable[[np.random.Generator, int], Columns]


GENERATORS = {
    "uniform doses, normal errors": Generator(
        "slope", 0.8, lambda r, n: _doses(r, r.uniform(5, 35, n), np.clip(r.normal(0, 8, n), -30, 30), 0.8)
    ),
    "skewed doses and errors": Generator(
        "slope", 0.5, lambda r, n: _doses(r, 40 * r.beta(1.5, 5, n), 50 * r.beta(1.2, 6, n) - 50 * 1.2 / 7.2, 0.5)
    ),
    "four doses, no slope": Generator(
        "slope", 0.0, lambda r, n: _doses(r, r.choice([0.0, 10, 20, 40], n), r.uniform(-20, 20, n), 0.0)
    ),
    "risks of 30 and 20 %": Generator("log ratio", np.log(2 / 3), lambda r, n: _deaths(r, n, 0.5, (0.3, 0.2))),
    "risks of 8 and 10 %": Generator("log ratio", np.log(10 / 8), lambda r, n: _deaths(r, n, 0.5, (0.08, 0.1))),
    "equal risks of 15 %, few treated": Generator("log ratio", 0.0, lambda r, n: _deaths(r, n, 0.2, (0.15, 0.15))),
}


@dataclass(frozen=True)
class Cell:
    """One setting: the kind of tables, their units, and epsilon."""

    generator: str
    n: int
    epsilon: float


def simulate(task: tuple[Cell, tuple[int, int]]) -> dict[str, float]:
    cell, seed = task
    random = np.random.default_rng(seed)
    generator = GENERATORS[cell.generator]
    columns = generator.drawn(random, cell.n)
    estimator, schema = (SLOPE, DOSES) if generator.estimator == "slope" else (LOG_RATIO, DEATHS)
    table = DATABASE.from_arrow(pa.table(columns | {"arm": np.array(ARMS)[columns["arm"]]}))
    with seeded(int(random.integers(2**31))):
        effect = estimator.estimate(Unmetered(open_table(table, schema), schema), epsilon=cell.epsilon)
    low, high = (np.nan, np.nan) if effect.no_interval else effect.interval()
    return {
        "error": effect.estimate - generator.truth,
        "given": float(not effect.no_interval),
        "covered": float(low <= generator.truth <= high),
        "width": high - low,
        "width_without_noise": 2 * Z * standard_error(columns),
        "privacy_sd": effect.privacy_sd,
    }


def standard_error(columns: Columns) -> float:
    """Return the standard error of the same estimate without noise, by NumPy alone."""
    if "dose" in columns:
        x, y = (columns[name] - columns[name].mean() for name in ("dose", "score"))
        residual = y - (x @ y) / (x @ x) * x
        return float(np.sqrt(residual @ residual / (len(x) - 2) / (x @ x)))
    arms = [columns["died"][columns["arm"] == arm] for arm in (0, 1)]
    return float(np.sqrt(sum((1 / died.mean() - 1) / len(died) for died in arms)))


def summary(cell: Cell, runs: Sequence[Mapping[str, float]]) -> dict[str, object]:
    """Return a line of results; coverage and widths are those of the intervals that were given."""
    given = [run for run in runs if run["given"]]
    return averages(cell, given or runs) | {"runs": len(runs), "given": round(len(given) / len(runs), 4)}


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the docs page: one line for each setting."""
    text = "| estimate | tables | n | given | coverage | width | without noise |\n|---|---|---|---|---|---|---|\n"
    for line in lines:
        name = line["generator"]
        found = f"{100 * line['given']:.0f} % | {100 * line['covered']:.1f} %"
        widths = f"{line['width']:.3f} | {line['width_without_noise']:.3f}"
        text += f"| {GENERATORS[name].estimator} | {name} | {line['n']:,} | {found} | {widths} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 200)
    parser.add_argument("--n", type=int, nargs="+", default=[5_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    chosen = parser.parse_args()
    cells = [Cell(*setting) for setting in itertools.product(GENERATORS, chosen.n, chosen.epsilon)]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
