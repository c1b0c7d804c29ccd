"""Measures and tests that follow from an effect and its arms' means."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect, Estimator
from dpcausal.results.effect_measures import number_needed_to_treat, odds_ratio, p_value, ratio_of_means
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from tests.statistics.law import probability_within

APART = ((1e-4, 0.0), (0.0, 4e-4))


@pytest.fixture
def risks() -> JointEstimate:
    return JointEstimate(("control", "treated"), (0.2, 0.3), APART, ())


def test_ratio_is_fiellers(risks: JointEstimate) -> None:
    found = ratio_of_means(risks, 0.95, "risk ratio")
    times = stats.norm.ppf(0.975)
    assert found.estimate == pytest.approx(1.5)
    for ratio in (found.low, found.high):
        error = math.sqrt(APART[1][1] + ratio**2 * APART[0][0])
        assert abs(0.3 - ratio * 0.2) == pytest.approx(times * error, rel=0.02)


def test_ratio_is_refused_where_the_control_mean_may_be_0(risks: JointEstimate) -> None:
    with pytest.raises(RefusedError, match="distinguishable from 0"):
        ratio_of_means(replace(risks, values=(0.015, 0.3)), 0.95, "risk ratio")


def test_odds_ratio_is_symmetric_on_the_log_scale(risks: JointEstimate) -> None:
    found = odds_ratio(risks, 0.95)
    assert found.estimate == pytest.approx((0.3 / 0.7) / (0.2 / 0.8))
    assert found.low * found.high == pytest.approx(found.estimate**2)
    error = math.sqrt(1e-4 / (0.2 * 0.8) ** 2 + 4e-4 / (0.3 * 0.7) ** 2)
    assert math.log(found.high / found.estimate) == pytest.approx(stats.norm.ppf(0.975) * error, rel=0.02)


def test_odds_ratio_is_refused_for_a_risk_near_0(risks: JointEstimate) -> None:
    with pytest.raises(RefusedError, match="away from 0 and 1"):
        odds_ratio(replace(risks, values=(0.2, 0.01)), 0.95)


def test_number_needed_to_treat_goes_through_infinity_where_the_interval_contains_0() -> None:
    assert number_needed_to_treat(0.1, (-0.1, 0.3), 0.95).high == math.inf
    assert str(number_needed_to_treat(0.1, (-0.1, 0.3), 0.95)).endswith("(95 % interval -∞ to ∞)")
    found = number_needed_to_treat(-0.1, (-0.2, -0.05), 0.95)
    assert (found.low, found.high) == pytest.approx((-20.0, -5.0))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_p_value_without_noise_is_the_normal_one(alternative: str) -> None:
    z = {"two-sided": 2 * stats.norm.sf(1.3), "greater": stats.norm.sf(1.3), "less": stats.norm.cdf(1.3)}
    assert p_value(1.3, 1.0, (), alternative) == pytest.approx(z[alternative], abs=1e-6)  # type: ignore[arg-type]


def test_p_value_agrees_with_the_interval() -> None:
    noise = (NoiseTerm("laplace", 0.7),)
    effect_error = math.hypot(1.0, 0.7 * 2**0.5)
    assert p_value(1.96 * effect_error, 1.0, noise, "two-sided") == pytest.approx(0.05, abs=0.01)
    assert p_value(1.0, 1.0, noise, "two-sided", bias=0.5) > p_value(1.0, 1.0, noise, "two-sided")


def test_every_noise_term_moves_both_means_as_it_moves_their_difference(made_binary: Callable[..., Effect]) -> None:
    for estimator in (
        dpc.DifferenceInMeans(),
        dpc.RegressionAdjustment(covariates=["age"]),
        dpc.InverseWeighting(covariates=["age"]),
        dpc.DoublyRobust(covariates=["age"]),
    ):
        effect = made_binary(estimator)
        means = effect.arm_means
        assert means is not None
        assert means.values[1] - means.values[0] == pytest.approx(effect.estimate)
        assert means.sampling_sd((-1, 1)) == pytest.approx(effect.sampling_sd)
        noise = sum(term.variance for term in means.noise_along((-1, 1)))
        assert noise**0.5 == pytest.approx(effect.privacy_sd)


@pytest.fixture
def made_binary() -> Callable[..., Effect]:
    generator = np.random.default_rng(1)
    treated = generator.random(4_000) < 0.3
    columns = {
        "arm": treated.astype(int),
        "died": (generator.random(4_000) < np.where(treated, 0.1, 0.2)).astype(int),
        "age": generator.uniform(20, 80, 4_000),
    }
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm"), outcome=dpc.Binary("died"), covariates=[dpc.Real("age", 20, 80)]
    )
    vault = dpc.Vault(pa.table(columns), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))

    def make(estimator: Estimator | None = None) -> Effect:
        return (estimator or dpc.DifferenceInMeans()).estimate(vault, epsilon=2.0)

    return make


def test_effect_derives_measures_and_tests(made_binary: Callable[..., Effect]) -> None:
    effect = made_binary()
    ratio = effect.risk_ratio()
    assert ratio.low < 0.5 < ratio.high < 1
    lift = effect.relative_lift()
    assert lift.estimate == pytest.approx(ratio.estimate - 1)
    assert effect.odds_ratio().estimate < ratio.estimate
    assert effect.p_value() < 0.001
    assert effect.superiority(lower_is_better=True).succeeds
    assert not effect.superiority().succeeds
    assert effect.non_inferiority(0.01, lower_is_better=True).succeeds
    assert not effect.equivalence(0.02).succeeds
    assert effect.equivalence(0.5).succeeds
    assert Effect.from_json(effect.to_json()) == effect


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_limits_of_ratios_and_lifts_hold_at_the_level_that_is_asked_for(
    made_binary: Callable[..., Effect], level: float
) -> None:
    effect = made_binary()
    means = effect.compared_means()
    for measure, shift in ((effect.risk_ratio(level), 0.0), (effect.relative_lift(level), 1.0)):
        for ratio in (measure.low + shift, measure.high + shift):
            along, apart = (-ratio, 1.0), means.values[1] - ratio * means.values[0]
            held = probability_within(abs(apart), means.sampling_sd(along), means.noise_along(along))
            assert held == pytest.approx(level, abs=0.01)


def test_effect_without_means_says_which_estimators_have_them(made_binary: Callable[..., Effect]) -> None:
    with pytest.raises(
        RefusedError, match=r"means of its arms[\s\S]*in place of Stratification[\s\S]*ArmContrasts\(by="
    ):
        replace(made_binary(), arm_means=None).risk_ratio()


def test_joint_noise_is_shared() -> None:
    noise = (JointNoise("laplace", (1.0, 1.0)),)
    shared = JointEstimate(("a", "b"), (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)), noise)
    assert shared.standard_error((-1, 1)) == 0
    assert shared.simultaneous(0.95) == pytest.approx(math.log(20) / 2**0.5, rel=0.05)
    ends = shared.mapped(["sum"], lambda both: [both[0] + both[1]])
    assert ends.covariance[0, 0] == pytest.approx(8.0)
