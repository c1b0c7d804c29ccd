"""What a unit chooses before and after a change: the corners of pieces, and how far squares bend between them."""

import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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
    """

    corners: dict[Side, list[int]] = field(default_factory=dict)
    bends: dict[Side, list[int]] = field(default_factory=dict)
    pieces: dict[Side, list[tuple[int, Range]]] = field(default_factory=dict)
    size: int = 0

    def of(self, variables: Sequence[int]) -> "Choice":
        """Return the choice with its variables, which are numbered from 0 on, called by others' numbers."""
        return Choice(
            {(variables[at], side): values for (at, side), values in self.corners.items()},
            {(variables[at], side): values for (at, side), values in self.bends.items()},
            {(variables[at], side): values for (at, side), values in self.pieces.items()},
            self.size,
        )

    @cached_property
    def kind(self) -> object:
        """What tells its states from those of other choices, whatever its variables are called."""
        sides = tuple((side[1], tuple(each), tuple(self.bends.get(side, ()))) for side, each in self.corners.items())
        return self.size, sides

    def add(self, ranges: Mapping[Side, Range], squared: Mapping[Side, int]) -> None:
        """Add the corners of a box as states, given the cases of variables that are squared."""
        ends = [range_ if range_[0] < range_[1] else range_[:1] for range_ in ranges.values()]
        spend(20 * (1 + len(ranges)) * math.prod(map(len, ends)))
        corners = list(itertools.product(*ends))
        self.size += len(corners)
        for side, values in zip(ranges, zip(*corners, strict=True), strict=True):
            self.corners.setdefault(side, []).extend(values)
        for side, case in squared.items():
            low, high = ranges[side]
            self.bends.setdefault(side, []).extend([(high - low) ** 2 // 4] * len(corners))
            self.pieces.setdefault(side, []).extend([(case, (low, high))] * len(corners))

    def reduce(self) -> None:
        """Leave out states that are like another in which squares may bend as far or further."""
        if not self.bends:
            return
        alike: dict[tuple[int, ...], list[int]] = {}
        for state, corner in enumerate(zip(*self.corners.values(), strict=True)):
            alike.setdefault(corner, []).append(state)
        bends, kept = list(zip(*self.bends.values(), strict=True)), []
        for states in alike.values():
            left = states
            while len(left) > 1:
                most = max(left, key=bends.__getitem__)
                kept.append(most)
                left = [state for state in left if not all(map(operator.ge, bends[most], bends[state]))]
            kept += left
        kept.sort()
        self.corners = {side: [values[state] for state in kept] for side, values in self.corners.items()}
        self.bends = {side: [values[state] for state in kept] for side, values in self.bends.items()}
        self.pieces = {side: [values[state] for state in kept] for side, values in self.pieces.items()}
        self.size = len(kept)


@dataclass(frozen=True)
class Boxes:
    """All that a choice depends on, whatever its variables are called: they are numbered from 0 on.

    Attributes:
        ranges: The ranges of all variables, case by case.
        cases: The cases that units may be in: of each unit (`OLD`, `NEW`) one.
        alike: Those of which squares count alike before and after.
        cuts: Where ranges are cut, by variable and case.
    """

    ranges: tuple[tuple[Range, ...], ...]
    cases: tuple[tuple[tuple[int, int], ...], ...]
    squared: frozenset[Side]
    alike: frozenset[int]
    cuts: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]

    def choice(self) -> Choice:
        """Return the choice among the corners of all pieces of all cases."""
        choice, count = Choice(), len(self.ranges[0]) if self.ranges else 0
        if not self.squared and all(low == high for case in self.ranges for low, high in case):
            self._choose_points(choice, count)
            return choice
        cuts = dict(self.cuts)
        for box in self.cases:
            spend(40 * count * len(box))
            parts = [self._parts(at, box, cuts) for at in range(count)]
            spend(20 * count * math.prod(map(len, parts)))
            for pieces in itertools.product(*parts):
                ranges = {side: range_ for piece in pieces for side, range_ in piece.items()}
                choice.add(ranges, {side: dict(box)[side[1]] for side in ranges if side in self.squared})
        choice.reduce()
        return choice

    def _choose_points(self, choice: Choice, count: int) -> None:
        """Add the only corner of each case: a box of points has one."""
        spend(20 * (1 + count * max(map(len, self.cases), default=0)) * len(self.cases))
        choice.size = len(self.cases)
        for at in range(count):
            points = [case[at][0] for case in self.ranges]
            for place, (side, _) in enumerate(self.cases[0] if self.cases else ()):
                choice.corners[at, side] = [points[box[place][1]] for box in self.cases]

    def _parts(
        self, at: int, box: Sequence[tuple[int, int]], cuts: Mapping[tuple[int, int], tuple[int, ...]]
    ) -> list[dict[Side, Range]]:
        """Return the pieces of a variable's ranges, before and after."""
        ranges = {(at, side): self.ranges[case][at] for side, case in box}
        if self.squared.isdisjoint(ranges):
            return [ranges]
        cut = {
            (at, side): list(
                _pieces(self.ranges[case][at], cuts.get((at, case), ()) if (at, side) in self.squared else ())
            )
            for side, case in box
        }
        if len(ranges) == 2 and max(map(len, cut.values())) > 1 and at in self.alike:
            # The largest change is where one of both units is at an end.
            old, new = ranges
            return [
                *({old: (end, end), new: piece} for end in set(ranges[old]) for piece in cut[new]),
                *({old: piece, new: (end, end)} for end in set(ranges[new]) for piece in cut[old]),
            ]
        return [dict(zip(ranges, each, strict=True)) for each in itertools.product(*cut.values())]


def _pieces(range_: Range, cuts: Sequence[int]) -> Iterator[Range]:
    """Return the pieces of a range."""
    low, high = range_
    return itertools.pairwise([low, *(each for each in cuts if low < each < high), high])
