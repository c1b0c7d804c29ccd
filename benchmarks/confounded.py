"""Coverage of survival and quantile effects adjusted by weights of a private score, in simulated confounded tables.

`python -m benchmarks.confounded --runs 400 --json`.

Two covariates, a number x and a binary k, move treatment (log odds 1.0 x + 0.6 k) and outcome. Times are Weibull, their
hazard multiplied by exp(0.8 x + 0.5 k), and by 0.7 with treatment; 30 % are censored before the horizon. The other
outcome is normal around 45 + 5 arm + 14 x + 6 k, with standard deviations of 10 and 12. Each table is analysed with
weights for the ATE and the ATO, and without adjustment.
"""

import argparse
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine, ticks
from benchmarks.simulation import add_arguments, show, simulated
from benchmarks.survival import HORIZON, RATE, SHAPE
from dpcausal.audit.tables import Unmetered
from dpcausal.utils.arrays import Array
from tests.support.noise import seeded

QUANTILES = (0.1, 0.5, 0.9)
INTERVALS = 10
HAZARD_RATIO, CENSORED = 0.7, 0.3
RESULTS = Path(__file__).parent / "results" / "confounded.json"
_DRAWS = 400_000

X, K = dpc.Real("x", -1, 1), dpc.Binary("k")
YEARS, Y = dpc.Real("years", 0, HORIZON), dpc.Real("y", 0, 100)
SURVIVAL = dpc.Schema(
    treatment=dpc.Treatment("arm", undeclared=0), outcome=YEARS, covariates=[X, K, dpc.Binary("died")]
)
OUTCOME = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=Y, covariates=[X, K])


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation; `weights` is empty where nothing is adjusted for."""

    topic: str
    n: int
    weights: str
    epsilon: float = 1.0


@dataclass(frozen=True)
class Run:
    """What one simulated table gave: for each quantity its error, and half the width of its interval."""

    errors: dict[str, float]
    halves: dict[str, float]
    refused: bool


@dataclass(frozen=True)
class Units:
    """Covariates of units, and their chance to be treated."""

    x: Array
    k: NDArray[np.int64]

    @classmethod
    def drawn(cls, generator: np.random.Generator, n: int) -> "Units":
        """Draw so many units."""
        return cls(np.clip(generator.normal(0, 0.4, n), -1, 1), generator.integers(0, 2, n))

    @property
    def chance(self) -> Array:
        """The chance to be treated."""
        return 1 / (1 + np.exp(-(1.0 * self.x + 0.6 * (self.k - 0.5))))

    @property
    def hazard(self) -> Array:
        """What covariates multiply the hazard by."""
        return np.exp(0.8 * self.x + 0.5 * (self.k - 0.5))

    def outcomes(self, generator: np.random.Generator, arm: Array) -> Array:
        """Draw outcomes in these arms."""
        noise = generator.normal(0, 10 + 2 * arm, len(self.x))
        return np.clip(45 + 5 * arm + 14 * self.x + 6 * (self.k - 0.5) + noise, 0, 100)


@cache
def truth(topic: str, weights: str) -> dict[str, float]:
    """Return the true effects among all units, or in the overlap population."""
    generator = np.random.default_rng(12)
    units = Units.drawn(generator, _DRAWS)
    share = units.chance * (1 - units.chance) if weights == "ATO" else np.ones(_DRAWS)
    share = share / share.sum()
    if topic == "survival":
        fine = np.linspace(0, HORIZON, 101)
        curves = []
        for ratio in (1.0, HAZARD_RATIO):
            hazards = units.hazard * ratio
            curves.append(np.array([share @ np.exp(-hazards * (RATE * at) ** SHAPE) for at in fine]))
        apart = curves[1] - curves[0]
        area = float(((apart[1:] + apart[:-1]) / 2 * np.diff(fine)).sum())
        return {"rmst": area, "survival": float(apart[-1]), "survival_middle": float(apart[50])}
    quantiles = []
    for arm in (0, 1):
        outcomes = np.sort(drawn := units.outcomes(np.random.default_rng(arm), np.full(_DRAWS, arm)))
        below = np.cumsum(share[np.argsort(drawn)])
        quantiles.append([float(outcomes[np.searchsorted(below, level)]) for level in QUANTILES])
    return {f"{level:g}": one - other for level, other, one in zip(QUANTILES, *quantiles, strict=True)}


@cache
def censoring_rate() -> float:
    """Return the rate at which the stated share is censored before the horizon."""
    generator = np.random.default_rng(3)
    units = Units.drawn(generator, 20_000)
    ratio = np.where(generator.random(20_000) < units.chance, HAZARD_RATIO, 1.0)
    events = (generator.exponential(size=20_000) / units.hazard / ratio) ** (1 / SHAPE) / RATE
    until = np.minimum(events, HORIZON)
    return float(optimize.brentq(lambda rate: float(np.mean(1 - np.exp(-rate * until))) - CENSORED, 1e-4, 5.0))


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng((*seed, cell.n))
    units = Units.drawn(generator, cell.n)
    arm = (generator.random(cell.n) < units.chance).astype(np.int64)
    columns = {"treatment": arm, "covariate_0": ticks(units.x, X), "covariate_1": units.k}
    chosen: dict[str, Any] = {"covariates": ["x", "k"], "weights": cell.weights} if cell.weights else {}
    estimator: Any
    if cell.topic == "survival":
        ratio = np.where(arm == 1, HAZARD_RATIO, 1.0)
        event = (generator.exponential(size=cell.n) / units.hazard / ratio) ** (1 / SHAPE) / RATE
        censoring = generator.exponential(1 / censoring_rate(), cell.n)
        years, died = np.minimum(event, censoring), (event <= censoring).astype(np.int64)
        engine = ArrayEngine(years, columns | {"covariate_2": died}, YEARS)
        schema, estimator = SURVIVAL, dpc.Survival("died", INTERVALS, **chosen)
    else:
        engine = ArrayEngine(units.outcomes(generator, arm.astype(float)), columns, Y)
        schema, estimator = OUTCOME, dpc.QuantileEffects(QUANTILES, **chosen)
    with seeded(int(generator.integers(2**31))):
        effect = estimator.estimate(Unmetered(engine, schema), epsilon=cell.epsilon)
    return _run(effect, truth(cell.topic, cell.weights))


def _run(effect: dpc.Effect, true: Mapping[str, float]) -> Run:
    assert effect.contrasts is not None
    if "rmst" in true:
        steps = effect.curves[0].difference()
        found = {"survival": (steps, INTERVALS - 1), "survival_middle": (steps, INTERVALS // 2 - 1)}
        errors = {"rmst": math.hypot(effect.sampling_sd or 0.0, effect.privacy_sd)}  # also where an interval is refused
        values = {"rmst": effect.estimate}
    else:
        found = {f"{level:g}": (effect.contrasts, at) for at, level in enumerate(QUANTILES)}
        errors, values = {}, {}
    for name, (joint, at) in found.items():
        errors[name] = joint.standard_error([float(place == at) for place in range(len(joint.names))])
        values[name] = joint.values[at]
    # Noise is the sum of dozens of parts, so the critical value is the normal one.
    halves = {name: NormalDist().inv_cdf(0.975) * error for name, error in errors.items()}
    return Run({name: values[name] - true[name] for name in true}, halves, bool(effect.no_interval))


def summary(cell: Cell, runs: Sequence[Run]) -> dict[str, object]:
    """Return coverage, widths and errors of one setting."""
    line: dict[str, object] = asdict(cell) | {"runs": len(runs)}
    line["refused"] = round(float(np.mean([run.refused for run in runs])), 4)
    for name in runs[0].errors:
        errors, halves = (np.array([getattr(run, part)[name] for run in runs]) for part in ("errors", "halves"))
        line[f"coverage, {name}"] = round(float((np.abs(errors) <= halves).mean()), 4)
        line[f"width, {name}"] = round(float(2 * halves.mean()), 4)
        line[f"bias, {name}"] = round(float(errors.mean()), 4)
        line[f"rmse, {name}"] = round(float(np.sqrt((errors**2).mean())), 4)
    return line


_HEADS = {
    "survival": {"rmst": "mean survival time", "survival": "survival at 5 years", "survival_middle": "at 2.5 years"},
    "quantiles": {f"{level:g}": f"{level:g} quantile" for level in QUANTILES},
}
_WEIGHTS = {"ATE": "weights, ATE", "ATO": "weights, ATO", "": "none"}


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the table of each page."""
    found = {}
    for topic, heads in _HEADS.items():
        lines = [f"| adjusted by | units | {' | '.join(heads.values())} | refused |", "|---" * (len(heads) + 3) + "|"]
        for cell in results["cells"]:
            if cell["topic"] == topic and cell["n"] in ((5_000, 20_000) if cell["weights"] else (5_000,)):
                shown = [f"{cell[f'coverage, {name}']:.1%} ({cell[f'width, {name}']:.3g})" for name in heads]
                lines.append(
                    f"| {_WEIGHTS[cell['weights']]} | {cell['n']:,} | {' | '.join(shown)} | {cell['refused']:.0%} |"
                )
        found[topic] = "\n".join(lines)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_arguments(parser, 400)
    parser.add_argument("--topic", nargs="+", choices=_HEADS, default=list(_HEADS))
    parser.add_argument("--n", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--weights", nargs="+", choices=_WEIGHTS, default=list(_WEIGHTS))
    chosen = parser.parse_args()
    cells = [Cell(topic, n, weights) for topic, weights, n in itertools.product(chosen.topic, chosen.weights, chosen.n)]
    runs = simulated(cells, simulate, chosen)
    show([summary(cell, each) for cell, each in zip(cells, runs, strict=True)], chosen)


if __name__ == "__main__":
    main()
