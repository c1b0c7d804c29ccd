"""A kind of table with known effects: how it is drawn, what is public about it, and what is true of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from dpcausal.arrays import Array
from dpcausal.columns import Column


@dataclass(frozen=True)
class Draw:
    """One table drawn.

    Attributes:
        columns: Covariates, `treated` and the outcome `y`; a missing cell is NaN, or None in a column of text.
        propensity: Each unit's probability of treatment.
        effect: Each unit's effect.
        complete: The covariates before cells went missing.
        observed: Each unit's probability of an outcome that is not missing, as control and as treated.
    """

    columns: Mapping[str, Array]
    propensity: Array
    effect: Array
    complete: Mapping[str, Array]
    observed: tuple[Array, Array]

    def table(self) -> pa.Table:
        """Return the table, with nulls for missing cells."""
        return pa.table({name: pa.array(column, from_pandas=True) for name, column in self.columns.items()})


@dataclass(frozen=True)
class Table:
    """A kind of table.

    Attributes:
        name: A short name.
        about: What it is like, in words.
        outcome: The outcome with its public bounds.
        covariates: The covariates with theirs.
        draw: Draws a table of n units.
        features: What outcome and propensity depend on, also where cells are missing. Only who drew the table knows it.
        treated_share: The share of treated units that a planner would guess.
        outcome_mean: The outcome's mean that a planner would guess.
        outcome_sd: Its standard deviation; left out where the outcome is binary.
        randomised: Whether treatment was given at random.
    """

    name: str
    about: str
    outcome: dpc.Real | dpc.Binary
    covariates: tuple[Column, ...]
    draw: Callable[[Generator, int], Draw]
    features: Callable[[Draw], Array]
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    randomised: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.schema.covariates))

    @property
    def schema(self) -> dpc.Schema:
        """What is public about it."""
        return dpc.Schema(treatment=dpc.Treatment("treated"), outcome=self.outcome, covariates=self.covariates)

    def rehearsal(self, n: int) -> dpc.Rehearsal:
        """Return the expectations of a planner with public guesses; that a trial was randomised is known too."""
        known = {"confounding": 0.0} if self.randomised else {}
        guesses = {"outcome_mean": self.outcome_mean, "outcome_sd": self.outcome_sd}
        return dpc.Rehearsal(self.schema, n, treated_share=self.treated_share, **guesses, **known)  # type: ignore[arg-type]


def expit(logits: Array) -> Array:
    return 1 / (1 + np.exp(-logits))


def flag(chosen: Array) -> Array:
    """Return yes or no as 1 or 0."""
    return chosen.astype(float)


def assigned(  # noqa: PLR0913
    random: Generator,
    complete: Mapping[str, Array],
    propensity: Array,
    outcomes: tuple[Array, Array],
    *,
    observed: tuple[Array, Array] | None = None,
    lacking: Mapping[str, Array] | None = None,
) -> Draw:
    """Return the table in which chance gave each unit its arm, and took outcomes and cells away.

    Args:
        random: Draws arms and missing outcomes.
        complete: All covariates.
        propensity: The probability of treatment.
        outcomes: Outcomes as control and as treated.
        observed: The probability that the outcome is not missing, as control and as treated; all of them if left out.
        lacking: By covariate, which of its cells are missing.
    """
    n = len(propensity)
    treated = random.random(n) < propensity
    y = np.where(treated, outcomes[1], outcomes[0])
    everyone = np.ones(n)
    if observed is not None:
        y = np.where(random.random(n) < np.where(treated, observed[1], observed[0]), y, np.nan)
    cells = {name: without(complete[name], gone) for name, gone in (lacking or {}).items()}
    columns = {**complete, **cells, "treated": flag(treated), "y": y}
    return Draw(columns, propensity, outcomes[1] - outcomes[0], complete, observed or (everyone, everyone))


def without(column: Array, gone: Array) -> Array:
    """Return a column in which some cells are missing."""
    return np.where(gone, None if column.dtype == object else np.nan, column)
