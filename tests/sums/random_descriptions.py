"""Random descriptions of sums, and the furthest that a unit is found to move them."""

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.errors import QueryError
from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.certificates import Norm
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import (
    GRID,
    ONE,
    Between,
    Bin,
    Clip,
    Code,
    Lookup,
    Number,
    Shift,
    Ticks,
    Where,
    deficit,
    equals,
    indicator,
    level,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CODES = {"treatment": OUTSIDE + 1, "arm": 3, "covariate_1": 2, "covariate_2": 3}
TICKS = ("outcome", "covariate_0", "covariate_3")
CHANGES = {
    "record": frozenset({*CODES, *TICKS}),
    "record_within_arm": frozenset({*CODES, *TICKS} - {"treatment", "arm"}),
    "outcome": frozenset({"outcome"}),
}
VALUES = (-GRID, -GRID + 1, -GRID // 2, -GRID // 4, -1, 0, 1, GRID // 3, GRID // 2, 3 * GRID // 4, GRID - 1, GRID)


@dataclass(frozen=True)
class Drawn:
    """A description, what may change, and the norm."""

    description: Sums
    domain: Domain
    norm: Norm


def drawn(seed: int) -> Drawn:
    """Return a random description; the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 (descriptions, not noise)
    everyone = rng.random() < 0.2
    treatment = Code("treatment", OUTSIDE + 1 if everyone else OUTSIDE)
    while True:
        try:
            pool = [_number(rng, treatment) for _ in range(rng.randint(1, 4))]
            counted = rng.randint(0, len(pool)) if rng.random() < 0.5 else 0
            numbers = {f"number {at}": each for at, each in enumerate(pool[counted:])}
            whole = {f"whole {at}": each for at, each in enumerate(pool[:counted])}
            if rng.random() < 0.4:
                whole["treated"] = indicator(equals(treatment, 1))
            sums = numbers | whole
            weights = {
                name: Fraction(max(each.size, 1) * rng.randint(1, 12), rng.randint(1, 4)) for name, each in sums.items()
            }
            description = Sums(_cells(rng, treatment), numbers, whole, weights, everyone)
            break
        except QueryError:  # too large a number, or no sum at all
            continue
    domain = Domain(CODES, CHANGES[rng.choice(tuple(CHANGES))], rng.random() < 0.5)
    return Drawn(description, domain, rng.choice(("l1", "l2")))


def _cells(rng: random.Random, treatment: Number) -> dict[Number, int]:
    ways: tuple[dict[Number, int], ...] = (
        {},
        {treatment: 2},
        {Code("arm", 3): 2},
        {Code("covariate_2", 3): 3},
        {_bins(rng): 3},
        {Bin(Ticks(rng.choice(TICKS)), tuple(sorted(rng.sample(range(-GRID, GRID), 3)))): 3},
        {treatment: 2, Code("covariate_2", 3): 2},
        {treatment: 2, _bins(rng): 3},
        {Lookup(Code("covariate_2", 3), (0, 1, 0)) + Code("covariate_1", 2): 2},
    )
    return rng.choice(ways)


def _bins(rng: random.Random) -> Number:
    """Return in which of three bins a number is."""
    column = Ticks(rng.choice(TICKS))
    low, high = sorted(rng.sample(range(-GRID, GRID), 2))
    return indicator(Between(column, low, GRID)) + indicator(Between(column, high, GRID))


def _feature(rng: random.Random) -> tuple[Number, int]:
    """Return a number of a unit, and the largest size that it is made for."""
    line = Ticks(rng.choice(TICKS))
    other, bits = Ticks(rng.choice(TICKS)), rng.choice((1, 2, 5, 10))
    table = tuple(rng.randint(-(2**bits), 2**bits) for _ in range(16))
    ways: tuple[Callable[[], tuple[Number, int]], ...] = (
        lambda: (line, GRID),
        lambda: (Shift(line + (GRID >> bits >> 1), 20 - bits), 2**bits),
        lambda: (2**bits * level(Code("covariate_2", 3), rng.randrange(3)), 2**bits),
        lambda: (2**bits * (2 * Code("covariate_1", 2) - 1), 2**bits),
        lambda: (GRID * indicator(equals(Code("covariate_2", 3), rng.randrange(3))), GRID),
        lambda: (Shift(Clip(2 * line - other + rng.randint(-GRID, GRID), -GRID, GRID), 20 - bits), 2**bits),
        lambda: (Lookup(Clip(Shift(line + GRID, 17), 0, 15), table), 2**bits),
    )
    return rng.choice(ways)()


def _number(rng: random.Random, treatment: Number, depth: int = 0) -> Number:
    """Return what a unit may add to a sum."""
    (one, size), (other, by) = _feature(rng), _feature(rng)
    down = (by.bit_length() - 1) if by > 1 else 1
    low, high = sorted(rng.sample(VALUES, 2))
    ways: tuple[Callable[[], Number], ...] = (
        lambda: one,
        lambda: one * other,
        lambda: size * size - one * one,
        lambda: deficit(one, size),
        lambda: Shift(one * other + by // 2, down),
        lambda: Shift(one * other, 3),
        lambda: Shift(one + other, 2),
        lambda: ONE,
        lambda: (2 * treatment - 1) * _number(rng, treatment, depth + 1),
        lambda: Where(equals(rng.choice((treatment, Code("covariate_2", 3))), 1), _number(rng, treatment, depth + 1)),
        lambda: Where(Between(Ticks(rng.choice(TICKS)), low, high), _number(rng, treatment, depth + 1)),
        lambda: Where(Between(Ticks("outcome") - Ticks("covariate_0"), low, high), _number(rng, treatment, depth + 1)),
        lambda: rng.randint(1, 3) * _number(rng, treatment, depth + 1) - _number(rng, treatment, depth + 1),
        lambda: Shift(other * deficit(one, size), down),
    )
    return (rng.choice(ways) if depth < 2 else ways[rng.randrange(8)])()


def furthest(case: Drawn, seed: int, units: int = 20) -> Fraction:
    """Return the furthest move of the sums that is found among random neighbours, to the power of the norm."""
    rng = np.random.default_rng(seed)
    best = Fraction(0)
    for _ in range(1 if case.domain.changes == CHANGES["record"] else 6):
        group = _group(rng, case, units)
        one, other = _furthest_pair(case, group)
        # The best pair, and all that differs from one of it in a column.
        near = _near(rng, case, {name: line[[one % units, other % units]] for name, line in group.items()})
        best = max(best, _moved(case, near, *_furthest_pair(case, near)))
    return best


def _values(rng: np.random.Generator, name: str, size: int, case: Drawn) -> Int64s:
    if name in CODES:
        return rng.integers(0, CODES[name] if name != "treatment" or case.description.everyone else OUTSIDE, size)
    some = rng.choice(np.array(VALUES), size)
    return np.where(rng.random(size) < 0.25, rng.integers(-GRID, GRID + 1, size), some)


def _group(rng: np.random.Generator, case: Drawn, size: int) -> dict[str, Int64s]:
    """Return units of which any two may be neighbours, but for who is in the comparison."""
    group = {
        name: _values(rng, name, size, case)
        if name in case.domain.changes
        else np.repeat(_values(rng, name, 1, case), size)
        for name in (*CODES, *TICKS)
    }
    if case.description.everyone and case.domain.leaves:  # a unit outside the comparison has no arm
        for name in ("treatment", "arm"):
            group[name][::2] = CODES[name] - 1
    return group


def _near(rng: np.random.Generator, case: Drawn, pair: dict[str, Int64s]) -> dict[str, Int64s]:
    lines = {name: [line] for name, line in pair.items()}
    for name in case.domain.changes:
        values = np.array(VALUES) if name in TICKS else _values(rng, name, 4, case)
        for each, line in lines.items():
            line.append(np.tile(values, 2) if each == name else np.repeat(pair[each], len(values)))
    return {name: np.concatenate(line) for name, line in lines.items()}


def _added(case: Drawn, group: dict[str, Int64s]) -> tuple[Int64s, Int64s]:
    """Return what each unit adds to each sum, and its cell, -1 for none; last a unit that adds nothing, if any."""
    sums, size = case.description, len(group["outcome"])
    trees = [*sums.numbers.values(), *sums.whole.values()]
    added, cell = evaluate(trees, group), np.zeros(size, dtype=np.int64)
    for factor, count in sums.cells.items():
        (place,) = evaluate([factor], group)
        cell = np.where((cell < 0) | (place >= count), -1, cell * count + place)
    if case.domain.leaves and not sums.everyone:
        added, cell = np.hstack([added, np.zeros((len(trees), 1), dtype=np.int64)]), np.append(cell, -1)
    added[: len(sums.numbers), cell < 0] = 0
    return added, cell


def _furthest_pair(case: Drawn, group: dict[str, Int64s]) -> tuple[int, int]:
    """Return the places of the two units between which the sums move furthest, but for the rounding of floats."""
    added, cell = _added(case, group)
    names = (*case.description.numbers, *case.description.whole)
    shares = added / np.array([[float(case.description.weights[name])] for name in names])
    power, count = {"l1": 1, "l2": 2}[case.norm], len(case.description.numbers)
    moved = np.abs(shares[:, :, None] - shares[:, None, :]) ** power
    alone = (np.abs(shares[:count]) ** power).sum(axis=0)
    total = np.where(cell[:, None] == cell, moved[:count].sum(axis=0), alone[:, None] + alone)
    one, other = np.unravel_index(int((total + moved[count:].sum(axis=0)).argmax()), total.shape)
    return int(one), int(other)


def _moved(case: Drawn, group: dict[str, Int64s], one: int, other: int) -> Fraction:
    """Return how far the sums move between two units, to the power of the norm."""
    added, cell = _added(case, group)
    power, total = {"l1": 1, "l2": 2}[case.norm], Fraction(0)
    for place, (name, weight) in enumerate(case.description.weights.items()):
        old, new = int(added[place, one]), int(added[place, other])
        apart = name in case.description.numbers and cell[one] != cell[other]
        moves = (old, new) if apart else (old - new,)
        total += sum(abs(Fraction(each) / weight) ** power for each in moves)
    return total


def exceeds(case: Drawn, bound: Fraction, seed: int) -> bool:
    """Return whether neighbours are found that move the sums further than a bound, in exact arithmetic."""
    return furthest(case, seed) > bound ** {"l1": 1, "l2": 2}[case.norm]
