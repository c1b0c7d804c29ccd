"""How often 95 % intervals of quantile effects cover the truth, over simulated trials with a vault's answers.

`python -m benchmarks.quantiles --runs 400 --json`

Noise has the laws and sizes of the vault's, from a seed.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.schema.schema import Protects
from tests.support.noise import seeded

QUANTILES = (0.1, 0.5, 0.9)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """A kind of outcome: public bounds and edges, draws for units of an arm, and the true quantile of an arm."""

    low: float
    high: float
    edges: tuple[float, ...]
    draw: Callable[[Generator, NDArray[np.int64]], Array]
    quantile: Callable[[int, float], float]


def _heaped(generator: Generator, arm: NDArray[np.int64]) -> Array:
    """Return normal outcomes of which half are rounded to multiples of 5, and the others to whole numbers."""
    values = generator.normal(50 + 6 * arm, 12, len(arm))
    coarse = generator.random(len(arm)) < 0.5
    return np.clip(np.where(coarse, 5 * np.round(values / 5), np.round(values)), 0, 100)


_HALVES = tuple(place + 0.5 for place in range(2, 100, 5))
"""Edges half way between multiples of 5, so that each bin holds one heap."""

_EQUAL = tuple(100 * place / 32 for place in range(1, 32))
"""32 bins of one width, of which some hold a heap and others do not."""


def _heaped_quantile(edges: Sequence[float]) -> Callable[[int, float], float]:
    """Return quantiles of the distribution on a grid, outcomes of one bin being spread evenly over it."""

    def quantile(arm: int, level: float) -> float:
        normal = NormalDist(50 + 6 * arm, 12)
        below = [
            # A whole number below the edge was nearest to the value, or a multiple of 5 was.
            0.5 * normal.cdf(math.ceil(edge) - 0.5) + 0.5 * normal.cdf(5 * math.ceil(edge / 5) - 2.5)
            for edge in edges
        ]
        return float(np.interp(level, [0.0, *below, 1.0], [0.0, *edges, 100.0]))

    return quantile


def _skewed(generator: Generator, arm: NDArray[np.int64]) -> Array:
    return np.clip(np.exp(generator.normal(math.log(10) + 0.2 * arm, 0.6, len(arm))), 0, 100)


def _skewed_quantile(arm: int, level: float) -> float:
    return math.exp(NormalDist(math.log(10) + 0.2 * arm, 0.6).inv_cdf(level))


OUTCOMES = {
    "normal": Outcome(
        0,
        100,
        (),
        lambda generator, arm: np.clip(generator.normal(45 + 5 * arm, 12 + 2 * arm, len(arm)), 0, 100),
        lambda arm, level: NormalDist(45 + 5 * arm, 12 + 2 * arm).inv_cdf(level),
    ),
    "skewed": Outcome(0, 100, tuple(1.2**power for power in range(4, 25)), _skewed, _skewed_quantile),
    "heaped": Outcome(0, 100, _HALVES, _heaped, _heaped_quantile(_HALVES)),
    "heaped, equal bins": Outcome(0, 100, _EQUAL, _heaped, _heaped_quantile(_EQUAL)),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    outcome: str
    protects: Protects
    n: int
    epsilon: float


@dataclass(frozen=True)
class Run:
    """What one simulated trial gave at each quantile."""

    errors: tuple[float, ...]
    halves: tuple[float, ...]
    privacy: tuple[float, ...]


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    cell, seed = task
    generator = np.random.default_rng(seed)
    arm = np.arange(cell.n) % 2 if cell.protects != "record" else generator.integers(0, 2, cell.n)
    kind = OUTCOMES[cell.outcome]
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("y", kind.low, kind.high),
        protects=cell.protects,
    )
    engine: Any = ArrayEngine(kind.draw(generator, arm), {"treatment": arm}, dpc.Real("y", kind.low, kind.high))
    with seeded(int(generator.integers(2**31))):
        source = Unmetered(engine, schema)
        effect = dpc.QuantileEffects(QUANTILES, edges=kind.edges).estimate(source, epsilon=cell.epsilon)
    assert effect.contrasts is not None
    truths = [kind.quantile(1, level) - kind.quantile(0, level) for level in QUANTILES]
    units = np.eye(len(QUANTILES)).tolist()
    # Noise is the sum of dozens of parts, so the critical value is the normal one; the tests compare both.
    return Run(
        tuple(value - truth for value, truth in zip(effect.contrasts.values, truths, strict=True)),
        tuple(NormalDist().inv_cdf(0.975) * effect.contrasts.standard_error(along) for along in units),
        tuple(sum(term.variance for term in effect.contrasts.noise_along(along)) ** 0.5 for along in units),
    )


def summary(cell: Cell, runs: Sequence[Run]) -> list[dict[str, object]]:
    errors, halves, privacy = (
        np.array([getattr(run, name) for run in runs]) for name in ("errors", "halves", "privacy")
    )
    return [
        asdict(cell)
        | {
            "quantile": level,
            "runs": len(runs),
            "coverage": round(float((np.abs(errors[:, at]) <= halves[:, at]).mean()), 4),
            "bias": round(float(errors[:, at].mean()), 4),
            "rmse": round(float(np.sqrt((errors[:, at] ** 2).mean())), 4),
            "mean_width": round(float(2 * halves[:, at].mean()), 4),
            "privacy_sd": round(float(np.median(privacy[:, at])), 4),
        }
        for at, level in enumerate(QUANTILES)
    ]


SHOWN = 5_000
"""The number of units that the page shows."""


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the docs page: one line for each outcome, and the range over all numbers of units."""
    found = {(line["outcome"], line["n"], line["quantile"]): line for line in lines}
    heads = " | ".join(f"{level:g}: coverage, width, noise" for level in QUANTILES)
    text = f"| outcome | {heads} |\n|---|{'---|' * len(QUANTILES)}\n"
    for outcome in dict.fromkeys(line["outcome"] for line in lines):
        cells = []
        for level in QUANTILES:
            line = found[outcome, SHOWN, level]
            noise = (line["privacy_sd"] / (line["mean_width"] / (2 * NormalDist().inv_cdf(0.975)))) ** 2
            cells.append(f"{100 * line['coverage']:.1f} %, {line['mean_width']:.2f}, {100 * noise:.0f} %")
        text += f"| {outcome} | {' | '.join(cells)} |\n"
    covered, units = [100 * line["coverage"] for line in lines], sorted({line["n"] for line in lines})
    return f"{text}\nWith {units[0]:,} to {units[-1]:,} units, coverage is {min(covered):.1f} to {max(covered):.1f} %."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 400)
    parser.add_argument("--n", type=int, nargs="+", default=[2000, 5000, 20000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--protects", nargs="+", choices=get_args(Protects), default=["record"])
    parser.add_argument("--outcome", nargs="+", choices=OUTCOMES, default=list(OUTCOMES))
    chosen = parser.parse_args()
    settings = itertools.product(chosen.outcome, chosen.protects, chosen.n, chosen.epsilon)
    cells = [Cell(*setting) for setting in settings]
    runs = simulated(cells, simulate, chosen)
    show([line for cell, each in zip(cells, runs, strict=True) for line in summary(cell, each)], chosen)


if __name__ == "__main__":
    main()
