"""The furthest that a unit is found to move the sums of a description, among many neighbours."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.certificates import Norm
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import GRID
from dpcausal.utils.arrays import Array, Int64s

VALUES = (-GRID, -GRID + 1, -GRID // 2, -GRID // 4, -1, 0, 1, GRID // 3, GRID // 2, 3 * GRID // 4, GRID - 1, GRID)


@dataclass(frozen=True)
class Case:
    """A description, what may change, and the norm."""

    description: Sums
    domain: Domain
    norm: Norm

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, and by which units are in the comparison or not."""
        return tuple(dict.fromkeys(("treatment", "arm", *self.description.columns)))

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The columns that are read and may change."""
        return tuple(name for name in self.columns if name in self.domain.changes)


def furthest(case: Case, seed: int, units: int = 20, steps: int = 1) -> Fraction:
    """Return the furthest move of the sums that is found among random neighbours, to the power of the norm."""
    rng = np.random.default_rng(seed)
    best = Fraction(0)
    for _ in range(1 if set(case.changing) == set(case.columns) else 16):
        group = _group(rng, case, units)
        one, other = _furthest_pair(case, group)
        for _ in range(steps):
            # The best pair, and all that differs from one of it in a column.
            size = len(group["treatment"])
            pair = _in_best_public(case, {name: line[[one % size, other % size]] for name, line in group.items()})
            group = _near(rng, case, pair)
            one, other = _furthest_pair(case, group)
        best = max(best, _moved(case, group, one, other))
    return best


def _values(rng: np.random.Generator, name: str, size: int, case: Case) -> Int64s:
    codes = case.domain.codes
    if name in codes:
        return rng.integers(0, codes[name] if name != "treatment" or case.description.everyone else OUTSIDE, size)
    some = rng.choice(np.array(VALUES), size)
    return np.where(rng.random(size) < 0.25, rng.integers(-GRID, GRID + 1, size), some)


def _group(rng: np.random.Generator, case: Case, size: int) -> dict[str, Int64s]:
    """Return units of which any two may be neighbours, but for who is in the comparison."""
    group = {
        name: _values(rng, name, size, case)
        if name in case.domain.changes
        else np.repeat(_values(rng, name, 1, case), size)
        for name in case.columns
    }
    if case.description.everyone and case.domain.leaves:  # a unit outside the comparison has no arm
        for name in ("treatment", "arm"):
            group[name][::2] = case.domain.codes[name] - 1
    return group


def _near(rng: np.random.Generator, case: Case, pair: dict[str, Int64s]) -> dict[str, Int64s]:
    lines = {name: [line] for name, line in pair.items()}
    for name in case.changing:
        values = np.array(VALUES) if name not in case.domain.codes else _values(rng, name, 4, case)
        for each, line in lines.items():
            line.append(np.tile(values, 2) if each == name else np.repeat(pair[each], len(values)))
    return {name: np.concatenate(line) for name, line in lines.items()}


def _in_best_public(case: Case, pair: dict[str, Int64s]) -> dict[str, Int64s]:
    """Return two units with those values of columns that they share with which sums move furthest."""
    for name in (name for name in case.columns if name not in case.changing and name not in ("treatment", "arm")):
        values = np.array(range(case.domain.codes[name]) if name in case.domain.codes else VALUES, dtype=np.int64)
        tried = {each: np.tile(line, 1 + len(values)) for each, line in pair.items()}
        tried[name][2:] = np.repeat(values, 2)
        first = np.arange(0, len(tried[name]), 2)
        best = first[_moves(case, *_added(case, tried), first, first + 1).argmax()]
        pair = {each: line[best : best + 2] for each, line in tried.items()}
    return pair


def _added(case: Case, group: dict[str, Int64s]) -> tuple[Int64s, Int64s]:
    """Return what each unit adds to each sum, and its cell, -1 for none; last a unit that adds nothing, if any."""
    sums, size = case.description, len(group["treatment"])
    trees = [*sums.numbers.values(), *sums.whole.values()]
    added, cell = evaluate(trees, group), np.zeros(size, dtype=np.int64)
    for factor, count in sums.cells.items():
        (place,) = evaluate([factor], group)
        cell = np.where((cell < 0) | (place >= count), -1, cell * count + place)
    if case.domain.leaves and not sums.everyone:
        added, cell = np.hstack([added, np.zeros((len(trees), 1), dtype=np.int64)]), np.append(cell, -1)
    added[: len(sums.numbers), cell < 0] = 0
    return added, cell


def _moves(case: Case, added: Int64s, cell: Int64s, one: Int64s, other: Int64s) -> Array:
    """Return how far the sums move between units at some places and at others, but for the rounding of floats."""
    names = (*case.description.numbers, *case.description.whole)
    shares = added / np.array([[float(case.description.weights[name])] for name in names])
    power, count = {"l1": 1, "l2": 2}[case.norm], len(case.description.numbers)
    moved = np.abs(shares[:, one] - shares[:, other]) ** power
    alone = (np.abs(shares[:count]) ** power).sum(axis=0)
    apart = np.where(cell[one] == cell[other], moved[:count].sum(axis=0), alone[one] + alone[other])
    total: Array = apart + moved[count:].sum(axis=0)
    return total


def _furthest_pair(case: Case, group: dict[str, Int64s]) -> tuple[int, int]:
    """Return the places of the two units between which the sums move furthest, but for the rounding of floats."""
    added, cell = _added(case, group)
    moves = _moves(case, added, cell, *np.indices((len(cell), len(cell))))
    one, other = np.unravel_index(int(moves.argmax()), moves.shape)
    return int(one), int(other)


def _moved(case: Case, group: dict[str, Int64s], one: int, other: int) -> Fraction:
    """Return how far the sums move between two units, to the power of the norm."""
    added, cell = _added(case, group)
    power, total = {"l1": 1, "l2": 2}[case.norm], Fraction(0)
    for place, (name, weight) in enumerate(case.description.weights.items()):
        old, new = int(added[place, one]), int(added[place, other])
        apart = name in case.description.numbers and cell[one] != cell[other]
        moves = (old, new) if apart else (old - new,)
        total += sum(abs(Fraction(each) / weight) ** power for each in moves)
    return total


def exceeds(case: Case, bound: Fraction, seed: int) -> bool:
    """Return whether neighbours are found that move the sums further than a bound, in exact arithmetic."""
    return furthest(case, seed) > bound ** {"l1": 1, "l2": 2}[case.norm]
