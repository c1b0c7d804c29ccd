"""The seeded noise of experiments has the laws of the vault's sampler."""

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from opendp.measurements import make_gaussian, make_laplace

from benchmarks.discrete_noise import seeded
from dpcausal.vault import noise
from dpcausal.vault.noise import Sampler
from tests.support import noise as rounded

COUNT = 10_000
FAR = 3.5 / math.sqrt(COUNT)
"""A distance between shares and probabilities that draws of the law exceed with probability 5 · 10^-11 (Kolmogorov)."""


@contextmanager
def in_production() -> Iterator[None]:
    """Draw noise as a vault does, whatever stands in for it elsewhere in these tests."""
    with mock.patch.multiple(noise, make_laplace=make_laplace, make_gaussian=make_gaussian, secrets=secrets):
        yield


def drawn(family: str, scale: float) -> NDArray[np.int64]:
    return np.array(noise._drawn([0] * COUNT, scale, family), dtype=np.int64)


def weights(family: str, scale: float, reach: int) -> NDArray[np.float64]:
    """Return the law's probabilities from -reach to reach."""
    places = np.abs(np.arange(-reach, reach + 1))
    found = np.exp(-places / scale) if family == "laplace" else np.exp(-(places**2) / (2 * scale**2))
    law: NDArray[np.float64] = found / found.sum()
    return law


def distance(values: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Return the largest difference between a share of draws up to a number and its probability."""
    reach = len(law) // 2
    counted = np.bincount(np.clip(values, -reach, reach) + reach, minlength=len(law))
    return float(np.abs(np.cumsum(counted) / len(values) - np.cumsum(law)).max())


@pytest.mark.statistical
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.36, 1.0, 3.5])
def test_seeded_noise_has_the_law_of_the_vault_s(family: str, scale: float) -> None:
    law = weights(family, scale, 60)
    with in_production():
        assert distance(drawn(family, scale), law) < FAR
    with seeded(3):
        assert distance(drawn(family, scale), law) < FAR
    if scale < 1:
        with rounded.seeded(3):
            assert distance(drawn(family, scale), law) > FAR


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.35, 1.4, 2.8])
def test_arms_are_turned_as_often_as_randomised_response_says(epsilon: float) -> None:
    def turned() -> float:
        return float(np.mean(Sampler().randomised_response([0] * COUNT, Fraction(epsilon))))

    law = 1 / (1 + math.exp(epsilon))
    apart = 6.5 * math.sqrt(law * (1 - law) / COUNT)
    with in_production():
        assert turned() == pytest.approx(law, abs=apart)
    with seeded(4):
        assert turned() == pytest.approx(law, abs=apart)
    with rounded.seeded(4):  # half of exp(-epsilon / 2), which is more
        assert turned() == pytest.approx(math.exp(-epsilon / 2) / 2, abs=apart)


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_noise_of_any_size_stays_within_64_bits(family: str) -> None:
    with seeded(5):
        values = drawn(family, 2.0**62)[:100]
    assert values.dtype == np.int64
    assert np.abs(values.astype(float)).max() > 2**60
