"""Random descriptions of sums, and the furthest that a unit is found to move them."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcausal.arrays import Array, Int64s
from dpcausal.errors import QueryError
from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.certificates import Norm
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import (
    GRID,
    ONE,
    Between,
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
    rng = random.Random(seed)
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
            weights = {name: Fraction(max(each.size, 1) * rng.randint(1, 12), rng.randint(1, 4)) for name, each in sums.items()}
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
    bits = rng.choice((1, 2, 5, 10))
    ways: tuple[Callable[[], tuple[Number, int]], ...] = (
        lambda: (line, GRID),
        lambda: (Shift(line + (GRID >> bits >> 1), 20 - bits), 2**bits),
        lambda: (2**bits * level(Code("covariate_2", 3), rng.randrange(3)), 2**bits),
        lambda: (2**bits * (2 * Code("covariate_1", 2) - 1), 2**bits),
        lambda: (GRID * indicator(equals(Code("covariate_2", 3), rng.randrange(3))), GRID),
        lambda: (Shift(Clip(2 * line - Ticks(rng.choice(TICKS)) + rng.randint(-GRID, GRID), -GRID, GRID), 20 - bits), 2**bits),
        lambda: (Lookup(Clip(Shift(line + GRID, 17), 0, 15), tuple(rng.randint(-(2**bits), 2**bits) for _ in range(16))), 2**bits),
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


def furthest(case: Drawn, seed: int, units: int = 24) -> float:
    """Return the furthest move of the sums that is found among random neighbours, in units of their weights."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(1 if case.domain.changes == CHANGES["record"] else 6):
        moved, group = _moves(case, _group(rng, case, units))
        one, other = np.unravel_index(int(moved.argmax()), moved.shape)
        best = max(best, float(moved.max()))
        # The best pair, and all that differs from one of it in a column or two.
        pair = {name: line[[one, other]] for name, line in group.items()}
        near = _near(rng, case, pair)
        best = max(best, float(_moves(case, near)[0].max()))
    return best


def _values(rng: np.random.Generator, name: str, size: int, case: Drawn) -> Int64s:
    if name in CODES:
        return rng.integers(0, CODES[name] if name != "treatment" or case.description.everyone else OUTSIDE, size)
    some = rng.choice(np.array(VALUES), size)
    return np.where(rng.random(size) < 0.25, rng.integers(-GRID, GRID + 1, size), some)


def _group(rng: np.random.Generator, case: Drawn, size: int) -> dict[str, Int64s]:
    """Return units of which any two may be neighbours, but for who is in the comparison."""
    return {
        name: _values(rng, name, size, case)
        if name in case.domain.changes
        else np.repeat(_values(rng, name, 1, case), size)
        for name in (*CODES, *TICKS)
    }


def _near(rng: np.random.Generator, case: Drawn, pair: dict[str, Int64s]) -> dict[str, Int64s]:
    lines: dict[str, list[Int64s]] = {name: [line] for name, line in pair.items()}
    for name in case.domain.changes:
        values = np.array(VALUES) if name in TICKS else _values(rng, name, 4, case)
        for each in lines:
            kept = np.repeat(pair[each], len(values))
            lines[each].append(np.tile(values, 2) if each == name else kept)
    return {name: np.concatenate(each) for name, each in lines.items()}


def _moves(case: Drawn, group: dict[str, Int64s]) -> tuple[Array, dict[str, Int64s]]:
    """Return how far the sums move from each unit to each other; with one that adds nothing, where units may leave."""
    sums, size = case.description, len(group["outcome"])
    trees = [*sums.numbers.values(), *sums.whole.values()]
    added = evaluate(trees, group) / np.array([[float(sums.weights[name])] for name in (*sums.numbers, *sums.whole)])
    places = evaluate(list(sums.cells), group) if sums.cells else np.zeros((0, size), dtype=np.int64)
    inside = np.ones(size, dtype=bool)
    cell = np.zeros(size, dtype=np.int64)
    for place, count in zip(places, sums.cells.values(), strict=True):
        inside &= place < count
        cell = cell * count + place
    if case.domain.leaves and not sums.everyone:
        added = np.hstack([added, np.zeros((len(trees), 1))])
        inside, cell = np.append(inside, False), np.append(cell, 0)
        group = {name: np.append(line, line[:1]) for name, line in group.items()}
    power = 1 if case.norm == "l1" else 2
    own, whole = added[: len(sums.numbers)] * inside, added[len(sums.numbers) :]
    together = (cell[:, None] == cell) & inside[:, None] & inside
    same = (np.abs(own[:, :, None] - own[:, None, :]) ** power).sum(axis=0)
    alone = (np.abs(own) ** power).sum(axis=0)
    total = np.where(together, same, alone[:, None] + alone)
    total = total + (np.abs(whole[:, :, None] - whole[:, None, :]) ** power).sum(axis=0)
    return total ** (1 / power), group
