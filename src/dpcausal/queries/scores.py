"""Public scores of units: linear predictors, and tables of functions of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np

from dpcausal.queries.coerced import TREATMENT, features
from dpcausal.queries.features import (
    Estimand,
    check_clip,
    check_coefficients,
    check_estimand,
    clipped_coefficients,
    largest_weight,
    score_columns,
)
from dpcausal.queries.query import GRID
from dpcausal.queries.summing import CovariateQuery
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.numbers import Clip, Constant, Lookup, Number, Shift, Where, added, equals
from dpcausal.sums.table import IntegerTable
from dpcausal.utils.arrays import Array, Int64s

PREDICTOR_TICKS = 2**36
"""Ticks to 1 of a linear predictor."""

LOOKUP_TICKS = 2**12
"""Ticks to 1 of a predictor that is looked up in a table."""

LAST_PLACE = 16 * LOOKUP_TICKS

EXPONENTS: Array = np.arange(-LAST_PLACE, LAST_PLACE + 1) / LOOKUP_TICKS
"""The predictors at which functions of it are tabulated, so that no exponential is ever taken of a unit's number."""


FACTOR_TICKS = 2**24
"""Ticks to 1 of the factors that turn weights and targets into shares of a limit."""


@lru_cache(maxsize=8)
def weight_table(estimand: Estimand, clip: float, largest: float, *, treated: bool) -> Int64s:
    """Return weights for every exponent, as shares of the largest in ticks of which GRID make 1.

    The exponent is minus the predictor for treated and plus the predictor for control units: the log odds of the arm
    that the unit is not in.
    """
    odds = np.exp(EXPONENTS)
    clipped = np.clip(odds, clip / (1 - clip), (1 - clip) / clip)
    if estimand == "ATE":
        weights = 1 + clipped
    elif estimand == "ATO":
        weights = clipped / (1 + clipped)
    elif (estimand == "ATT") == treated:
        weights = np.ones_like(odds)
    else:
        weights = clipped
    return np.clip(np.rint(weights / largest * GRID), 0, GRID).astype(np.int64)


def overlaps(clip: float) -> Int64s:
    """Return the overlap e (1 - e) for every exponent, in ticks of which GRID make 1 / 4."""
    score = np.clip(1 / (1 + np.exp(-EXPONENTS)), clip, 1 - clip)
    return np.rint(4 * score * (1 - score) * GRID).astype(np.int64)


def predictor(coefficients: Sequence[float], covariates: Sequence[str], schema: Schema) -> Number:
    """Return a linear predictor of a unit, in ticks of which PREDICTOR_TICKS make 1."""
    root = math.sqrt(len(covariates) + 1)  # what features are divided by to have a length of at most 1
    lines = [Constant(GRID), *features(covariates, schema)]
    return added([round(each / root * 2**16) * line for each, line in zip(coefficients, lines, strict=True)])


@dataclass(frozen=True)
class ScoredQuery(CovariateQuery):
    """The base of queries about units with a propensity score that is public already.

    Attributes:
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
    """

    coefficients: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "coefficients", clipped_coefficients(self.coefficients))

    def exponent(self, schema: Schema) -> Number:
        """Return a unit's log odds of treatment by the score."""
        check_coefficients(self.coefficients, self.covariates, schema)
        return predictor(self.coefficients, self.covariates, schema)


@dataclass(frozen=True)
class WeightedQuery(ScoredQuery):
    """The base of queries that weight units by the score."""

    estimand: Estimand
    clip: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_estimand(self.estimand, get_args(Estimand))
        check_clip(self.clip)

    @property
    def largest(self) -> float:
        """The largest weight there can be."""
        return largest_weight(self.estimand, self.clip)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on: covariates with a coefficient of 0 too."""
        return *score_columns(self.covariates, schema), schema.outcome


def looked_up(table: IntegerTable | Int64s, exponent: Number) -> Number:
    """Return a function of a predictor that is tabulated at `EXPONENTS`."""
    bits = (PREDICTOR_TICKS // LOOKUP_TICKS).bit_length() - 1
    place = Clip(Shift(exponent, bits), -LAST_PLACE, LAST_PLACE) + LAST_PLACE
    return Lookup(place, table if isinstance(table, IntegerTable) else IntegerTable(table.tolist()))


@lru_cache(maxsize=8)
def overlap_table(clip: float) -> IntegerTable:
    """Return the overlaps for every exponent, to be looked up."""
    return IntegerTable(overlaps(clip).tolist())


@lru_cache(maxsize=8)
def _weights(estimand: Estimand, clip: float, *, treated: bool) -> IntegerTable:
    """Return the weights for every exponent, to be looked up."""
    return IntegerTable(weight_table(estimand, clip, largest_weight(estimand, clip), treated=treated).tolist())


def by_arm(control: Number, treated: Number) -> Number:
    """Return one number for control and another for treated units, within the range of both."""
    either = Where(equals(TREATMENT, 0), control) + Where(equals(TREATMENT, 1), treated)
    return Clip(either, min(control.low, treated.low), max(control.high, treated.high))


def unit_weight(control: Number, treated: Number, estimand: Estimand, clip: float) -> Number:
    """Return a unit's weight as a share of the largest, given the log odds of the arm that it is not in by arm."""
    tables = [_weights(estimand, clip, treated=arm) for arm in (False, True)]
    return by_arm(looked_up(tables[0], control), looked_up(tables[1], treated))
