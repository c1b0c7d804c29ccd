"""The set of sites with the smallest variance, against all sets."""

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcausal.pooling import minimum_variance
from tests.support.subsets import brute_force, subsets

Array = NDArray[np.float64]


def test_order_by_variance_alone_is_caught() -> None:
    """Mutant: sites in the order of variance alone."""

    def by_variance_alone(sizes: Array, variances: Array) -> float:
        order = np.argsort(variances, kind="stable")
        sums = np.cumsum(sizes[order]), np.cumsum((sizes**2 * variances)[order])
        return float((sums[1] / sums[0] ** 2).min())

    generator, sets = np.random.default_rng(0), subsets(5)
    instances = [(generator.integers(1, 50, 5).astype(float), generator.exponential(size=5)) for _ in range(200)]
    best = [float(brute_force(*each, sets) ** 2 @ each[1]) for each in instances]
    assert any(by_variance_alone(*each) > value * 1.01 for each, value in zip(instances, best, strict=True))


def test_without_a_floor_the_prefix_would_not_be_the_best() -> None:
    """Mutant: negative variances, as noise makes them. With the floor they cannot come up."""
    sizes, variances = np.array([10.0, 1.0]), np.array([-1.0, -9.0])
    best, found = brute_force(sizes, variances, subsets(2)), minimum_variance(sizes, variances)
    assert best @ (best * variances) < found @ (found * variances)
    floored = np.maximum(variances, 0.01)
    assert minimum_variance(sizes, floored) == pytest.approx(brute_force(sizes, floored, subsets(2)))


@pytest.mark.parametrize(
    ("sizes", "variances", "expected"),
    [
        ([5.0], [2.0], [1.0]),
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
        ([1.0, 3.0], [0.0, 0.0], [1.0, 0.0]),  # both sets of variance 0: the smallest
        ([1.0, 1.0], [1.0, 3.0], [1.0, 0.0]),  # a tie of sets: the smallest
        ([3.0, 1.0, 1.0], [1.0, 1.0, 100.0], [0.75, 0.25, 0.0]),
    ],
)
def test_ties_zeros_and_one_site(sizes: list[float], variances: list[float], expected: list[float]) -> None:
    assert minimum_variance(np.array(sizes), np.array(variances)) == pytest.approx(expected)


def test_a_million_sites_take_under_two_seconds() -> None:
    generator = np.random.default_rng(0)
    sizes, variances = generator.integers(10, 10_000, 10**6).astype(float), generator.exponential(size=10**6)
    start = time.process_time()
    assert minimum_variance(sizes, variances).sum() == pytest.approx(1)
    assert time.process_time() - start < 2
