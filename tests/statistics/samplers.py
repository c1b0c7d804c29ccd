"""Samplers whose draws are chosen: none, one coordinate at a time, and pairs of opposite draws from a seed.

A source takes one of these in the place of the vault's sampler, so that nothing about an estimator's inside is assumed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from scipy import stats

from dpcausal.arrays import Array, Int64s
from dpcausal.calibration import Noise
from dpcausal.release import Noisy
from dpcausal.vault.noise import Sampler

_MOST = 2**62


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

    def laplace(self, ticks: Sequence[int], scale: float) -> list[int]:  # noqa: ARG002 (as the vault's)
        """Return the integers."""
        return list(ticks)

    def randomised_response(self, answers: Sequence[int], epsilon: Fraction) -> list[int]:  # noqa: ARG002 (as the vault's)
        """Return the answers."""
        return list(answers)

    def shuffle(self, size: int) -> Int64s:
        """Return the numbers in order."""
        return np.arange(size)

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
            step = sds[at] / 4 if family == "cube" else max(float(round(sds[at] / 4)), 1.0)
            moves[at], self.moved = step, step / sds[at]
        return moves


class Opposite(Undrawn):
    """A sampler whose draws are one of so many pairs: with sign -1 the opposite of those with sign 1.

    Over all pairs everything linear in the noise has a mean of exactly 0, and every coordinate has exactly its standard
    deviation, because its draws are spread evenly over its distribution (a Latin hypercube). So few pairs show a bias
    and a wrong size of the noise.
    """

    def __init__(self, pair: int, sign: int, pairs: int) -> None:
        super().__init__()
        self._pair, self._sign, self._pairs = pair, sign, pairs

    def _moves(self, sds: Sequence[float], family: str) -> Sequence[float]:
        first, size = len(self.sds), len(sds)
        self.sds += sds
        if family == "cube":
            length = _spread("gamma", first + _LENGTHS, self._pairs, size + 1.0)[self._pair]
            units = [length * _spread("uniform", first + at, self._pairs)[self._pair] for at in range(size)]
        else:
            units = [_spread(family, first + at, self._pairs)[self._pair] for at in range(size)]
        return [self._sign * sd * unit for sd, unit in zip(sds, units, strict=True)]


_LENGTHS = 10_000
"""Where the places of the lengths of vectors begin, apart from those of their entries."""


@cache
def _spread(family: str, place: int, size: int, shape: float = 1.0) -> Array:
    """Return draws spread evenly over a distribution, with a mean square of 1, in an order of their own."""
    even = (np.random.default_rng(place).permutation(size) + 0.5) / size
    if family == "uniform":
        drawn = 2 * even - 1
    elif family == "gamma":
        drawn = stats.gamma.ppf(even, shape)
    else:
        drawn = (stats.laplace if family == "laplace" else stats.norm).ppf(even)
    spread: Array = drawn / np.sqrt((drawn**2).mean())
    return spread


def _within(tick: int) -> int:
    return max(-_MOST, min(tick, _MOST))
