"""What a unit chooses before and after a change: the corners of pieces, and how far squares bend between them."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpcausal.sums.intervals import Range
from dpcausal.sums.limits import spend

Side = tuple[int, int]
"""A variable, before (`OLD`) or after (`NEW`) the change."""


@dataclass
class Choice:
    """What is chosen together: states, and in each the value of variables and how far their squares may bend.

    Attributes:
        corners: The value of each variable in each state.
        bends: By how much the square of a variable may be below the line between the ends of its piece, in each state.
        pieces: The case and the piece of each variable that is squared, in each state.
        size: How many states there are.
    """

    corners: dict[Side, list[int]] = field(default_factory=dict)
    bends: dict[Side, list[int]] = field(default_factory=dict)
    pieces: dict[Side, list[tuple[int, Range]]] = field(default_factory=dict)
    size: int = 0

    @property
    def kind(self) -> object:
        """What tells its states from those of other choices, whatever its variables are called."""
        sides = tuple((side[1], tuple(each), tuple(self.bends.get(side, ()))) for side, each in self.corners.items())
        return self.size, sides

    def add(self, ranges: Mapping[Side, Range], squared: Mapping[Side, int]) -> None:
        """Add the corners of a box as states, given the cases of variables that are squared."""
        ends = [range_ if range_[0] < range_[1] else range_[:1] for range_ in ranges.values()]
        spend(20 * (1 + len(ranges)) * math.prod(map(len, ends)))
        for corner in itertools.product(*ends):
            self.size += 1
            for side, value in zip(ranges, corner, strict=True):
                self.corners.setdefault(side, []).append(value)
            for side, case in squared.items():
                low, high = ranges[side]
                self.bends.setdefault(side, []).append((high - low) ** 2 // 4)
                self.pieces.setdefault(side, []).append((case, (low, high)))

    def reduce(self) -> None:
        """Leave out states that are like another in which squares may bend as far or further."""
        if not self.bends:
            return
        best: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
        corners = list(zip(*self.corners.values(), strict=True))
        for state, bends in enumerate(zip(*self.bends.values(), strict=True)):
            rivals = best.setdefault(corners[state], [])
            if not any(_covers(other, bends) for other, _ in rivals):
                rivals[:] = [each for each in rivals if not _covers(bends, each[0])] + [(bends, state)]
        kept = sorted(state for rivals in best.values() for _, state in rivals)
        self.corners = {side: [values[state] for state in kept] for side, values in self.corners.items()}
        self.bends = {side: [values[state] for state in kept] for side, values in self.bends.items()}
        self.pieces = {side: [values[state] for state in kept] for side, values in self.pieces.items()}
        self.size = len(kept)


def _covers(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(more >= less for more, less in zip(one, other, strict=True))
