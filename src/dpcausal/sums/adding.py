"""What an engine adds up for a description, and how its sums follow from that.

A number may have a factor that is the same for all units of a cell, such as the sign of the arm. It is multiplied in
after units are added up, so that sums which differ only by such factors are added up once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpcausal.sums.description import LARGEST_ADDEND, Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import ONE, Code, Constant, Number, Product, Sum, Ticks, multiplied, parts

Term = tuple[Number, Number]
"""A factor that is the same for all units of a cell, and a number of units."""


@dataclass(frozen=True)
class Addends:
    """What an engine adds up.

    Attributes:
        factors: What units are grouped by: numbers from 0 on.
    """

    sums: Sums
    factors: tuple[Number, ...]
    numbers: tuple[Number, ...]
    _terms: tuple[tuple[Term, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups there are by each factor."""
        return tuple(factor.high + 1 for factor in self.factors)

    def totals(self, found: NDArray[np.object_]) -> dict[str, int]:
        """Return the sums of the description by their names, from those of each number in each group."""
        count = math.prod(self.shape)
        by_group = found.reshape(count, len(self.numbers))
        places = np.array(list(product(*map(range, self.shape))), dtype=np.int64).reshape(count, len(self.factors))
        known = {factor: places[:, at] for at, factor in enumerate(self.factors)} or {ONE: np.ones(1, dtype=np.int64)}
        cells, inside = self._cells(known)
        sums: list[int] = []
        lines = [_combined(terms, self.numbers, by_group, known) for terms in self._terms]
        own, whole = lines[: len(self.sums.numbers)], lines[len(self.sums.numbers) :]
        in_cells = np.zeros((self.sums.count, len(own)), dtype=object)
        for at, line in enumerate(own):
            np.add.at(in_cells[:, at], cells[inside], line[inside])
        sums = [*in_cells.ravel(), *(line.sum() for line in whole)]
        return {name: int(value) for name, value in zip(self.sums.names, sums, strict=True)}

    def _cells(self, known: dict[Number, NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the cell of each group, and whether it is in one."""
        size = len(next(iter(known.values())))
        place, inside = np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool)
        for factor, count in self.sums.cells.items():
            # A factor of one value is no group.
            codes = np.full(size, factor.low) if factor.low == factor.high else evaluate([factor], {}, known)[0]
            place, inside = place * count + codes, inside & (codes < count)
        return place, inside


def addends(sums: Sums) -> Addends:
    """Return what an engine adds up for a description."""
    factors = tuple(factor for factor in sums.cells if factor.low < factor.high)
    terms = tuple(tuple(_terms(number, factors)) for number in (*sums.numbers.values(), *sums.whole.values()))
    numbers = tuple(dict.fromkeys(number for each in terms for _, number in each))
    return Addends(sums, factors, numbers, terms)


def _terms(number: Number, factors: Sequence[Number]) -> list[Term]:
    """Return a number as a sum of products of what is the same in each cell and what is not."""
    found = list(_expanded(number, factors))
    small = all(each.size <= LARGEST_ADDEND for _, each in found)
    return found if small else [(ONE, number)]


def _expanded(number: Number, factors: Sequence[Number]) -> Iterator[Term]:
    if _is_fixed(number, factors):
        yield number, ONE
    elif isinstance(number, Sum):
        for term in number.terms:
            yield from _expanded(term, factors)
    elif isinstance(number, Product) and _is_fixed(number.left, factors):
        yield from ((multiplied(number.left, fixed), each) for fixed, each in _expanded(number.right, factors))
    elif isinstance(number, Product) and _is_fixed(number.right, factors):
        yield from ((multiplied(number.right, fixed), each) for fixed, each in _expanded(number.left, factors))
    else:
        yield ONE, number


def _is_fixed(number: Number, factors: Sequence[Number]) -> bool:
    """Return whether a number is the same for all units of a cell."""
    if number in factors or isinstance(number, Constant):
        return True
    if not {name for factor in factors for name in factor.columns}.issuperset(number.columns):
        return False
    return not isinstance(number, Ticks | Code) and all(_is_fixed(each, factors) for each in parts(number))


def _combined(
    terms: Sequence[Term],
    numbers: Sequence[Number],
    by_group: NDArray[np.object_],
    known: dict[Number, NDArray[np.int64]],
) -> NDArray[np.object_]:
    """Return the sum of a number in each group."""
    total = np.zeros(len(by_group), dtype=object)
    for fixed, number in terms:
        (factor,) = evaluate([fixed], {}, known)
        total = total + factor.astype(object) * by_group[:, numbers.index(number)]
    return total
