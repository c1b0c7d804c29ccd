"""Always-valid intervals: the mixture's limit, the noise on top of it, and false claims over many looks."""

from dataclasses import replace

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.uncertainty.anytime import mixture_limit, with_noise
from dpcausal.uncertainty.interval import NoiseTerm

SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("y", 0, 1))
PLAN = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)


def test_limit_is_that_of_robbins_and_is_narrowest_where_it_was_tuned() -> None:
    assert mixture_limit(1.0, 0.05) == pytest.approx(3.035, abs=0.001)
    limits = [mixture_limit(progress, 0.05) for progress in (0.2, 0.9, 1.0, 1.1, 5.0)]
    assert min(limits) == limits[2]


@pytest.mark.parametrize(
    ("noise", "level"),
    [
        ([], 0.001),
        ([NoiseTerm("gaussian", 0.5)], 0.001),
        ([NoiseTerm("laplace", 0.3), NoiseTerm("laplace", 0.4)], 0.002),
        ([NoiseTerm("laplace", 3.0, 4), NoiseTerm("gaussian", 1.0)], 0.002),
        ([NoiseTerm("laplace", 1.0, 30)], 0.001),
    ],
)
def test_distance_with_noise_is_exceeded_as_often_as_it_says(noise: list[NoiseTerm], level: float) -> None:
    random = np.random.default_rng(0)
    sampling = random.normal(0, 1, 400_000)
    error = sampling.copy()
    for term in noise:
        for _ in range(int(term.parts) if term.family == "laplace" else 1):
            draw = random.laplace if term.family == "laplace" else random.normal
            error += draw(0, term.scale / term.parts**0.5, len(error))
    beyond = (np.abs(error) > with_noise(1.0, 3.0, noise, level)) & (np.abs(sampling) <= 3.0)
    assert 0.7 * level < beyond.mean() < 1.1 * level


def test_sampling_error_of_zero_leaves_the_noise_and_nothing_leaves_nothing() -> None:
    assert with_noise(0.0, 3.0, [NoiseTerm("laplace", 1.0)], 0.01) == pytest.approx(np.log(100), abs=0.05)
    assert with_noise(0.0, 3.0, [], 0.01) == 0.0


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_any_look_of_many_misses_seldom_and_fixed_intervals_miss_often(noise: float) -> None:
    """Fifty looks, noise afresh at each, and the mutant that takes 95 % intervals."""
    random, runs, looks = np.random.default_rng(1), 4_000, 50
    shares = np.arange(1, looks + 1) / looks
    paths = np.cumsum(random.normal(0, looks**-0.5, (runs, looks)), axis=1) / shares
    errors = paths + noise * random.laplace(0, 0.5**0.5, (runs, looks)) / shares
    halves, fixed = [], []
    for look, share in enumerate(shares, 1):
        terms = (NoiseTerm("laplace", noise * 0.5**0.5 / share),)
        effect = replace(PLAN, estimate=0.0, n=look * 100, sampling_sd=float(share**-0.5), noise=terms)
        halves.append(dpc.anytime_interval(effect, look=look, tuned_n=100 * looks)[1])
        fixed.append(1.96 * (effect.standard_error or 0.0))
    assert 0.005 < (np.abs(errors) > halves).any(axis=1).mean() <= 0.05
    assert (np.abs(errors) > fixed).any(axis=1).mean() > 0.3


def test_what_has_no_interval_is_refused() -> None:
    for effect, look in ((replace(PLAN, no_interval="because"), 1), (PLAN, 0)):
        with pytest.raises(RefusedError):
            dpc.anytime_interval(effect, look=look, tuned_n=100)
