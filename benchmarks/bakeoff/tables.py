"""The tables of the bake-off: trials whose difference in means is asked for, and one for an adjusted effect."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.realistic.tables import KINDS
from dpcausal.planning.strata import propose_strata
from dpcausal.results.effect import Estimator
from dpcausal.utils.arrays import Array


@dataclass(frozen=True)
class Drawn:
    """One table, as every method gets it.

    Attributes:
        t: Arms, 0 or 1.
        y: Outcomes.
        x: Covariates of a linear regression, one line a covariate, on public bounds of -1 to 1; none in a trial.
        table: The same for the library.
    """

    t: Array
    y: Array
    x: Array
    table: pa.Table


@dataclass(frozen=True)
class Setting:
    """A kind of table and what is asked of it.

    Attributes:
        name: What it is called in results.
        about: What it is like, in words.
        schema: What is public.
        draw: Draws a table of n units.
        truth: The true effect.
        own_truth: The true effect that this library's estimator is for, where it differs.
        sd: The outcome's standard deviation that a planner would guess; only methods that need a guess use it.
        ours: This library's estimator.
        delta: The delta that it gets.
        part: Units in a part, for methods that partition the table.
    """

    name: str
    about: str
    schema: dpc.Schema
    draw: Callable[[Generator, int], Drawn]
    truth: float
    own_truth: float
    sd: float
    ours: Estimator
    delta: float
    part: int = 25

    @property
    def half(self) -> float:
        """Half the range of the outcome."""
        low, high = self.schema.outcome_bounds
        return (high - low) / 2

    @property
    def middle(self) -> float:
        """The middle of the range of the outcome."""
        return sum(self.schema.outcome_bounds) / 2

    @property
    def binary(self) -> bool:
        """Whether the outcome is 0 or 1."""
        return isinstance(self.schema.outcome, dpc.Binary)


def _trial(t: Array, y: Array) -> Drawn:
    return Drawn(t, y, np.empty((0, len(t))), pa.table({"treated": t, "y": y}))


def even(random: Generator, n: int) -> Drawn:
    """Draw a trial of symmetric scores (sd 0.21) on 0 to 1, with an effect of 0.05."""
    t = random.integers(0, 2, n).astype(float)
    return _trial(t, 0.95 * random.beta(2, 2, n) + 0.05 * t)


def cost(random: Generator, n: int) -> Drawn:
    """Draw the trial of lognormal costs."""
    columns = KINDS["K"].draw(random, n).columns
    return _trial(columns["treated"], columns["y"])


def rare(random: Generator, n: int) -> Drawn:
    """Draw a trial of events: 5 % among controls and 3.5 % among the treated."""
    t = random.integers(0, 2, n).astype(float)
    return _trial(t, (random.random(n) < 0.05 - 0.015 * t).astype(float))


def adjusted(random: Generator, n: int) -> Drawn:
    """Draw the observational table O, with covariates on -1 to 1."""
    kind = KINDS["O"]
    draw = kind.draw(random, n)
    x = []
    for column in kind.covariates:
        low, high = (column.low, column.high) if isinstance(column, dpc.Real) else (0.0, 1.0)
        x.append((2 * draw.columns[column.name] - low - high) / (high - low))
    return Drawn(draw.columns["treated"], draw.columns["y"], np.array(x), draw.table())


def _schema(outcome: dpc.Real | dpc.Binary) -> dpc.Schema:
    return dpc.Schema(treatment=dpc.Treatment("treated"), outcome=outcome, covariates=[])


_MEANS = dpc.DifferenceInMeans()

SETTINGS = {
    each.name: each
    for each in (
        Setting(
            "even",
            "trial, scores with sd 0.21 on 0 to 1",
            _schema(dpc.Real("y", 0, 1)),
            even,
            0.05,
            0.05,
            0.2,
            _MEANS,
            0.0,
        ),
        Setting(
            "skewed",
            "trial, lognormal costs with sd 6,570 on 0 to 200,000",
            _schema(dpc.Real("y", 0, 200_000)),
            cost,
            -856.8,
            -856.8,
            6_500.0,
            dpc.Winsorised(_MEANS),
            0.0,
        ),
        Setting(
            "rare",
            "trial, events of 5 and 3.5 %",
            _schema(dpc.Binary("y")),
            rare,
            -0.015,
            -0.015,
            0.2,
            _MEANS,
            0.0,
            100,
        ),
        Setting(
            "adjusted",
            "observational table O, adjusted for 4 covariates: ours by strata, others by linear regression",
            KINDS["O"].schema,
            adjusted,
            3.563,
            3.7641,
            13.0,
            dpc.Stratification(by=propose_strata(KINDS["O"].schema, 5_000, KINDS["O"].names, treated_share=0.4)),
            1e-6,
            50,
        ),
    )
}
"""In `adjusted` the coefficient of a linear regression weighs units by overlap; its truth is a mean over ten million
draws, with a standard error of 0.008. This library's strata are for the average effect."""
