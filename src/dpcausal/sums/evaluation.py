"""Numbers computed with NumPy: for sites without push-down, for rehearsals, and as what SQL must agree with."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import (
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
    parts,
)
from dpcausal.sums.table import IntegerTable
from dpcausal.utils.arrays import Int64s

Units = Mapping[str, Int64s]
"""Some units, column by column, as the integers that coercion made of them."""

_AT_ONCE = 2**13
"""How many units numbers are computed of at once, so that all of them stay in the processor's cache."""

_Step = tuple[Number, Sequence[int]]
"""A number, and at which steps those that it is made of are found."""


def evaluate(numbers: Sequence[Number], units: Units, known: Mapping[Number, Int64s] | None = None) -> Int64s:
    """Return numbers of some units, one line for each number; what several numbers share is computed once.

    Args:
        known: Numbers of which the values are known already, in place of columns that they are made of.
    """
    given = tuple(known or ())
    steps, wanted = _steps(tuple(numbers), given)
    size = len(next(iter((known or units).values())))
    lines = np.empty((len(numbers), size), dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        some = {name: column[part] for name, column in units.items()}
        found = [known[number][part] for number in given] if known else []
        for number, of in steps:
            found.append(_computed(number, [found[at] for at in of], some))
        for line, at in zip(lines, wanted, strict=True):
            line[part] = found[at]
    return lines


def totals(sums: Sums, units: Units) -> dict[str, int]:
    """Return the sums of a description over some units, by their names."""
    numbers = evaluate([*sums.numbers.values(), *sums.whole.values()], units).astype(object)
    own, whole = numbers[: len(sums.numbers)], numbers[len(sums.numbers) :]
    place, inside = np.zeros(numbers.shape[1], dtype=np.int64), np.ones(numbers.shape[1], dtype=bool)
    for codes, count in zip(evaluate(list(sums.cells), units), sums.cells.values(), strict=True):
        place, inside = place * count + codes, inside & (codes < count)
    in_cells = np.zeros((sums.count, len(own)), dtype=object)
    np.add.at(in_cells, place[inside], own[:, inside].T)
    found = [*in_cells.ravel(), *(line.sum() for line in whole)]
    return {name: int(value) for name, value in zip(sums.names, found, strict=True)}


@lru_cache(64)
def _steps(numbers: tuple[Number, ...], known: tuple[Number, ...]) -> tuple[list[_Step], list[int]]:
    """Return the steps that compute numbers from known ones and columns, and at which step each number is found."""
    places = {number: at for at, number in enumerate(known)}
    steps: list[_Step] = []

    def place(number: Number) -> int:
        if number not in places:
            of = [place(part) for part in parts(number)]
            places[number] = len(known) + len(steps)
            steps.append((number, of))
        return places[number]

    return steps, [place(number) for number in numbers]


def _computed(number: Number, of: Sequence[Int64s], units: Units) -> Int64s:  # noqa: C901, PLR0911 (each kind)
    """Return a number, given those that it is made of. Ranges are checked where trees are made: none overflows."""
    match number:
        case Ticks() | Code():
            return units[number.column].astype(np.int64, copy=False)
        case Constant():
            return np.array(number.value, dtype=np.int64)
        case Sum():
            total = of[0] + of[1]
            for each in of[2:]:
                total += each
            return total
        case Product():
            return of[0] * of[1]
        case Shift():
            return of[0] >> number.bits
        case Clip():
            return np.minimum(np.maximum(of[0], number.least), number.most)
        case Bin():
            return np.searchsorted(IntegerTable(number.edges).array, of[0], side="right")
        case Lookup():
            return IntegerTable(number.values).array.take(of[0])
        case Where():
            return _holds(number.condition, of[0]) * of[1]
    raise AssertionError(f"no value for {type(number).__name__}")


def _holds(condition: Between, given: Int64s) -> NDArray[np.bool_]:
    if condition.least == condition.most:
        return np.equal(given, condition.least)
    return np.greater_equal(given, condition.least) & np.less_equal(given, condition.most)
