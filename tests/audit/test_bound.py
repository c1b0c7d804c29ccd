"""Lower bounds hold as often as they say, come close to the truth, and see what two numbers share."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpcausal.audit import lower_bound
from dpcausal.audit.bound import epsilon_of_mu
from dpcausal.errors import QueryError
from dpcausal.queries.calibration import epsilon_of_gaussian

REPEATS = 200


def test_a_bound_holds_at_least_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    above = 0
    for _ in range(REPEATS):
        noise = random.laplace(size=(2, 2_000, 1))
        above += lower_bound(noise[0] + 1, noise[1], confidence=0.9).epsilon > 1
    assert stats.binomtest(above, REPEATS, 0.1, alternative="greater").pvalue > 1e-3


def test_counting_the_event_on_what_chose_it_would_not_hold() -> None:
    """The mutant: no examples held back. On equal tables it shows something nearly always."""
    random = np.random.default_rng(2)
    shown = 0
    for _ in range(REPEATS):
        one, other = random.laplace(size=(2, 200))
        thresholds = np.sort(one)[:-5]
        ratios = [(one >= at).sum() / max((other >= at).sum(), 1) for at in thresholds]
        shown += max(ratios) > 1.2
    assert shown > 0.5 * REPEATS
    held = [lower_bound(*random.laplace(size=(2, 200, 1)), confidence=0.9).epsilon for _ in range(REPEATS)]
    assert np.mean([each > 0 for each in held]) < 0.1


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_nearly_all_of_epsilon_is_seen_where_one_number_moves(size: float) -> None:
    noise = np.random.default_rng(3).laplace(size=(2, 60_000, 1))
    assert 0.85 * size < lower_bound(noise[0] + size, noise[1]).epsilon <= size


def test_moves_that_are_spread_over_several_numbers_are_added_up() -> None:
    noise = np.random.default_rng(4).laplace(size=(2, 60_000, 3))
    shown = lower_bound(noise[0] + np.array([0.5, 0.25, 0.25]), noise[1]).epsilon
    assert 0.7 < shown <= 1


def test_gaussian_noise_is_seen_through_its_own_law() -> None:
    mu, delta = 0.5, 1e-6
    noise = np.random.default_rng(5).normal(size=(2, 100_000, 2))
    moved = noise[0] + np.array([mu, 0.0])
    truth = epsilon_of_mu(mu, delta)
    assert 0.9 * truth < lower_bound(moved, noise[1], delta=delta, gaussian=True).epsilon <= truth
    assert lower_bound(moved, noise[1], delta=delta).epsilon < 0.8 * truth


def test_epsilon_of_mu_solves_its_equation_and_is_below_what_is_charged() -> None:
    for mu in (0.1, 1.0, 5.0):
        epsilon = epsilon_of_mu(mu, 1e-6)
        delta = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-6, rel=1e-6)
        assert epsilon < epsilon_of_gaussian(1 / mu, 1e-6)
    assert epsilon_of_mu(0.0, 1e-6) == epsilon_of_mu(1e-9, 1e-6) == 0.0


def test_shared_noise_is_seen_in_the_difference() -> None:
    noise = np.random.default_rng(6).laplace(size=(2, 3_000, 1))
    assert lower_bound(np.hstack([noise[0] + 1, noise[0]]), np.hstack([noise[1], noise[1]])).epsilon > 4


def test_equal_tables_show_nothing_and_numbers_that_never_move_do_no_harm() -> None:
    noise = np.random.default_rng(7).laplace(size=(2, 5_000, 2))
    noise[:, :, 1] = 3.0
    assert lower_bound(noise[0], noise[1]).epsilon == 0.0


def test_the_two_tables_may_have_different_numbers_of_runs() -> None:
    random = np.random.default_rng(8)
    assert lower_bound(random.laplace(size=(20_000, 1)), random.laplace(size=(9_000, 1))).epsilon == 0.0
    shown = lower_bound(random.laplace(1, size=(20_000, 1)), random.laplace(size=(9_000, 1))).epsilon
    assert 0.7 < shown <= 1


def test_a_score_that_is_known_to_be_best_is_used() -> None:
    """Moves spread thinly over many numbers: learned scores see little of them in so few runs, the likelihood does."""
    noise = np.random.default_rng(9).laplace(size=(2, 10_000, 20))
    one, other = noise[0] + 0.15, noise[1]

    def likelihood(transcripts: NDArray[np.float64]) -> NDArray[np.float64]:
        ratio: NDArray[np.float64] = (np.abs(transcripts) - np.abs(transcripts - 0.15)).sum(axis=1)
        return ratio

    learned, known = lower_bound(one, other).epsilon, lower_bound(one, other, known=likelihood).epsilon
    assert learned < known <= 3


def test_a_leak_that_is_rare_but_certain_is_seen() -> None:
    random = np.random.default_rng(10)
    one, other = random.laplace(size=(2, 100_000, 1))
    one[random.random(len(one)) < 0.002] += 1_000
    assert lower_bound(one, other).epsilon > 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"one": np.zeros((20, 1))},
        {"one": np.zeros(100)},
        {"one": np.zeros((100, 2))},
        {"one": np.full((100, 1), np.nan)},
        {"confidence": 99.9},
        {"delta": -0.1},
        {"gaussian": True},
    ],
)
def test_what_is_no_pair_of_samples_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="This needs"):
        lower_bound(**({"one": np.zeros((100, 1)), "other": np.zeros((100, 1))} | wrong))


def test_numbers_of_any_size_are_scored() -> None:
    huge = np.random.default_rng(11).laplace(size=(2, 3_000, 2)) * 1e307
    assert lower_bound(huge[0], huge[1]).epsilon == 0.0
