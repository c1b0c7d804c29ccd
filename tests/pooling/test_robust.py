"""The robust rule: a bounded influence of each site, and intervals that cover."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import optimize, stats

import dpcausal as dpc
from dpcausal.pooling import ROBUST_FROM, pool
from dpcausal.pooling.robust import RobustFit
from tests.pooling.test_pooling import effect
from tests.support.slow import sampled

_BEND = 1.345


def many(count: int = 6) -> dict[str, dpc.Effect]:
    """Sites around an effect of 1, with equal errors of 0.5."""
    return {f"site{place}": effect(1 + 0.3 * (-1) ** place * (place // 2 + 1) / 2) for place in range(count)}


@pytest.mark.parametrize("seed", range(5))
def test_fit_solves_hubers_equations(seed: int) -> None:
    generator = np.random.default_rng(seed)
    variances = np.exp(generator.normal(0, 1, 9))
    estimates = generator.normal(0, 3, 9)
    fit = RobustFit.of(estimates, variances)
    errors = np.sqrt(np.maximum(variances, np.median(variances)) + fit.between)

    def score(centre: float) -> float:
        return float((np.clip((estimates - centre) / errors, -_BEND, _BEND) / errors).sum())

    assert fit.estimate == pytest.approx(optimize.brentq(score, estimates.min(), estimates.max()))
    assert fit.weights @ estimates == pytest.approx(fit.estimate)
    squares = (np.clip(fit.residuals, -_BEND, _BEND) ** 2).sum()
    expected = 8 * stats.norm.expect(lambda each: min(each**2, _BEND**2))
    assert squares == pytest.approx(expected) if fit.between else squares < expected


def test_far_site_moves_the_estimate_no_further_than_a_near_one() -> None:
    """Its influence is bounded, whatever effect and precision it claims."""
    honest = pool(many(), "robust").estimate
    shifts = []
    for claim in (5.0, 30.0, 3e6):
        liar = effect(claim, n=10**9, sampling_sd=0.0, scale=1e-6)
        pooled = pool(many() | {"liar": liar}, "robust")
        shifts.append(pooled.estimate - honest)
        assert pooled.interval()[0] < 1 < pooled.interval()[1]
    assert 0 < shifts[0] < 0.25
    assert shifts[1] == pytest.approx(shifts[2], rel=1e-3)
    unbounded = pool(many() | {"liar": effect(3e6, n=10**9, sampling_sd=0.0, scale=1e-6)}, "minimum_variance")
    assert unbounded.estimate > 1e6  # the rule without a bound


@pytest.mark.parametrize(("sites", "rule"), [(ROBUST_FROM - 1, "minimum variance"), (ROBUST_FROM, "robust")])
def test_rule_is_robust_by_default_where_sites_are_many(sites: int, rule: str) -> None:
    pooled = pool(many(sites))
    assert pooled.method.startswith(f"{rule} over {sites} of {sites} sites")
    assert ("outlying sites counting less" in pooled.estimand) == (rule == "robust")
    assert pool(many(sites), "sample_size").method.startswith("sample size")


def test_errors_add_up_to_the_fitted_one() -> None:
    for times in (0.01, 10.0):  # sites agree better than their errors, or much worse
        sites = {
            site: dataclasses.replace(each, estimate=1 + times * (each.estimate - 1)) for site, each in many().items()
        }
        pooled = pool(sites, "robust")
        estimates = np.array([each.estimate for each in sites.values()])
        assert pooled.standard_error == pytest.approx(RobustFit.of(estimates, np.full(6, 0.25)).standard_error)
        assert (pooled.between_sd > 0) == (times > 1)


def test_interval_and_p_value_are_students() -> None:
    pooled = pool(many(), "robust")
    error = pooled.standard_error or 0.0
    low, high = pooled.interval(0.9)
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.95, 5) * error)
    assert pooled.p_value() == pytest.approx(2 * stats.t.sf(pooled.estimate / error, 5))
    assert pooled.p_value(high, "less") == pytest.approx(0.05)
    assert pooled.p_value(pooled.estimate) == pytest.approx(1)
    assert dpc.Effect.from_json(pooled.to_json()).interval(0.9) == (low, high)


@pytest.mark.parametrize(
    ("sites", "between", "uneven"), sampled(itertools.product([5, 12], [0.0, 1.0], [1.0, 10.0]), 3, 1)
)
def test_intervals_cover(sites: int, between: float, uneven: float) -> None:
    generator, variances = np.random.default_rng(7), np.geomspace(1 / uneven, uneven, sites)
    drawn = generator.normal(0, np.sqrt(variances + between), (600, sites))
    fits = [RobustFit.of(estimates, variances) for estimates in drawn]
    times = stats.t.ppf(0.975, sites - 1)
    covered = np.mean([abs(fit.estimate) < times * fit.standard_error for fit in fits])
    assert 0.92 < covered < 0.985
