"""Where the adding-up runs. An engine has three verbs and no opinion on privacy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Batch = Mapping[str, NDArray[np.int64]]
"""Some rows, column by column, as the integers that coercion made of them."""

Integers = NDArray[np.object_]
"""Exact Python integers, of any size."""


def integers(values: NDArray[Any]) -> Integers:
    """Numbers without fractions as exact integers."""
    return np.array([int(value) for value in values.ravel()], dtype=object).reshape(values.shape)


class Engine(Protocol):
    """A coerced table that can add up integers exactly: the result does not depend on order, threads or batches."""

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str]) -> Integers:
        """Sums over groups of rows.

        Args:
            cells: The columns to group by, each with the number of its public codes 0, 1, …
            sums: Integer SQL expressions in the coerced columns.

        Returns:
            The sums, with one axis for each grouping column and a last one for the expressions; 0 where no row is.
        """
        ...

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> Integers:
        """The sum over batches of what a kernel makes of each: an array of integers, of one shape for any batch."""
        ...

    def collect(self, columns: Sequence[str], limit: int) -> Batch:
        """All rows at once, for what cannot be added up, such as matching; refused beyond a public limit."""
        ...
