"""Coverage and error of survival on a public grid, beside published private estimators, in simulated trials.

Events are Weibull, and treatment multiplies their hazard. Censoring is exponential, so that 30 % of the units are
censored before the horizon. The peers are given the same tables and the same epsilon:

- Gondara and Wang (2020), Differentially Private Survival Function Estimation: Laplace noise of scale 2 / epsilon in
  the numbers of events and of censorings in each interval; numbers at risk follow from them. Negative numbers are set
  to 0, as in the code of Rahimian et al.
- Rahimian et al. (2024), Private and Collaborative Kaplan-Meier Estimators. DP-Surv: noise in the first coefficients of
  the curve's discrete cosine transform, then isotonic regression. DP-Prob: noise in the curve's steps. Both as in their
  code, with the number of coefficients that gives the smallest error here. Their sensitivities hold without censoring
  only: DP-Surv's own remark is that with n0 censored units it is 1 + n0 times as large, and DP-Prob divides by the
  number of events, which is private.
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import fft, optimize, stats

import dpcausal as dpc
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.arrays import Array
from dpcausal.audit.tables import Unmetered
from dpcausal.schema import Protects
from dpcausal.vault.engines import ExactInts
from tests.support.noise import seeded

HORIZON, SHAPE, RATE = 5.0, 1.3, 0.17
COEFFICIENTS = (2, 3, 4, 6, 10)
"""The numbers of coefficients that DP-Surv is tried with."""


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


def _area(heights: Array, at: Array) -> float:
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(at)).sum())


@cache
def truth(cell: Cell) -> dict[str, float]:
    """Return the true effects."""
    fine = np.linspace(0, HORIZON, 20_001)
    both = [survival(fine, ratio) for ratio in (1.0, cell.hazard_ratio)]
    mean, middle = [_area(each, fine) for each in both], [each[len(fine) // 2] for each in both]
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
        return _area(rate * np.exp(-rate * fine) * free, fine) - cell.censored

    return float(optimize.brentq(excess, 1e-6, 5.0))


def trial(generator: np.random.Generator, cell: Cell) -> dict[str, Array]:
    """Return the columns of one trial."""
    arm = generator.permutation(np.arange(cell.n) % 2)
    ratios = np.where(arm == 1, cell.hazard_ratio, 1.0)
    event = (generator.exponential(size=cell.n) / ratios) ** (1 / SHAPE) / RATE
    censoring = generator.exponential(1 / censoring_rate(cell), cell.n) if cell.censored else np.full(cell.n, np.inf)
    return {"arm": arm, "years": np.minimum(event, censoring), "died": (event <= censoring).astype(int)}


class Counted:
    """An engine for one query: the counts of a simulated table, by NumPy, since planning SQL takes longer."""

    def __init__(self, columns: dict[str, Array], intervals: int) -> None:
        edges = [*np.linspace(0, HORIZON, intervals + 1), np.inf]
        self._counts = np.histogramdd(
            (columns["arm"], columns["years"], columns["died"]), ([-0.5, 0.5, 1.5], edges, [-0.5, 0.5, 1.5])
        )[0].astype(int)

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:  # noqa: ARG002
        """Return the numbers of units by arm, or by arm, interval and event."""
        if len(cells) == 1:
            sizes = self._counts.sum(axis=(1, 2)).tolist()
            return np.array([*sizes, 0][: cells["treatment"]], dtype=object)[:, None]
        return self._counts.astype(object)[..., None]


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng(seed)
    columns, true = trial(generator, cell), truth(cell)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("years", 0, HORIZON),
        covariates=[dpc.Binary("died")],
        protects=cell.protects,
    )
    source = Unmetered(Counted(columns, cell.intervals), schema)  # type: ignore[arg-type]
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
    curves_of = peers(generator, columns, cell) | corrected_peers(np.random.default_rng((*seed, 1)), columns, cell)
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


Curve = tuple[float, float]
"""Survival at the horizon, and the restricted mean survival time."""


def peers(generator: np.random.Generator, columns: dict[str, Array], cell: Cell) -> dict[str, list[Curve]]:
    """Return both arms' curves by each peer, and without privacy."""
    found: dict[str, list[Curve]] = {}
    edges = np.linspace(0, HORIZON, cell.intervals + 1)
    for arm in (0, 1):
        times, died = (columns[name][columns["arm"] == arm] for name in ("years", "died"))
        for name, curve in _peer_curves(generator, times, died, edges, cell.epsilon).items():
            full = np.concatenate([[1.0], curve])
            found.setdefault(name, []).append((float(full[-1]), _area(full, edges)))
        found.setdefault("no privacy", []).append(kaplan_meier(times, died, HORIZON))
    return found


def _peer_curves(
    generator: np.random.Generator, times: Array, died: Array, edges: Array, epsilon: float
) -> dict[str, Array]:
    size, intervals = len(times), len(edges) - 1
    events, censored = (np.histogram(times[died == kind], edges)[0] for kind in (1, 0))
    noisy = [np.maximum(np.rint(each + generator.laplace(0, 2 / epsilon, intervals)), 0) for each in (events, censored)]
    exact = product_limit(events, censored, size)
    found = {"Gondara and Wang": product_limit(noisy[0], noisy[1], size)}
    signal = np.concatenate([[1.0], exact])
    for kept in (each for each in COEFFICIENTS if each <= intervals):
        found[f"DP-Surv, {kept}"] = by_cosines(generator, signal, kept, epsilon * size)
    steps = -np.diff(np.concatenate([signal, [0.0]]))
    steps = np.maximum(steps + generator.laplace(0, 2 / max(died.sum(), 1) / epsilon, len(steps)), 0)
    found["DP-Prob"] = 1 - np.cumsum(steps / steps.sum())[:-1]
    return found


def by_cosines(generator: np.random.Generator, signal: Array, kept: int, size: float) -> Array:
    """Return a curve from noise in its first cosine coefficients, in proportion to 1 / size."""
    spectrum = fft.dct(signal, norm="ortho") + generator.laplace(
        0, math.sqrt(kept * (len(signal) - 1)) / size, len(signal)
    )
    spectrum[kept:] = 0
    curve = fft.idct(spectrum, norm="ortho")
    curve[0] = 1.0
    return np.clip(optimize.isotonic_regression(curve, increasing=False).x, 0, 1)[1:]


def corrected_peers(generator: np.random.Generator, columns: dict[str, Array], cell: Cell) -> dict[str, list[Curve]]:
    """Return both arms' curves by DP-Surv with the sensitivity that its code names under censoring."""
    found: dict[str, list[Curve]] = {}
    edges = np.linspace(0, HORIZON, cell.intervals + 1)
    for arm in (0, 1):
        times, died = (columns[name][columns["arm"] == arm] for name in ("years", "died"))
        events, censored = (np.histogram(times[died == kind], edges)[0] for kind in (1, 0))
        signal = np.concatenate([[1.0], product_limit(events, censored, len(times))])
        for kept in (each for each in COEFFICIENTS if each <= cell.intervals):
            curve = by_cosines(generator, signal, kept, cell.epsilon * len(times) / (1 + np.sum(died == 0)))
            full = np.concatenate([[1.0], curve])
            found.setdefault(f"corrected DP-Surv, {kept}", []).append((float(full[-1]), _area(full, edges)))
    return found


def product_limit(events: Array, censored: Array, size: int) -> Array:
    """Return the Kaplan-Meier curve of counts in intervals; those who are censored leave at the end of theirs."""
    at_risk = np.maximum(size - np.concatenate([[0.0], np.cumsum(events + censored)[:-1]]), 1.0)
    return np.cumprod(np.clip(1 - events / at_risk, 0, 1))


def kaplan_meier(times: Array, died: Array, horizon: float) -> Curve:
    """Return the usual estimates, without privacy and without a grid."""
    order = np.argsort(times, kind="stable")
    time, event = times[order], died[order]
    inside = time < horizon
    steps = np.cumprod(1 - event / np.arange(len(time), 0, -1))[inside]
    at = np.concatenate([[0.0], time[inside], [horizon]])
    return float(steps[-1]), float((np.concatenate([[1.0], steps]) * np.diff(at)).sum())


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
PAGE = Path(__file__).parents[1] / "docs" / "survival.md"
_LEVELS = {"record": "all of a record", "record_within_arm": "arms public"}


def tables(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the page, by their names."""
    cells = results["cells"]
    coverage = [
        "| protects | units | mean survival time | survival at 5 years | survival at 2.5 years | log hazard ratio |"
    ]
    coverage.append("|---|---|---|---|---|---|")
    for cell in cells:
        names = ("rmst", "survival", "survival_middle", "log_hazard_ratio")
        shown = [f"{cell[f'coverage, {name}']:.1%} ({cell[f'width, {name}']:.3f})" for name in names]
        coverage.append(f"| {_LEVELS[cell['protects']]} | {cell['n']:,} | {' | '.join(shown)} |")
    null = results["null"]
    coverage.append(
        f"\nWithout an effect, {null['n']:,} units and {null['runs']:,} runs, the log-rank p-value is below 0.05 in "
        f"{null['log-rank below 0.05']:.1%}; a Kolmogorov-Smirnov test of its uniformity has p = "
        f"{null['log-rank uniform, p']:.2f}."
    )
    lines = ["| | " + " | ".join(f"{cell['n']:,}, {_LEVELS[cell['protects']]}" for cell in cells) + " |"]
    lines.append("|---" * (len(cells) + 1) + "|")
    lines += [f"| {label} | {' | '.join(error(cell) for cell in cells)} |" for label, error in _ESTIMATORS.items()]
    heads = (
        "table",
        "units",
        "times",
        "curve's error",
        "difference in mean time without privacy",
        "error by privacy",
        "sampling error",
        "log-rank p without privacy",
        "private, median",
        "refused",
    )
    published = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    published += [
        f"| {each['table']} | {each['units']} | {each['intervals']} | {each['curve rmse']:.3f} | "
        f"{each['rmst without privacy']:.1f} | {each['rmst privacy rmse']:.1f} | {each['rmst sampling sd']:.1f} | "
        f"{each['log-rank p without privacy']:.3f} | {each['log-rank p, median']:.3f} | {each['refused']:.0%} |"
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
}


def filled(page: str, results: dict[str, Any]) -> str:
    """Return the page with its tables as they must be."""
    for name, table in tables(results).items():
        begin, end = f"<!-- {name} begin -->\n", f"<!-- {name} end -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table}\n\n{end}{rest.partition(end)[2]}"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_arguments(parser, 400)
    parser.add_argument("--n", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--protects", nargs="+", default=["record", "record_within_arm"])
    parser.add_argument("--intervals", type=int, nargs="+", default=[10])
    parser.add_argument("--hazard-ratio", type=float, default=0.7)
    parser.add_argument("--page", action="store_true", help="write the stored results into docs/survival.md, no more")
    chosen = parser.parse_args()
    if chosen.page:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
        return
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
