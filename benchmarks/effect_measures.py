"""How often intervals of risk ratios and odds ratios cover the truth, and whether p-values are uniform.

`python -m benchmarks.effect_measures --runs 400 --json`; noise is the vault's, without a ledger. The interval of a
relative lift is that of the risk ratio less 1, so it covers as often.
"""

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine
from benchmarks.simulation import add_arguments, show, simulated
from dpcausal.audit.tables import Unmetered
from dpcausal.errors import RefusedError
from dpcausal.results.effect_measures import Measure

EPSILON = 1.0
RISKS, SIZES, SHARES, RATIOS = (0.05, 0.2, 0.5), (2_000, 5_000, 20_000), (0.15, 0.5), (0.7, 1.0)
SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Binary("died"))


@dataclass(frozen=True)
class Cell:
    """A trial: the control arm's risk, the number of units, the treated share and the true risk ratio."""

    risk: float
    n: int
    share: float
    ratio: float

    @property
    def odds_ratio(self) -> float:
        """The true odds ratio."""
        treated = self.risk * self.ratio
        return treated / (1 - treated) / (self.risk / (1 - self.risk))


@dataclass(frozen=True)
class Run:
    """Whether the intervals of both ratios covered, None where they were refused; and the p-value under no effect."""

    risk_ratio: bool | None
    odds_ratio: bool | None
    p_value: float | None


def simulate(task: tuple[Cell, tuple[int, int]]) -> Run:
    """Simulate one trial and its effect."""
    cell, seed = task
    generator = np.random.default_rng(seed)
    arm = (generator.random(cell.n) < cell.share).astype(int)
    died = generator.random(cell.n) < cell.risk * np.where(arm == 1, cell.ratio, 1.0)
    engine: Any = ArrayEngine(died.astype(float), {"treatment": arm}, dpc.Real("died", 0, 1))
    effect = dpc.DifferenceInMeans().estimate(Unmetered(engine, SCHEMA), epsilon=EPSILON)
    ratios = _covers(effect.risk_ratio, cell.ratio), _covers(effect.odds_ratio, cell.odds_ratio)
    return Run(*ratios, effect.p_value() if cell.ratio == 1 else None)


def _covers(ask: Callable[[], Measure], truth: float) -> bool | None:
    try:
        measure = ask()
    except RefusedError:
        return None
    return measure.low <= truth <= measure.high


def summary(cell: Cell, runs: Sequence[Run]) -> dict[str, object]:
    """Return one line of the result."""
    line: dict[str, object] = asdict(cell) | {"runs": len(runs)}
    for name in ("risk_ratio", "odds_ratio"):
        given = [getattr(run, name) for run in runs if getattr(run, name) is not None]
        line[f"{name}_given"] = round(len(given) / len(runs), 4)
        line[f"{name}_coverage"] = round(float(np.mean(given)), 4) if given else None
    if cell.ratio == 1:
        values = np.array([run.p_value for run in runs], dtype=float)
        line["p_below_5_percent"] = round(float((values < 0.05).mean()), 4)
        line["p_uniform"] = round(float(stats.kstest(values, "uniform").pvalue), 4)
    return line


def table(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the table of the documentation: the range over treated shares and true ratios."""
    yield "| risk | units | risk ratio: given | covered | odds ratio: given | covered | p below 0.05, no effect |"
    yield "|---|---|---|---|---|---|---|"
    for risk, n in itertools.product(RISKS, SIZES):
        chosen = [cell for cell in cells if (cell["risk"], cell["n"]) == (risk, n)]
        words = [
            _range(cell[f"{name}_{what}"] for cell in chosen)
            for name in ("risk_ratio", "odds_ratio")
            for what in ("given", "coverage")
        ]
        below = _range(cell["p_below_5_percent"] for cell in chosen if cell["ratio"] == 1)
        yield f"| {risk:.0%} | {n:,} | {' | '.join(words)} | {below} |"


def _range(shares: Iterable[float]) -> str:
    several = sorted(shares)
    ends = dict.fromkeys(f"{100 * share:.1f}" for share in (several[0], several[-1]))
    return " to ".join(ends) + " %"


def main() -> None:
    """Run all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, 400)
    chosen = parser.parse_args()
    cells = [Cell(*each) for each in itertools.product(RISKS, SIZES, SHARES, RATIOS)]
    done = simulated(cells, simulate, chosen)
    show([summary(cell, runs) for cell, runs in zip(cells, done, strict=True)], chosen)


if __name__ == "__main__":
    main()
