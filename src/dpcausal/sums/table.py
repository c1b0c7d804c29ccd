"""Tables of whole numbers: public functions, and the edges of bins."""

from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from typing import Self

import numpy as np

from dpcausal.sums.limits import check_table
from dpcausal.utils.arrays import Int64s


class IntegerTable(tuple[int, ...]):  # noqa: SLOT001 (what is known of it is stored)
    """Whole numbers, perhaps many, that are checked and hashed once."""

    def __new__(cls, values: Iterable[int]) -> Self:
        """Return the values themselves where they are a table already."""
        if isinstance(values, cls):
            return values
        table = super().__new__(cls, values)
        check_table("a value of a table", table)
        return table

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    @cached_property
    def array(self) -> Int64s:
        """The values as an array."""
        return np.array(self, dtype=np.int64)

    def ends(self, low: int, high: int) -> tuple[int, int]:
        """Return the least and the largest value from one place to another."""
        reached = self.array[low : high + 1]
        return int(reached.min()), int(reached.max())

    @cached_property
    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """The values with the first and the last place of each, where neighbours are the same."""
        found, start = [], 0
        for value, places in groupby(self):
            end = start + sum(1 for _ in places)
            found.append((start, end - 1, value))
            start = end
        return tuple(found)
