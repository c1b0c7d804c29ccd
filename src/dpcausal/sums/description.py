"""A query as data: cells, and what a unit adds to the sums of its own cell."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpcausal.errors import QueryError
from dpcausal.sums.numbers import Number, columns

MOST_SUMS = 2**20
"""How many cells, and how many sums, a query may have."""

LARGEST_ADDEND = 2**41
"""How much one unit may add to a sum: engines add up 2^41 units of this without overflow."""


@dataclass(frozen=True)
class Sums:
    """Sums over units of whole numbers, in cells.

    A unit has one code for each factor of the cells. It is in the cell of its codes, or in none where one of them is
    not below the factor's number of cells.

    Attributes:
        cells: The factors: numbers from 0 on, each with how many of its values are cells, the first of them slowest.
            Without any, all units are in one cell.
        numbers: What a unit adds to each sum of its own cell, by the name of the sum.
        whole: What a unit adds to sums over all units, whatever their cell, by the name of the sum.
        weights: The noise of each sum in proportion to others, in ticks, by its name.
        everyone: Whether units outside the comparison are added up too.
        labels: What each cell is called: it stands in the place of the first {} in the name of a sum, or after a name
            without one. If left out, cells are called _0, _1 and so on. Without cells, names stay as they are.
    """

    cells: Mapping[Number, int]
    numbers: Mapping[str, Number]
    whole: Mapping[str, Number] = field(default_factory=dict)
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    everyone: bool = False
    labels: Sequence[str] = ()

    def __post_init__(self) -> None:
        for factor, count in self.cells.items():
            if not (factor.low >= 0 and type(count) is int and count >= 1):
                raise QueryError(
                    expected="cells that are numbered from 0 on, and how many there are",
                    got=f"{count!r} cells of numbers from {factor.low} to {factor.high}",
                    hint='write for instance cells={Code("treatment", 2): 2}.',
                )
        if not self.labels:
            object.__setattr__(
                self, "labels", tuple(f"_{place}" for place in range(self.count)) if self.cells else ("",)
            )
        most = self.count * len(self.numbers) + len(self.whole)
        if self.count > MOST_SUMS or not 0 < most <= MOST_SUMS or len(self.labels) != self.count:
            raise QueryError(
                expected=f"from 1 to {MOST_SUMS:,} cells, each with a label, and as many sums",
                got=f"{self.count:,} cells with {len(self.labels):,} labels, {most:,} sums",
                hint="ask for fewer, or label each cell.",
            )
        self._check_sums()

    def _check_sums(self) -> None:
        sums = {**self.numbers, **self.whole}
        if len(set(self.names)) < len(self.names) or len(sums) < len(self.numbers) + len(self.whole):
            raise QueryError(
                expected="a name of its own for each sum", got=", ".join(self.names)[:200], hint="rename some."
            )
        largest = max(each.size for each in sums.values())
        if largest > LARGEST_ADDEND:
            raise QueryError(
                expected="at most 2^41 from one unit, so that no number of units makes a sum overflow",
                got=f"a number of up to {largest.bit_length()} bits",
                hint="round it: Shift(number, bits).",
            )
        weights = self.weights.values()
        exact = all(isinstance(each, Fraction) and each > 0 for each in weights)
        if self.weights and (self.weights.keys() != sums.keys() or not exact):
            raise QueryError(
                expected="a positive weight for each sum, as a fraction",
                got=", ".join(f"{name}: {weight}" for name, weight in self.weights.items())[:200],
                hint="weigh every sum, by its name, or none.",
            )

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.cells.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """The coerced columns that are read."""
        return columns(*self.cells, *self.numbers.values(), *self.whole.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The name of every sum: cell by cell, and then those over all units."""
        return tuple(name for name, _ in self._named())

    @property
    def keys(self) -> dict[str, str]:
        """What each sum is called in `numbers` or `whole`, by its name."""
        return dict(self._named())

    def _named(self) -> Iterator[tuple[str, str]]:
        """Yield the name of every sum and what it is called in the description."""
        templates = {key: key if "{}" in key or not self.cells else f"{key}{{}}" for key in self.numbers}
        for label in self.labels:
            yield from ((name.replace("{}", label, 1) if self.cells else name, key) for key, name in templates.items())
        yield from ((key, key) for key in self.whole)
