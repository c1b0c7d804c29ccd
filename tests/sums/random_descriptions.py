"""Random descriptions of sums."""

import random
from fractions import Fraction
from typing import TYPE_CHECKING

from dpcausal.errors import QueryError
from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.description import Sums
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
from tests.sums.neighbours import VALUES, Case

if TYPE_CHECKING:
    from collections.abc import Callable

CODES = {"treatment": OUTSIDE + 1, "arm": 3, "covariate_1": 2, "covariate_2": 3}
TICKS = ("outcome", "covariate_0", "covariate_3")
CHANGES = {
    "record": frozenset({*CODES, *TICKS}),
    "record_within_arm": frozenset({*CODES, *TICKS} - {"treatment", "arm"}),
    "outcome": frozenset({"outcome"}),
}


def drawn(seed: int) -> Case:
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
    return Case(description, domain, rng.choice(("l1", "l2")))


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
