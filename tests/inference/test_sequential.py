"""Interim looks: critical values are those of the textbooks, and fresh noise is accounted for."""

from dataclasses import replace

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.inference.sequential import correlations, critical_values, spent_alpha
from dpcausal.uncertainty.interval import NoiseTerm

SHARES = np.arange(1, 6) / 5
INCREMENTS = np.sqrt(np.minimum.outer(SHARES, SHARES) / np.maximum.outer(SHARES, SHARES))
SCHEMA = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real("y", 0, 1))


def growing(noise: float) -> list[dpc.Effect]:
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    return [
        replace(plan, n=int(1000 * share), sampling_sd=share**-0.5, noise=(NoiseTerm("gaussian", noise / share),))
        for share in SHARES
    ]


@pytest.mark.parametrize(
    ("spending", "textbook"),
    [("obrien_fleming", [4.877, 3.357, 2.680, 2.290, 2.031]), ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386])],
)
def test_critical_values_without_noise_are_those_of_lan_and_demets(spending: str, textbook: list[float]) -> None:
    found = critical_values(INCREMENTS, spent_alpha(SHARES, 0.05, spending))  # type: ignore[arg-type]
    assert found == pytest.approx(textbook, abs=0.02)


def test_fresh_noise_makes_looks_less_alike() -> None:
    assert correlations(growing(0.0)) == pytest.approx(INCREMENTS)
    noisy = correlations(growing(0.5))
    assert (noisy[np.triu_indices(5, 1)] < INCREMENTS[np.triu_indices(5, 1)]).all()
    spent = spent_alpha(SHARES, 0.05, "pocock")
    assert critical_values(noisy, spent)[-1] > critical_values(INCREMENTS, spent)[-1]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_false_claims_over_all_looks_are_alpha(noise: float) -> None:
    """Paths with fresh noise at each look, and the mutant that takes noise for sampling error."""
    random = np.random.default_rng(1)
    runs, effects = 40_000, growing(noise)
    paths = np.cumsum(random.normal(0, 0.2**0.5, (runs, 5)), axis=1) / SHARES
    errors = paths + random.normal(0, 1, (runs, 5)) * noise / SHARES
    z = np.abs(errors / np.array([effect.standard_error for effect in effects]))
    spent = spent_alpha(SHARES, 0.05, "pocock")
    assert (z > critical_values(correlations(effects), spent)).any(axis=1).mean() == pytest.approx(0.05, abs=0.005)
    unadjusted = (z > 1.96).any(axis=1).mean()
    assert unadjusted > 0.12


def test_looks_say_when_to_stop() -> None:
    effects = [replace(effect, estimate=6.0) for effect in growing(0.1)]
    looks = dpc.sequential_looks(effects[:3], planned_n=1000)
    assert [look.stops for look in looks] == [False, True, True]
    assert [look.fraction for look in looks] == [0.2, 0.4, 0.6]
    assert "go on" in str(looks[0])
    assert looks[0].interval[0] < 0 < looks[2].interval[0]


def test_looks_out_of_order_are_refused() -> None:
    effects = growing(0.1)
    for given, planned in ((effects[::-1], 1000), (effects, 900), ([], 1000)):
        with pytest.raises(RefusedError):
            dpc.sequential_looks(given, planned_n=planned)


def test_correlated_noise_of_a_schedule_makes_looks_more_alike() -> None:
    effects = growing(0.5)
    fresh, alike = correlations(effects), correlations(effects, np.full((7, 7), 0.5) + 0.5 * np.eye(7))
    above = np.triu_indices(5, 1)
    assert (alike[above] > fresh[above]).all()
    assert np.diag(alike) == pytest.approx(1)


def test_early_looks_out_of_many_have_next_to_nothing_to_spend() -> None:
    effects = [replace(effect, n=effect.n // 20) for effect in growing(0.1)]
    looks = dpc.sequential_looks(effects, planned_n=1000)
    assert looks[0].level < 1e-12
    assert looks[0].interval[1] - looks[0].interval[0] > 10
