"""An engine over arrays, for simulations of many small tables.

Planning a statement takes DuckDB longer than adding up a thousand rows. The integers are the same; a test compares.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.queries import GRID
from dpcausal.queries.profiles import grid
from dpcausal.schema.columns import Indicator
from dpcausal.vault.engines import Batch, ExactInts, exact_ints
from tests.support.conformance.expressions import evaluator


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
        self._units = {"arm": columns["treatment"], **columns, "outcome": ticks(outcome, column)}

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:  # noqa: ARG002
        """See `Engine.aggregate`. All units are in the comparison."""
        place = np.zeros(len(self._units["outcome"]), dtype=np.int64)
        for text, count in cells.items():
            place = place * count + self._values(text)
        found = np.zeros((math.prod(cells.values()), len(sums)), dtype=np.int64)
        for at, text in enumerate(sums):
            np.add.at(found[:, at], place, self._values(text))
        return exact_ints(found.reshape(*cells.values(), len(sums)))

    def _values(self, text: str) -> NDArray[np.int64]:
        return np.asarray(evaluator(text)(self._units), dtype=np.int64)

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        """See `Engine.fold`. All units are one batch."""
        return exact_ints(kernel(self.collect(columns, 0)))

    def collect(
        self,
        columns: Sequence[str],
        limit: int,  # noqa: ARG002 (tables here are small)
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Batch:
        """See `Engine.collect`."""
        units = {name: self._units[name] for name in columns}
        return kernel(units) if kernel else units

    def with_schema(self, schema: dpc.Schema) -> Self:
        """See `with_schema` of the engines. Every unit has all of its values."""
        other = copy(self)
        if isinstance(schema.outcome, Indicator):
            other._units = {**self._units, "outcome": np.full_like(self._units["outcome"], -GRID)}  # noqa: SLF001 (its own copy)
        return other
