"""Derivatives of the losses of small tables, added up from those of their units.

Each unit's are whole numbers that do not depend on the other units, so what is found for a unit once holds in every
table. Searches over thousands of tables of a few kinds of unit look at one more often than at another.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dpcausal.audit.densities import Law
from dpcausal.utils.arrays import Array
from dpcausal.vault.engines import Batch, ExactInts

Losses = Callable[[Array, Batch], ExactInts]
Unit = tuple[int, ...]


class UnitByUnit:
    """Sums of derivatives of losses, of which each unit's are computed once for the same coefficients.

    Args:
        losses: Computes them over a table.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._tables: dict[int, tuple[Batch, list[tuple[Unit, int]]]] = {}
        self._known: dict[tuple[bytes, Unit], ExactInts] = {}

    def __call__(self, at: Array, batch: Batch) -> ExactInts:
        """Return the sums over a table."""
        units = self._units(batch)
        if not units:
            return self._losses(at, batch)
        place, names = at.tobytes(), list(batch)
        total: ExactInts = np.sum([self._of(place, at, names, unit) * count for unit, count in units], axis=0)
        return total

    def _units(self, batch: Batch) -> list[tuple[Unit, int]]:
        """Return the different units of a table, each with how often it is there."""
        if id(batch) not in self._tables:  # tables are held, so that no other one is taken for one of them
            units, counts = np.unique(np.array(list(batch.values())), axis=1, return_counts=True)
            listed = [(tuple(unit), count) for unit, count in zip(units.T.tolist(), counts.tolist(), strict=True)]
            self._tables[id(batch)] = batch, listed
        return self._tables[id(batch)][1]

    def _of(self, place: bytes, at: Array, names: list[str], unit: Unit) -> ExactInts:
        if (place, unit) not in self._known:
            one = {name: np.array([value]) for name, value in zip(names, unit, strict=True)}
            self._known[place, unit] = self._losses(at, one)
        return self._known[place, unit]


def by_units(law: Law) -> Law:
    """Return the same law with losses that are found unit by unit."""
    return replace(law, losses=tuple(map(UnitByUnit, law.losses)))
