"""Noise from a seed, for tests that are not about the noise itself.

The noise of a vault has no seed and never gets one. A test of an estimator, an interval or a report would fail now and
then by a rare draw; it draws from here instead: numbers of the same laws and sizes, the same in every run. What OpenDP
and the operating system draw is tested in tests/vault, tests/privacy and tests/audit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from dpcausal.vault import noise

Measurement = Callable[[Sequence[int]], list[int]]


class SeededNoise:
    """The samplers that `dpcausal.vault.noise` imports, over one generator."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        self.reseed()

    def reseed(self) -> None:
        """Begin anew, so that what a test draws does not depend on the tests before it."""
        self._random = np.random.default_rng(self._seed)

    def make_laplace(self, _: object, __: object, *, scale: float) -> Measurement:
        """Stand in for OpenDP's."""
        return lambda ticks: _with_noise(ticks, self._random.laplace(0.0, scale, len(ticks)))

    def make_gaussian(self, _: object, __: object, *, scale: float) -> Measurement:
        """Stand in for OpenDP's."""
        return lambda ticks: _with_noise(ticks, self._random.normal(0.0, scale, len(ticks)))

    def randbelow(self, limit: int) -> int:
        """Stand in for that of `secrets`."""
        if limit >= 2**63:
            return int.from_bytes(self._random.bytes(32)) % limit
        return int(self._random.integers(limit))

    def token_bytes(self, count: int) -> bytes:
        """Stand in for that of `secrets`."""
        return self._random.bytes(count)

    def SystemRandom(self) -> np.random.Generator:  # noqa: N802 (its name in `secrets`)
        """Stand in for that of `secrets`."""
        return self._random


@contextmanager
def seeded(seed: int = 7) -> Iterator[SeededNoise]:
    """Draw noise from a seed until the end of the block."""
    source = SeededNoise(seed)
    with mock.patch.multiple(
        noise, make_laplace=source.make_laplace, make_gaussian=source.make_gaussian, secrets=source
    ):
        yield source


@contextmanager
def made_once() -> Iterator[None]:
    """Draw noise as in production until the end of the block, from samplers of OpenDP's that are made once.

    To make one takes longer than a draw from it. A sampler holds nothing but its scale.
    """
    names = ("atom_domain", "vector_domain", "l1_distance", "l2_distance", "make_laplace", "make_gaussian")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(noise, name, _once(getattr(noise, name))))
        yield


def _once(make: Callable[..., Any]) -> Callable[..., Any]:
    made: dict[tuple[object, ...], tuple[Any, object]] = {}

    def known(*parts: object, **named: object) -> Any:
        key = (*map(id, parts), *named.items())
        if key not in made:
            made[key] = make(*parts, **named), parts  # which are held, so that their ids are not given away
        return made[key][0]

    return known


def _with_noise(ticks: Sequence[int], drawn: NDArray[np.float64]) -> list[int]:
    noisy = (tick + round(noise) for tick, noise in zip(ticks, drawn.tolist(), strict=True))
    return [max(-(2**63), min(tick, 2**63 - 1)) for tick in noisy]
