"""Samplers whose draws are chosen: none, one coordinate at a time, and pairs of opposite draws from a seed.

A source takes one of these in the place of the vault's sampler, so that nothing about an estimator's inside is assumed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from scipy import stats

from dpcausal.queries.calibration import Noise
from dpcausal.release import Noisy
from dpcausal.utils.arrays import Array
from dpcausal.vault.noise import Sampler

_MOST = 2**62

_VECTORS = ("cube", "ball")
"""Draws of a vector with entries of one law, whose length is drawn too."""


class Undrawn(Sampler):
    """A sampler that draws nothing, and remembers the standard deviation of what it would have drawn.

    Attributes:
        sds: The standard deviation of each coordinate, in the order in which they are asked for.
    """

    def __init__(self) -> None:
        self.sds: list[float] = []

    def add_noise(self, ticks: Sequence[int], noise: Noise) -> Noisy:
        """Return the integers and what `_moves` adds to them."""
        factor = 2**0.5 if noise.family == "laplace" else 1.0
        sds = [factor * float(scale or 0.0) for scale in noise.scales]
        moves = self._moves(sds, noise.family)
        return Noisy(tuple(_within(tick + round(move)) for tick, move in zip(ticks, moves, strict=True)))

    def cube(self, dimensions: int, scale: float) -> Array:
        """Return a vector with moves in the place of uncorrelated entries."""
        return np.array(self._moves([scale * ((dimensions + 1) * (dimensions + 2) / 3) ** 0.5] * dimensions, "cube"))

    def ball(self, dimensions: int, scale: float) -> Array:
        """Return a vector with moves in the place of uncorrelated entries."""
        drawn = dimensions + dimensions % 2
        return np.array(self._moves([scale * (drawn + 1) ** 0.5] * dimensions, "ball"))

    def laplace(self, ticks: Sequence[int], scale: float) -> list[int]:  # noqa: ARG002 (as the vault's)
        """Return the integers."""
        return list(ticks)

    def randomised_response(self, answers: Sequence[int], epsilon: Fraction) -> list[int]:  # noqa: ARG002 (as the vault's)
        """Return the answers."""
        return list(answers)

    def _moves(self, sds: Sequence[float], family: str) -> Sequence[float]:  # noqa: ARG002 (for subclasses)
        self.sds += sds
        return [0.0] * len(sds)


class OneMoved(Undrawn):
    """A sampler that moves one coordinate by about a quarter of its standard deviation, in whole ticks.

    Attributes:
        moved: By how many standard deviations.
    """

    def __init__(self, place: int) -> None:
        super().__init__()
        self._place, self.moved = place, 0.0

    def _moves(self, sds: Sequence[float], family: str) -> Sequence[float]:
        moves = [0.0] * len(sds)
        at = self._place - len(self.sds)
        self.sds += sds
        if 0 <= at < len(sds) and sds[at] > 0:
            step = sds[at] / 4 if family in _VECTORS else max(float(round(sds[at] / 4)), 1.0)
            moves[at], self.moved = step, step / sds[at]
        return moves


class Opposite(Undrawn):
    """A sampler whose draws are one of so many pairs: with sign -1 the opposite of those with sign 1.

    Draws are spread evenly over their distributions (a Latin hypercube). Over all pairs every coordinate has a mean of
    exactly 0 and exactly its standard deviation, and no two are correlated. So estimates that are linear in the noise
    spread exactly as it says, and few pairs show what is not.
    """

    def __init__(self, pair: int, sign: int, pairs: int) -> None:
        super().__init__()
        self._pair, self._sign, self._pairs = pair, sign, pairs
        self._families: tuple[str, ...] = ()

    def _moves(self, sds: Sequence[float], family: str) -> Sequence[float]:
        first, size = len(self._families), len(sds)
        self._families += (f"{family} {size}" if family in _VECTORS else family,) * size
        columns = _columns(self._families, self._pairs)
        return [self._sign * sd * float(columns[first + at][self._pair]) for at, sd in enumerate(sds)]


@cache
def _columns(families: tuple[str, ...], size: int) -> tuple[Array, ...]:
    """Return draws for coordinates of these families, each with a mean square of 1 and uncorrelated with the others.

    There must be fewer coordinates than pairs.
    """
    if not families:
        return ()
    before, family, place = _columns(families[:-1], size), families[-1], len(families)
    if family.startswith("cube"):
        of = int(family.removeprefix("cube "))
        drawn = stats.gamma.ppf(_even(size, place // of + _LENGTHS), of + 1.0) * (2 * _even(size, place) - 1)
    elif family.startswith("ball"):
        of = int(family.removeprefix("ball "))
        even, half = float(of + of % 2), (of + of % 2 - 1) / 2
        along = 2 * stats.beta.ppf(_even(size, place), half, half) - 1
        drawn = stats.gamma.ppf(_even(size, place // of + _LENGTHS), even) * along
    else:
        drawn = (stats.laplace if family == "laplace" else stats.norm).ppf(_even(size, place))
    for other in before:
        drawn = drawn - other * float((drawn * other).mean())
    return *before, drawn / np.sqrt((drawn**2).mean())


_LENGTHS = 10_000
"""Where the seeds of the lengths of vectors begin, apart from those of their entries."""


def _even(size: int, seed: int) -> Array:
    """Return numbers that are spread evenly between 0 and 1, in an order of their own."""
    even: Array = (np.random.default_rng(seed).permutation(size) + 0.5) / size
    return even


def _within(tick: int) -> int:
    return max(-_MOST, min(tick, _MOST))
