"""Noise from a seed with the vault's own laws, for experiments that can be repeated.

The stand-in of the tests rounds a continuous number. Where the scale is many integers that is the same law for all that
could be measured. Where it is one integer or less it is not: randomised response, which asks whether discrete Laplace
noise of scale 1 / epsilon is above 0, would turn 12 % of the arms at an epsilon of 2.8 in place of 6 %. Here noise is
discrete: Laplace as the difference of two geometric numbers, Gaussian by rejection (Canonne, Kamath and Steinke 2020).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpcausal.vault import noise
from tests.support.noise import Measurement, SeededNoise

Floats = NDArray[np.float64]

_LEAST, _MOST = -(2**63), 2**63 - 1


class DiscreteNoise(SeededNoise):
    """The samplers that `dpcausal.vault.noise` imports, over one generator."""

    def make_laplace(self, _: object, __: object, *, scale: float) -> Measurement:
        """Stand in for OpenDP's."""
        return lambda ticks: _added(ticks, laplace(self._random, scale, len(ticks)))

    def make_gaussian(self, _: object, __: object, *, scale: float) -> Measurement:
        """Stand in for OpenDP's."""
        return lambda ticks: _added(ticks, gaussian(self._random, scale, len(ticks)))


@contextmanager
def seeded(seed: int) -> Iterator[DiscreteNoise]:
    """Draw noise from a seed until the end of the block."""
    source = DiscreteNoise(seed)
    with mock.patch.multiple(
        noise, make_laplace=source.make_laplace, make_gaussian=source.make_gaussian, secrets=source
    ):
        yield source


def laplace(random: Generator, scale: float, count: int) -> Floats:
    """Draw whole numbers k with probability in proportion to exp(-|k| / scale).

    An exponential number of this scale, rounded down, is geometric.
    """
    one, other = np.floor(scale * random.standard_exponential((2, count)))
    drawn: Floats = one - other
    return drawn


def gaussian(random: Generator, scale: float, count: int) -> Floats:
    """Draw whole numbers k with probability in proportion to exp(-k² / (2 scale²))."""
    wide = np.floor(scale) + 1
    found = np.empty(count)
    left = np.arange(count)
    while len(left):
        proposed = laplace(random, wide, len(left))
        kept = random.random(len(left)) < np.exp(-((np.abs(proposed) / scale - scale / wide) ** 2) / 2)
        found[left[kept]] = proposed[kept]
        left = left[~kept]
    return found


def _added(ticks: Sequence[int], drawn: Floats) -> list[int]:
    return [max(_LEAST, min(tick + int(each), _MOST)) for tick, each in zip(ticks, drawn.tolist(), strict=True)]
