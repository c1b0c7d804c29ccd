"""How often 95 % intervals of complier effects and of differences in differences cover the truth.

`python -m benchmarks.designs --runs 2000 --json`. Sums are added up here, as the vault's answers add them up; sizes of
noise are the vault's own, and noise is drawn from a seed.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.simulation import show
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import RefusedError
from dpcausal.guarantee import Rule
from dpcausal.queries import (
    GRID,
    ArmMoments,
    ChangeMoments,
    CutoffMoments,
    InstrumentMoments,
    MissingOutcomes,
    Query,
    ReceivedMoments,
    SubgroupMoments,
    cutoff_moments,
)
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.change_moments import FINE
from dpcausal.queries.profiles import grid
from dpcausal.release import Noisy, Receipt, Release
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Protects
from dpcausal.vault.engines import ExactInts, exact_ints

Ints = NDArray[np.int64]
Columns = dict[str, NDArray[np.float64]]

SIZES = (2_000, 5_000, 20_000)
PROTECTED: tuple[Protects, ...] = ("record_within_arm", "record")


class SeededSource:
    """A table in memory whose releases have noise from a seed."""

    caveats: tuple[str, ...] = ()
    rule: Rule = "additive"

    def __init__(self, schema: dpc.Schema, columns: Columns, generator: Generator) -> None:
        self.schema, self.columns, self._generator = schema, columns, generator
        self.arms = columns[schema.treatment.name].astype(np.int64)
        self.n = len(self.arms)

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each arm where arms are public."""
        treated = int(self.arms.sum())
        return (self.n - treated, treated) if self.schema.sizes_are_public else None

    def ticks(self, name: str) -> Ints:
        """Return a column as the door gives it: ticks from the middle of its range, or the places of listed values."""
        column = next(each for each in self.schema.columns if each.name == name)
        values = self.columns[name]
        if isinstance(column, dpc.Real):
            middle, scale = grid(column)
            return np.clip(np.floor((values - middle) * scale + 0.5), -GRID, GRID).astype(np.int64)
        codes = values.astype(np.int64)
        return 2 * GRID * codes - GRID if column is self.schema.outcome else codes

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        """Return the answer with noise of the vault's size."""
        noise = calibrate(query, self.schema, guarantee, self.rule)
        sums = self._sums(query)
        exact = np.array([sums[at.name] for at in noise.sensitivity.coordinates])
        draw = self._generator.laplace if noise.family == "laplace" else self._generator.normal
        drawn = draw(0.0, 1.0, len(exact)) * np.array([scale or 0.0 for scale in noise.scales])
        noisy = Noisy(tuple(int(value) for value in exact + np.rint(drawn).astype(np.int64)))
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta, 0, "made up")
        return Release.of(query, guarantee, noise, noisy=noisy, public_values=[], receipt=receipt)

    def fold(self, columns: Sequence[str], kernel: Callable[[Mapping[str, Ints]], Ints]) -> ExactInts:
        """Return a kernel's sums over all units at once, as an engine would."""
        coerced = {f"covariate_{at}": column.name for at, column in enumerate(self.schema.covariates)}
        coerced["outcome"] = self.schema.outcome.name
        return exact_ints(kernel({at: self.ticks(coerced[at]) if at in coerced else self.arms for at in columns}))

    def _sums(self, query: Query) -> dict[str, int]:
        if isinstance(query, InstrumentMoments):
            engine: Any = self
            return dict(exact_answer(query, self.schema, engine, dpc.Guarantee(epsilon=1)).ticks)
        if isinstance(query, CutoffMoments):
            return self._cutoff_sums(query)
        if isinstance(query, MissingOutcomes):
            return {f"observed_{arm}": int((self.arms == arm).sum()) for arm in (0, 1)} | {
                "missing_0": 0,
                "missing_1": 0,
            }
        outcome = self.ticks(self.schema.outcome.name)
        if isinstance(query, ChangeMoments):
            outcome = self._change(query)
        sums = {"total": outcome, "deficit": (GRID**2 - outcome**2) // GRID, "size": np.ones(self.n, np.int64)}
        if isinstance(query, ReceivedMoments):
            sign = 2 * self.ticks(query.received) - 1
            sums |= {"received": sign, "product": sign * outcome}
        if isinstance(query, SubgroupMoments):
            groups = self.ticks(query.cells.by[0].name)
            names = query.cells.names(self.schema)
            return {
                f"{name}_{arm} of {group}": int(values[(self.arms == arm) & (groups == place)].sum())
                for name, values in sums.items()
                for arm in (0, 1)
                for place, group in enumerate(names)
            }
        if not isinstance(query, ArmMoments | ReceivedMoments | ChangeMoments):
            raise TypeError(query.name)
        found = {f"{name}_{arm}": int(each[self.arms == arm].sum()) for name, each in sums.items() for arm in (0, 1)}
        return found | {"compared": self.n}

    def _cutoff_sums(self, query: CutoffMoments) -> dict[str, int]:
        cutoff, bandwidth = query.window(self.schema)
        fine = cutoff_moments.FINE
        found: dict[str, int] = {}
        outcome = (self.ticks(self.schema.outcome.name) + GRID // fine // 2) // (GRID // fine)
        beyond = self.ticks(query.running) - cutoff
        for arm, steps in enumerate((beyond, -beyond) if query.treated_below else (-beyond, beyond)):
            inside = (steps >= int(steps is not beyond)) & (steps <= bandwidth)
            z, u = outcome[inside], (steps[inside] * ((2 * fine << 30) // bandwidth) >> 30) - fine
            found |= {f"total_{arm}": z.sum(), f"product_{arm}": (u * z).sum(), f"distance_{arm}": u.sum()}
            found |= {f"size_{arm}": len(z), f"spread_{arm}": (fine**2 - u**2).sum()}
            found[f"deficit_{arm}"] = (fine**2 - z**2).sum()
        return {name: int(total) for name, total in found.items()}

    def _change(self, query: ChangeMoments) -> Ints:
        after, before, shift = query.factors(self.schema)
        fine = after * self.ticks(query.after or self.schema.outcome.name) - before * self.ticks(query.before) + shift
        change: Ints = np.clip(fine, -GRID * FINE, GRID * FINE) // FINE
        return change


def compliance(generator: Generator, n: int, *, binary: bool = False) -> Columns:
    """Return a trial in which 30 % do not comply: half always take the drug and are better off anyhow, half never."""
    arm = generator.permutation(np.arange(n) % 2)
    kind = generator.choice(3, n, p=[0.7, 0.15, 0.15])  # compliers, always-takers, never-takers
    took = np.where(kind == 0, arm, kind == 1)
    base = 0.35 + 0.1 * (kind == 1) - 0.05 * (kind == 2)
    mean = base + 0.15 * took * np.where(kind == 0, 1.0, 0.5)
    outcome = generator.random(n) < mean if binary else mean + generator.uniform(-0.25, 0.25, n)
    return {"arm": arm, "y": outcome, "took": took}


def changes(generator: Generator, n: int) -> Columns:
    """Return units seen before and after, in arms that differ from the start; all decline, the treated by less."""
    arm = generator.integers(0, 2, n)
    level = generator.normal(0.5 + 0.08 * arm, 0.1)
    earlier, before, after = (level + 0.03 * time + generator.normal(0, 0.05, n) for time in (0, -1, -2))
    return {"arm": arm, "y": after + 0.04 * arm, "before": before, "earlier": earlier}


def waves(generator: Generator, n: int) -> Columns:
    """Return units seen once, in one of three waves."""
    arm, wave = generator.integers(0, 2, n), generator.integers(0, 3, n)
    mean = 0.5 + 0.08 * arm - 0.03 * wave + 0.04 * arm * (wave == 2)
    return {"arm": arm, "y": generator.normal(mean, 0.12), "wave": wave}


@dataclass(frozen=True)
class Design:
    """A kind of study.

    Attributes:
        make: What makes its table.
        estimator: The estimator.
        truth: The true effect.
        outcome: The outcome's declaration.
        covariates: The covariates' declarations.
    """

    make: Callable[[Generator, int], Columns]
    estimator: Estimator
    truth: float
    outcome: dpc.Real | dpc.Binary
    covariates: tuple[dpc.Real | dpc.Binary | dpc.Category, ...]


_SEEN = (dpc.Real("before", 0, 1, missing=0), dpc.Real("earlier", 0, 1, missing=0))

DESIGNS = {
    "complier effect": Design(
        compliance, dpc.ComplierEffect("took"), 0.15, dpc.Real("y", 0, 1, missing=0), (dpc.Binary("took", missing=0),)
    ),
    "complier effect, binary outcome": Design(
        lambda generator, n: compliance(generator, n, binary=True),
        dpc.ComplierEffect("took"),
        0.15,
        dpc.Binary("y", missing=0),
        (dpc.Binary("took", missing=0),),
    ),
    "change of each unit": Design(
        changes, dpc.DifferenceInDifferences(before="before"), 0.04, dpc.Real("y", 0, 1, missing=0), _SEEN
    ),
    "change within 0.4, with a placebo": Design(
        changes,
        dpc.DifferenceInDifferences(before="before", earlier="earlier", change=(-0.4, 0.4)),
        0.04,
        dpc.Real("y", 0, 1, missing=0),
        _SEEN,
    ),
    "units seen once": Design(
        waves,
        dpc.DifferenceInDifferences(period="wave"),
        0.04,
        dpc.Real("y", 0, 1, missing=0),
        (dpc.Category("wave", [0, 1, 2]),),
    ),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    design: str
    protects: Protects
    n: int
    epsilon: float


@dataclass(frozen=True)
class Run:
    """What one simulated study gave."""

    covered: bool
    refused: bool
    placebo: bool
    error: float
    width: float
    sampling_sd: float
    privacy_sd: float


def simulate(cell: Cell, seed: tuple[int, int]) -> Run:
    """Simulate one study."""
    design, generator = DESIGNS[cell.design], np.random.default_rng(seed)
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=design.outcome,
        covariates=design.covariates,
        protects=cell.protects,
    )
    source = SeededSource(schema, design.make(generator, cell.n), generator)
    effect = design.estimator.estimate(source, epsilon=cell.epsilon)
    try:
        low, high = replace(effect, no_interval="").interval(0.95)
    except RefusedError:  # of a ratio whose denominator may be 0
        low, high = -math.inf, math.inf
    placebo = True
    if effect.contrasts and effect.contrasts.names[0].startswith("placebo"):
        ((least, most),) = effect.contrasts.intervals(0.95)
        placebo = least <= 0 <= most
    return Run(
        low <= design.truth <= high,
        bool(effect.no_interval),
        placebo,
        effect.estimate - design.truth,
        high - low,
        effect.sampling_sd or 0.0,
        effect.privacy_sd,
    )


def summary(cell: Cell, runs: list[Run]) -> dict[str, object]:
    """Return a line of results."""
    share, errors = float(np.mean([run.covered for run in runs])), np.array([run.error for run in runs])
    return asdict(cell) | {
        "runs": len(runs),
        "coverage": round(share, 4),
        "refused": round(float(np.mean([run.refused for run in runs])), 4),
        "placebo_coverage": round(float(np.mean([run.placebo for run in runs])), 4),
        "bias": round(float(errors.mean()), 5),
        "rmse": round(float(np.sqrt((errors**2).mean())), 5),
        "mean_width": round(float(np.mean([run.width for run in runs])), 5),
        "sampling_sd": round(float(np.median([run.sampling_sd for run in runs])), 5),
        "privacy_sd": round(float(np.median([run.privacy_sd for run in runs])), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="simulated studies for each setting")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--design", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--n", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    chosen = parser.parse_args()
    settings = itertools.product(DESIGNS, PROTECTED, SIZES, chosen.epsilon)
    lines, trials = [], ("complier effect",)  # public arms, which mean less noise, are for trials
    for place, cell in enumerate(Cell(*each) for each in settings if each[1] == "record" or each[0] in trials):
        if cell.design in chosen.design and cell.n in chosen.n:
            lines.append(summary(cell, [simulate(cell, (place, run)) for run in range(chosen.runs)]))
    show(lines, chosen)


if __name__ == "__main__":
    main()
