"""The protocol of bases, and the tables of their functions."""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError
from dpcausal.queries.profiles import Codes
from dpcausal.queries.query import GRID
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s

LENGTH = 2**11
"""Ticks to the greatest length that a unit's functions have together, each rounded towards 0 to a tick."""

MOST_FUNCTIONS = 200

PLACES = 2**12
"""Functions of one number are tabulated at so many ticks from one end of its range to the other."""


class Basis(Protocol):
    """Functions of covariates, together never longer than 1."""

    disjoint: ClassVar[bool] = False
    """Whether only one function is other than 0 for any unit."""

    level: ClassVar[bool] = False
    """Whether no function of p is ever larger than 1 divided by the root of p."""

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """Return the covariates of the functions."""
        ...

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each function."""
        ...

    def reach(self, schema: Schema) -> float:
        """Return the largest sum of the functions' sizes."""
        ...

    def ticks(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the functions of some profiles in ticks of which LENGTH make 1, one line a function."""
        ...


def check_integer(what: str, value: object, low: int, high: int) -> None:
    """Raise unless a parameter is a whole number within limits."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise QueryError(
            expected=f"a whole number from {low} to {high} as {what}",
            got=repr(value),
            hint="few functions are best: noise grows with their number.",
        )


def check_count(count: int) -> None:
    """Raise unless there are few enough functions."""
    if count > MOST_FUNCTIONS:
        raise QueryError(
            expected=f"at most {MOST_FUNCTIONS} functions",
            got=f"{count:,}",
            hint="use fewer covariates, a lower degree or fewer pieces: noise grows with the number of functions.",
        )


def places() -> NDArray[np.float64]:
    """Return the numbers from -1 to 1 at which functions of one number are tabulated."""
    return np.linspace(-1, 1, PLACES + 1)


def lookup(line: Int64s) -> Int64s:
    """Return the places of a covariate's numbers in a table."""
    width = 2 * GRID // PLACES
    return (line + GRID + width // 2) // width


def rounded(values: NDArray[np.float64], share: float) -> Int64s:
    """Return values in whole ticks, of which `share` make 1, rounded towards 0 so that none becomes longer."""
    ticks: Int64s = np.trunc(values * share).astype(np.int64)
    return ticks


def towards_zero(line: Int64s, divisor: int) -> Int64s:
    """Return quotients rounded towards 0, so that none becomes longer."""
    quotient: Int64s = np.sign(line) * (np.abs(line) // divisor)
    return quotient
