"""Base classes of queries that use models of the table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from dpcausal.errors import QueryError
from dpcausal.queries.basis import Basis
from dpcausal.queries.features import (
    check_coefficients,
    clipped_coefficients,
    covariates_named,
    name_tuple,
    score_columns,
)
from dpcausal.queries.query import GRID, Query
from dpcausal.queries.scores import PREDICTOR_TICKS, predictor
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.numbers import Clip, Number, Shift
from dpcausal.utils.validation import is_number

Learner = Literal["residual", "augmented"]
"""What a unit adds to the regression of effects.

`residual` (R-learner, Nie and Wager 2021): the residual of its outcome is its effect times the distance of its arm
from its propensity. `augmented` (DR-learner, Kennedy 2023): its augmented score is its effect.
"""

Models = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Coefficients of a propensity, and of the outcome's regressions in the control and the treated arm."""

EXTREME: Models = ([0.0, 20.0], [2.0**20, -(2.0**20)], [-(2.0**20), 2.0**20])
MODERATE: Models = ([-3.0, -2.0], [0.0, 0.5], [0.0, -0.5])
EVEN: Models = ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
"""Models of one feature, for examples."""


@dataclass(frozen=True)
class Modelled(Query):
    """A query with a public propensity score and a public regression of the outcome in each arm.

    Attributes:
        propensity: The coefficients of the propensity, in the order of `feature_names`, as a logistic query's.
        control: The coefficients of the regression in the control arm, of features divided as for the propensity; it
            gives the outcome in half ranges from the middle of its range.
    """

    covariates: Sequence[str]
    propensity: Sequence[float]
    control: Sequence[float]
    treated: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        for model in ("propensity", "control", "treated"):
            object.__setattr__(self, model, clipped_coefficients(getattr(self, model)))

    def check_models(self, schema: Schema) -> None:
        """Raise unless every model has a coefficient for each feature."""
        for model in (self.propensity, self.control, self.treated):
            check_coefficients(model, self.covariates, schema)

    def means(self, schema: Schema) -> tuple[Number, Number]:
        """Return what the regressions say about a unit's outcome in the control and in the treated arm."""
        bits = (PREDICTOR_TICKS // GRID).bit_length() - 1
        control, treated = (
            Clip(Shift(predictor(model, self.covariates, schema), bits), -GRID, GRID)
            for model in (self.control, self.treated)
        )
        return control, treated

    def farthest_arm(self, schema: Schema, clip: float) -> float:
        """Return how far an arm can be from its propensity, whatever a unit's covariates are.

        It is a half where the propensity is always a half.
        """
        self.check_models(schema)
        root = math.sqrt(len(self.covariates) + 1)
        low, *slopes = (round(each / root * 2**16) / 2**16 for each in self.propensity)  # as the vault rounds them
        high = low
        for column in covariates_named(self.covariates, schema):
            if isinstance(column, Real) or len(column.values) == 2:
                slope, *slopes = slopes
                own = [-slope, slope]
            else:  # one of these and no other
                own, slopes = slopes[: len(column.values)], slopes[len(column.values) :]
            low, high = low + min(own), high + max(own)
        # The predictor is rounded down to a tick of its lookup table, and the propensity to the nearest tick.
        ends = [1 / (1 + math.exp(-min(max(end, -40), 40))) for end in (low - 2**-12, high)]
        return min(max(ends[1], 1 - ends[0]), 1 - clip) + 2 / GRID

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        return *score_columns(self.covariates, schema), schema.outcome


def check_learner(learner: object) -> None:
    """Raise unless this is the R-learner's or the DR-learner's regression."""
    if learner not in get_args(Learner):
        raise QueryError(
            expected=f"one of the learners {', '.join(get_args(Learner))}",
            got=repr(learner),
            hint="residual has the smaller noise; augmented weighs all units alike.",
        )


def check_limits(clip: object, limit: object) -> None:
    """Raise unless propensities and summands have valid limits."""
    if not (is_number(clip) and is_number(limit) and 1e-3 <= clip < 0.5 and 0.5 <= limit <= 1e4):  # type: ignore[operator]
        raise QueryError(
            expected="a clip from 0.001 to below 0.5 and a limit from 0.5 to 10,000",
            got=f"clip={clip!r}, limit={limit!r}",
            hint="a clip of 0.05 and a limit of 1 to 5 are usual; a larger limit needs more noise.",
        )


def joined(columns: tuple[TableColumn, ...], basis: Basis, schema: Schema) -> tuple[TableColumn, ...]:
    """Return columns with those of a basis, each once, in the order of the schema."""
    names = {column.name for column in (*columns, *basis.reads(schema))}
    return tuple(column for column in schema.columns if column.name in names)
