"""An engine over arrays, for simulations of many small tables: it adds up what it knows, and nothing else.

Planning a statement takes DuckDB longer than adding up a thousand rows. The integers are the same; a test compares.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.queries import GRID
from dpcausal.queries.profiles import grid
from dpcausal.vault.answers.arm_moments import DEFICIT, SQUARE
from dpcausal.vault.answers.missing_outcomes import MISSING
from dpcausal.vault.engines import Batch, ExactInts, exact_ints

_BELOW = re.compile(r"CASE WHEN outcome < (-?\d+) THEN 1 ELSE 0 END")


def ticks(values: NDArray[np.float64], column: dpc.Real) -> NDArray[np.int64]:
    """Return numbers as the vault stores them."""
    middle, ticks_to_one = grid(column)
    inside = np.clip(values, column.low, column.high)
    return np.clip(np.floor((inside - middle) * ticks_to_one + 0.5), -GRID, GRID).astype(np.int64)


class ArrayEngine:
    """Sums over groups of units, given as arrays.

    Args:
        outcome: The outcomes.
        columns: By the names of coerced columns, the codes of each unit: `treatment`, `covariate_0`, ….
        column: The outcome's declaration.
    """

    def __init__(
        self, outcome: NDArray[np.float64], columns: Mapping[str, NDArray[np.int64]], column: dpc.Real
    ) -> None:
        self._ticks, self._columns = ticks(outcome, column), columns

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:  # noqa: ARG002
        """See `Engine.aggregate`. All units are in the comparison."""
        place = np.zeros(len(self._ticks), dtype=np.int64)
        for name, count in cells.items():
            place = place * count + self._columns[name]
        groups = math.prod(cells.values())
        found = np.zeros((groups, len(sums)), dtype=object)
        if all(_BELOW.fullmatch(each) for each in sums[:-1]) and len(sums) > 1:
            edges = [int(_BELOW.fullmatch(each)[1]) for each in sums[:-1]]  # type: ignore[index]
            bins = place * (len(edges) + 1) + np.searchsorted(edges, self._ticks, side="right")
            counts = np.bincount(bins, minlength=groups * (len(edges) + 1)).reshape(groups, -1)
            found[:] = np.cumsum(counts, axis=1)
        else:
            values = {"1": np.ones_like(self._ticks), "outcome": self._ticks, DEFICIT: self._deficits}
            values[MISSING] = np.zeros_like(self._ticks)  # every unit has an outcome
            for at, each in enumerate(sums):
                if each == SQUARE:
                    found[:, at] = self._squares(place, groups)
                    continue
                # Sums of whole numbers below 2^53 are exact in floating point.
                found[:, at] = np.bincount(place, weights=values[each], minlength=groups).astype(np.int64)
        return found.reshape(*cells.values(), len(sums))

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """See `Engine.fold`. All units are one batch."""
        return exact_ints(kernel(self.collect(columns, len(self._ticks))))

    def collect(
        self,
        columns: Sequence[str],
        limit: int,  # noqa: ARG002 (tables here are small)
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Batch:
        """See `Engine.collect`."""
        units = {name: self._ticks if name == "outcome" else self._columns[name] for name in columns}
        return kernel(units) if kernel else units

    def with_schema(self, schema: dpc.Schema) -> Self:  # noqa: ARG002 (every unit has all of its values)
        """See `SchemaEngine.with_schema`."""
        return self

    def _squares(self, place: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
        total = np.zeros(groups, dtype=np.int64)
        np.add.at(total, place, self._ticks**2)
        return total

    @property
    def _deficits(self) -> NDArray[np.int64]:
        return (GRID**2 - self._ticks**2) >> (GRID.bit_length() - 1)
