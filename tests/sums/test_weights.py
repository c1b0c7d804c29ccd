"""Chosen weights are the best there are for the moves of drawn units, and these are moves of neighbours."""

from typing import get_args

import numpy as np
import pytest

from dpcausal.sums.certificates import POWERS, Norm
from dpcausal.sums.sensitivity import sensitivity_bound
from dpcausal.sums.weights import best_weights, drawn_moves
from tests.sums.random_descriptions import drawn


@pytest.mark.parametrize("norm", get_args(Norm))
def test_no_other_weights_are_better(norm: Norm) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved, variances = rng.exponential(size=(30, 4)) ** 2, rng.exponential(size=4) + 0.5
        power, best = POWERS[norm], best_weights(moved, variances, norm)
        assert (moved / best**power).sum(axis=1).max() == pytest.approx(1.0)
        others = best * np.exp(rng.normal(0, 0.3, (2_000, 4)))
        reach = (moved[:, None] / others**power).sum(axis=2).max(axis=0) ** (1 / power)
        assert (variances * (others * reach[:, None]) ** 2).sum(axis=1).min() > 0.99 * variances @ best**2


def test_a_sum_that_is_not_used_keeps_some_accuracy() -> None:
    moved = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    used, unused = best_weights(moved, [1.0, 0.0], "l1")
    assert 1 < used < 1.3
    assert unused < 10


def test_drawn_moves_are_moves_of_neighbours_and_some_come_near_the_bound() -> None:
    """The bound is for all neighbours. Where drawn ones went beyond, one of the two would be wrong."""
    near = 0
    for seed in range(60):
        case = drawn(seed)
        bound, power = float(sensitivity_bound(case.description, case.domain, case.norm).bound), POWERS[case.norm]
        weights = np.array([float(weight) for weight in case.description.weights.values()])
        moved = drawn_moves(case.description, case.domain, case.norm)
        most = (moved / weights**power).sum(axis=1).max() ** (1 / power)
        assert most <= bound * (1 + 1e-9), seed
        near += most >= 0.9 * bound
    assert near >= 45
