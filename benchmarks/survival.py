"""Coverage and error of survival on a public grid, beside published private estimators, in simulated trials.

Events are Weibull, and treatment multiplies their hazard. Censoring is exponential, so that 30 % of the units are
censored before the horizon. The peers, `benchmarks.survival_peers`, are given the same tables and the same epsilon.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine
from benchmarks.simulation import add_arguments, show, simulated
from benchmarks.survival_peers import area, corrected_peers, peers, trees
from dpcausal.audit.tables import Unmetered
from dpcausal.schema.schema import Protects
from dpcausal.utils.arrays import Array
from tests.support.noise import seeded

HORIZON, SHAPE, RATE = 5.0, 1.3, 0.17


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    n: int
    protects: Protects
    intervals: int = 10
    hazard_ratio: float = 0.7
    epsilon: float = 1.0
    censored: float = 0.3


@dataclass(frozen=True)
class Run:
    """What one simulated trial gave: for each quantity its error, and whether and how widely its interval covered."""

    errors: dict[str, float]
    covered: dict[str, bool]
    widths: dict[str, float]
    p_value: float
    refused: bool


def survival(times: Array, hazard_ratio: float) -> Array:
    """Return the true share without an event."""
    return np.exp(-hazard_ratio * (RATE * times) ** SHAPE)


@cache
def truth(cell: Cell) -> dict[str, float]:
    """Return the true effects."""
    fine = np.linspace(0, HORIZON, 20_001)
    both = [survival(fine, ratio) for ratio in (1.0, cell.hazard_ratio)]
    mean, middle = [area(each, fine) for each in both], [each[len(fine) // 2] for each in both]
    return {
        "rmst": mean[1] - mean[0],
        "survival": float(both[1][-1] - both[0][-1]),
        "survival_middle": float(middle[1] - middle[0]),
        "log_hazard_ratio": math.log(cell.hazard_ratio),
    }


@cache
def censoring_rate(cell: Cell) -> float:
    """Return the rate at which the stated share is censored before the horizon, over both arms."""
    fine = np.linspace(0, HORIZON, 4_001)
    free = (survival(fine, 1.0) + survival(fine, cell.hazard_ratio)) / 2

    def excess(rate: float) -> float:
        return area(rate * np.exp(-rate * fine) * free, fine) - cell.censored

    return float(optimize.brentq(excess, 1e-6, 5.0))


def trial(generator: np.random.Generator, cell: Cell) -> dict[str, Array]:
    """Return the columns of one trial."""
    arm = generator.permutation(np.arange(cell.n) % 2)
    ratios = np.where(arm == 1, cell.hazard_ratio, 1.0)
    event = (generator.exponential(size=cell.n) / ratios) ** (1 / SHAPE) / RATE
    censoring = generator.exponential(1 / censoring_rate(cell), cell.n) if cell.censored else np.full(cell.n, np.inf)
    return {"arm": arm, "years": np.minimum(event, censoring), "died": (event <= censoring).astype(int)}


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng(seed)
    columns, true = trial(generator, cell), truth(cell)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("years", 0, HORIZON, missing=0),
        covariates=[dpc.Binary("died", missing=0)],
        protects=cell.protects,
    )
    codes = {"treatment": columns["arm"].astype(np.int64), "covariate_0": columns["died"].astype(np.int64)}
    source = Unmetered(ArrayEngine(columns["years"], codes, dpc.Real("years", 0, HORIZON)), schema)
    with seeded(int(generator.integers(2**31))):
        effect = dpc.Survival(event="died", grid=cell.intervals).estimate(source, epsilon=cell.epsilon)
    assert effect.contrasts is not None
    if cell.hazard_ratio == 1:  # the test only
        p_value = effect.contrasts.p_value("log-rank statistic of died=1")
        return Run({}, {}, {}, p_value, bool(effect.no_interval))
    steps = effect.curves[0].difference()
    places = {
        "survival": (steps, steps.names[-1]),
        "survival_middle": (steps, steps.names[cell.intervals // 2 - 1]),
        "log_hazard_ratio": (effect.contrasts, "log hazard ratio of died=1"),
    }
    estimates = {"rmst": effect.estimate} | {name: joint.value(at) for name, (joint, at) in places.items()}
    limits = {name: joint.interval(at) for name, (joint, at) in places.items()}
    limits["rmst"] = replace(effect, no_interval="").interval(0.95)  # also where it is refused
    errors = {f"{name}, dpcausal": estimates[name] - true[name] for name in estimates}
    edges = np.linspace(0, HORIZON, cell.intervals + 1)
    curves_of = (
        peers(generator, columns, edges, cell.epsilon)
        | corrected_peers(np.random.default_rng((*seed, 1)), columns, edges, cell.epsilon)
        | trees(np.random.default_rng((*seed, 2)), columns, HORIZON, cell.epsilon)
    )
    for peer, curves in curves_of.items():
        found = {"rmst": curves[1][1] - curves[0][1], "survival": curves[1][0] - curves[0][0]}
        errors |= {f"{name}, {peer}": found[name] - true[name] for name in found}
    return Run(
        errors,
        {name: limits[name][0] <= true[name] <= limits[name][1] for name in limits},
        {name: high - low for name, (low, high) in limits.items()},
        math.nan,
        bool(effect.no_interval),
    )


def summary(cell: Cell, runs: Sequence[Run]) -> dict[str, object]:
    """Return coverage, widths and errors of one setting, and how far p-values are from uniform."""
    line: dict[str, object] = asdict(cell) | {"runs": len(runs)}
    line["refused"] = round(float(np.mean([run.refused for run in runs])), 4)
    for name in runs[0].covered:
        line[f"coverage, {name}"] = round(float(np.mean([run.covered[name] for run in runs])), 4)
        line[f"width, {name}"] = round(float(np.mean([run.widths[name] for run in runs])), 5)
    for name in runs[0].errors:
        errors = np.array([run.errors[name] for run in runs])
        line[f"rmse, {name}"] = round(float(np.sqrt((errors**2).mean())), 5)
        line[f"bias, {name}"] = round(float(errors.mean()), 5)
    if cell.hazard_ratio == 1:
        p_values = np.array([run.p_value for run in runs])
        line["log-rank below 0.05"] = round(float(np.mean(p_values < 0.05)), 4)
        line["log-rank uniform, p"] = round(float(stats.kstest(p_values, "uniform").pvalue), 4)
    return line


RESULTS = Path(__file__).parent / "results" / "survival.json"


def tables(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the page, by their names."""
    cells = [cell for cell in results["cells"] if cell["protects"] == "record"]
    coverage = ["| units | mean survival time | survival at 5 years | survival at 2.5 years | log hazard ratio |"]
    coverage.append("|---|---|---|---|---|")
    for cell in cells:
        names = ("rmst", "survival", "survival_middle", "log_hazard_ratio")
        shown = [f"{cell[f'coverage, {name}']:.1%} ({cell[f'width, {name}']:.3f})" for name in names]
        coverage.append(f"| {cell['n']:,} | {' | '.join(shown)} |")
    shares = [100 * share for cell in results["cells"] for name, share in cell.items() if name.startswith("coverage, ")]
    coverage.append(f"\nWith public arms it is alike: all coverage is {min(shares):.1f} to {max(shares):.1f} %.")
    null = results["null"]
    coverage.append(
        f"\nWithout an effect, {null['n']:,} units and {null['runs']:,} runs, the log-rank p-value is below 0.05 in "
        f"{null['log-rank below 0.05']:.1%}; a Kolmogorov-Smirnov test of its uniformity has p = "
        f"{null['log-rank uniform, p']:.2f}."
    )
    lines = ["| | " + " | ".join(f"{cell['n']:,}" for cell in cells) + " |"]
    lines.append("|---" * (len(cells) + 1) + "|")
    lines += [f"| {label} | {' | '.join(error(cell) for cell in cells)} |" for label, error in _ESTIMATORS.items()]
    published = [
        f"- {each['table']}, {each['units']} units: {each['rmst without privacy']:.1f}, sampling error "
        f"{each['rmst sampling sd']:.1f}, error by privacy {each['rmst privacy rmse']:.1f}; of the curves "
        f"{each['curve rmse']:.3f}; {each['refused']:.0%} of intervals refused"
        for each in results["tables"]
    ]
    return {name: "\n".join(each) for name, each in (("coverage", coverage), ("peers", lines), ("tables", published))}


def _error(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda cell: f"{cell[f'rmse, rmst, {name}']:.3f}"


def _best(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda cell: f"{min(cell[each] for each in cell if each.startswith(f'rmse, rmst, {name}')):.3f}"


_ESTIMATORS: dict[str, Callable[[dict[str, Any]], str]] = {
    "Kaplan and Meier without privacy": _error("no privacy"),
    "`Survival`": _error("dpcausal"),
    "Gondara and Wang 2020: noise in events and censorings, negative counts set to 0": _error("Gondara and Wang"),
    "Rahimian et al. 2024, DP-Prob: noise in the steps of the curve; not private under censoring": _error("DP-Prob"),
    "Rahimian et al. 2024, DP-Surv: noise in cosine coefficients, best number; not private under censoring": _best(
        "DP-Surv"
    ),
    "the same with the factor 1 + n0 for n0 censored units, which its code names": _best("corrected DP-Surv"),
    "Hung and Yu 2025, FDPCox: noise in a tree of hazards; delta 0.001": _error("FDPCox"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_arguments(parser, 400)
    parser.add_argument("--n", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--protects", nargs="+", default=["record", "record_within_arm"])
    parser.add_argument("--intervals", type=int, nargs="+", default=[10])
    parser.add_argument("--hazard-ratio", type=float, default=0.7)
    chosen = parser.parse_args()
    cells = [
        Cell(n, protects, intervals, chosen.hazard_ratio)
        for protects in chosen.protects
        for intervals in chosen.intervals
        for n in chosen.n
    ]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
