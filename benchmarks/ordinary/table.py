"""A kind of table with known effects: how it is drawn, what is public about it, and what is true of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.schema.columns import Column

Values = NDArray[Any]
"""A column: numbers, yes or no, or texts."""


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

    columns: Mapping[str, Values]
    propensity: Values
    effect: Values
    complete: Mapping[str, Values]
    observed: tuple[Values, Values]

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
        n: How many units it usually has.
    """

    name: str
    about: str
    outcome: dpc.Real | dpc.Binary
    covariates: tuple[Column, ...]
    draw: Callable[[Generator, int], Draw]
    features: Callable[[Draw], Values]
    treated_share: float = 0.5
    outcome_mean: float | None = None
    outcome_sd: float | None = None
    randomised: bool = False
    n: int = 20_000
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


def expit(logits: Values) -> Values:
    return 1 / (1 + np.exp(-logits))


def flag(chosen: Values) -> Values:
    """Return yes or no as 1 or 0."""
    return chosen.astype(float)


def assigned(  # noqa: PLR0913
    random: Generator,
    complete: Mapping[str, Values],
    propensity: Values,
    outcomes: tuple[Values, Values],
    *,
    uniform: Values | None = None,
    effect: Values | None = None,
    observed: tuple[Values, Values] | None = None,
    lacking: Mapping[str, Values] | None = None,
) -> Draw:
    """Return the table in which chance gave each unit its arm, and took outcomes and cells away.

    Args:
        random: Draws arms and missing outcomes.
        complete: All covariates.
        propensity: The probability of treatment.
        outcomes: Outcomes as control and as treated.
        uniform: Uniform numbers that decide on the arms, where they were drawn before the outcomes.
        effect: Each unit's expected effect; the difference of its outcomes if left out.
        observed: The probability that the outcome is not missing, as control and as treated; 1 if left out.
        lacking: By covariate, which of its cells are missing.
    """
    n = len(propensity)
    treated = (random.random(n) if uniform is None else uniform) < propensity
    columns = {**complete, "treated": flag(treated), "y": np.where(treated, outcomes[1], outcomes[0])}
    everyone = np.ones(n)
    effect = outcomes[1] - outcomes[0] if effect is None else effect
    draw = Draw(columns, propensity, effect, complete, (everyone, everyone))
    return lose(random, draw, observed or (everyone, everyone), lacking or {})


def lose(random: Generator, draw: Draw, observed: tuple[Values, Values], lacking: Mapping[str, Values]) -> Draw:
    """Return a table without some of its outcomes and cells."""
    columns = dict(draw.columns) | {name: _without(draw.columns[name], gone) for name, gone in lacking.items()}
    if any((share < 1).any() for share in observed):
        share = np.where(columns["treated"] == 1, observed[1], observed[0])
        columns["y"] = _without(columns["y"], random.random(len(share)) >= share)
    return replace(draw, columns=columns, observed=observed)


def _without(column: Values, gone: Values) -> Values:
    """Return a column in which some cells are missing."""
    absent: Any = None if column.dtype == object else np.nan
    return np.where(gone, absent, column)


def missing_outcomes(table: Table, control: float, treated: float) -> Table:
    """Return a table that lacks these shares of outcomes among controls and among the treated, at random."""

    def draw(random: Generator, n: int) -> Draw:
        return lose(random, table.draw(random, n), (np.full(n, 1 - control), np.full(n, 1 - treated)), {})

    shares = (
        f"{control:.0%} of outcomes" if control == treated else f"{control:.0%} and {treated:.0%} of outcomes, by arm,"
    )
    label = f"Y{100 * control:.0f}" + ("" if control == treated else f"/{100 * treated:.0f}")
    return replace(
        table, name=f"{table.name} {label}", about=f"as {table.name}, with {shares} missing at random", draw=draw
    )


def missing_covariates(table: Table, share: float, names: tuple[str, ...]) -> Table:
    """Return a table that lacks this share of the cells of some covariates, at random; nothing is declared about it."""

    def draw(random: Generator, n: int) -> Draw:
        complete = table.draw(random, n)
        return lose(random, complete, complete.observed, {name: random.random(n) < share for name in names})

    about = f"as {table.name}, with {share:.0%} of {' and '.join(names)} missing at random"
    return replace(table, name=f"{table.name} X{100 * share:.0f}", about=about, draw=draw)
