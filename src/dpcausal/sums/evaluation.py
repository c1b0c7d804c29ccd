"""Numbers computed with NumPy: for sites without push-down, for rehearsals, and as what SQL must agree with."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Between, Bin, Clip, Code, Constant, Lookup, Number, Product, Shift, Sum, Ticks, Where
from dpcausal.sums.table import Table

Units = Mapping[str, Int64s]
"""Some units, column by column, as the integers that coercion made of them."""


def evaluate(numbers: Sequence[Number], units: Units, known: Mapping[Number, Int64s] | None = None) -> Int64s:
    """Return numbers of some units, one line for each number; what several numbers share is computed once.

    Args:
        numbers: The numbers.
        units: The units.
        known: Numbers of which the values are known already, in place of columns that they are made of.
    """
    found = _Found(units, known or {})
    size = len(next(iter((known or units).values())))
    lines = np.empty((len(numbers), size), dtype=np.int64)
    for line, number in zip(lines, numbers, strict=True):
        line[:] = found.of(number)
    return lines


def totals(sums: Sums, units: Units) -> dict[str, int]:
    """Return the sums of a description over some units, by their names.

    Args:
        sums: The description.
        units: The units: those in the comparison, or everyone where the description says so.
    """
    numbers = evaluate([*sums.numbers.values(), *sums.whole.values()], units).astype(object)
    own, whole = numbers[: len(sums.numbers)], numbers[len(sums.numbers) :]
    place, inside = np.zeros(numbers.shape[1], dtype=np.int64), np.ones(numbers.shape[1], dtype=bool)
    for codes, count in zip(evaluate(list(sums.cells), units), sums.cells.values(), strict=True):
        place, inside = place * count + codes, inside & (codes < count)
    in_cells = np.zeros((sums.count, len(own)), dtype=object)
    np.add.at(in_cells, place[inside], own[:, inside].T)
    found = [*in_cells.ravel(), *(line.sum() for line in whole)]
    return {name: int(value) for name, value in zip(sums.names, found, strict=True)}


class _Found:
    """The numbers computed so far. Ranges are checked where trees are made: nothing here can overflow."""

    def __init__(self, units: Units, known: Mapping[Number, Int64s]) -> None:
        self._units, self._known = units, dict(known)

    def of(self, number: Number) -> Int64s:
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._computed(number)
        return found

    def _computed(self, number: Number) -> Int64s:  # noqa: C901, PLR0911 (one case for each kind)
        match number:
            case Ticks() | Code():
                return self._units[number.column].astype(np.int64, copy=False)
            case Constant():
                return np.array(number.value, dtype=np.int64)
            case Sum():
                total = self.of(number.terms[0])
                for each in number.terms[1:]:
                    total = total + self.of(each)
                return total
            case Product():
                return self.of(number.left) * self.of(number.right)
            case Shift():
                return self.of(number.number) >> number.bits
            case Clip():
                return np.clip(self.of(number.number), number.least, number.most)
            case Bin():
                return np.searchsorted(Table(number.edges).array, self.of(number.number), side="right")
            case Lookup():
                return Table(number.values).array[self.of(number.number)]
            case Where():
                return np.where(self._holds(number.condition), self.of(number.number), 0)
        raise AssertionError(f"no value for {type(number).__name__}")

    def _holds(self, condition: Between) -> "np.typing.NDArray[np.bool_]":
        given = self.of(condition.number)
        return (given >= condition.least) & (given <= condition.most)
