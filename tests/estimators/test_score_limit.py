"""The limit of augmented scores that is chosen from released models."""

import math

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.estimators.score_limit import best_limit, far_outcomes
from dpcausal.queries import AugmentedScores
from dpcausal.source import RecordingSource

EVEN = ((np.array([2.0]), np.array([0.5])),) * 2
"""Weights where every propensity is a half."""


def limit_for(sd: float, *, noise: float = 0.001, mean: float = 0.0, sampling: float = 0.0) -> float:
    outcomes = [far_outcomes(mean, sd**2, binary=False)] * 2
    return best_limit(5.0, lambda limit: math.hypot(sampling, noise * limit), EVEN, outcomes)


def test_smaller_residuals_have_a_smaller_limit() -> None:
    assert limit_for(0.2) < limit_for(0.4) <= 10


def test_a_limit_is_larger_than_usual_where_large_weights_would_cut_off_much() -> None:
    rare = ((np.array([2.0, 10.0]), np.array([0.45, 0.05])),) * 2
    outcomes = [far_outcomes(0.8, 0.15, binary=False)] * 2
    assert 5 < best_limit(5.0, lambda limit: math.hypot(0.005, 0.0005 * limit), rare, outcomes) <= 10


def test_sampling_error_leaves_less_to_gain_from_a_smaller_limit() -> None:
    assert limit_for(0.2) < limit_for(0.2, sampling=0.01)


def test_a_limit_is_never_smaller_than_a_query_takes() -> None:
    assert limit_for(0.001) == 0.5


def test_less_noise_leaves_fewer_scores_beyond() -> None:
    assert limit_for(0.2, noise=0.01) < limit_for(0.2, noise=1e-6)


def test_outcomes_near_a_bound_have_a_longer_tail() -> None:
    assert limit_for(0.1, mean=-0.9) > limit_for(0.1)


@pytest.mark.parametrize(("mean", "variance"), [(1.7, 0.1), (-1.0, 1.0), (0.0, 0.0)])
def test_absurd_moments_give_a_law_all_the_same(mean: float, variance: float) -> None:
    for far, frequent in far_outcomes(mean, variance, binary=False):
        assert np.isfinite(far).all()
        assert (far >= 0).all()
        assert (far <= 2).all()
        assert 0 < frequent.sum() < 1 + 1e-9


def test_a_binary_outcome_is_far_in_the_rarer_value() -> None:
    ((far, frequent),) = far_outcomes(-0.8, 0.3, binary=True)
    assert (float(far[0]), float(frequent[0])) == pytest.approx((1.8, 0.1))


def test_a_number_that_is_mostly_at_a_bound_keeps_its_far_values() -> None:
    """One unit in a hundred has 1, all others 0, on bounds of 0 to 1: that is a score of 4."""
    variance = 4 * 0.01 * 0.99
    assert limit_for(math.sqrt(variance), noise=0.003, mean=-0.98) >= 3.9


@pytest.mark.parametrize(("limit", "asked"), [(None, 5.0), (3.0, 3.0)])
def test_a_limit_is_chosen_where_none_is_given(limit: float | None, asked: float) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 100), covariates=[dpc.Real("x", -1, 1)])
    source = RecordingSource(dpc.Rehearsal(schema, 20_000, outcome_sd=10))
    dpc.DoublyRobust(covariates=["x"], limit=limit).estimate(source, epsilon=1.0)
    (query,) = [each.query for each in source.releases if isinstance(each.query, AugmentedScores)]
    assert query.limit == asked if limit else query.limit < asked


def test_a_limit_whose_bound_cannot_be_computed_is_not_chosen() -> None:
    outcomes = [far_outcomes(0.0, 0.04, binary=False)] * 2
    usual = best_limit(5.0, lambda limit: 0.001 * limit, EVEN, outcomes)
    other = best_limit(5.0, lambda limit: math.inf if limit == usual else 0.001 * limit, EVEN, outcomes)
    assert other != usual
