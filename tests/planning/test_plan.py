import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.planning.plan import plan
from dpcausal.planning.precision import (
    epsilon_for,
    half_width,
    max_confounders,
    smallest_detectable,
    type_s_error,
    units_for,
    wrong_sign,
)
from tests.support.plans import quick_plans
from tests.support.slow import sampled

GUARANTEE = dpc.Guarantee(epsilon=1.0)


@pytest.fixture
def _quick() -> Iterator[None]:
    with quick_plans():
        yield


def schema_of(count: int) -> dpc.Schema:
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(count)]
    return dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=covariates)


def expected(n: int, count: int = 0) -> dpc.Rehearsal:
    return dpc.Rehearsal(schema_of(count), n, outcome_sd=0.2)


def width(n: int, epsilon: float) -> float:
    return half_width(dpc.DifferenceInMeans().estimate(expected(n), epsilon=epsilon))


def test_without_privacy_noise_the_smallest_effect_is_two_point_eight_standard_errors() -> None:
    effect = dpc.DifferenceInMeans().estimate(expected(2_000), epsilon=100.0)
    assert effect.standard_error is not None
    assert smallest_detectable(effect) == pytest.approx(2.80 * effect.standard_error, rel=0.01)


def test_with_laplace_noise_alone_it_is_what_quantiles_say() -> None:
    """Beyond ln 20 scales by chance once in twenty, and on one side within ln 2.5 of them in four of five."""
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema_of(0), 2_000, outcome_sd=0.0), epsilon=0.001)
    noise = max(effect.noise, key=lambda term: term.scale)
    assert effect.privacy_sd == pytest.approx(math.sqrt(noise.variance), rel=0.5)
    alone = replace(effect, sampling_sd=0.0, noise=(noise,))
    assert smallest_detectable(alone) == pytest.approx((math.log(20) + math.log(2.5)) * noise.scale, rel=0.02)


def test_wrong_sign_of_a_normal_error_is_the_textbook_s() -> None:
    effect = replace(dpc.DifferenceInMeans().estimate(expected(2_000), epsilon=1.0), noise=())
    assert effect.sampling_sd is not None
    for size in (0.0001, 0.005, 0.02):
        assert wrong_sign(effect, size) == pytest.approx(NormalDist().cdf(-size / effect.sampling_sd), abs=1e-9)
        assert wrong_sign(effect, -size) == wrong_sign(effect, size)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.0), (1.0, 0.0), (0.2, 1e-6)])
def test_wrong_sign_and_type_s_error_are_those_of_simulated_estimates(epsilon: float, delta: float) -> None:
    covariates = ["x0", "x1", "x2"]
    effect = dpc.RegressionAdjustment(covariates=covariates).estimate(
        dpc.Rehearsal(schema_of(3), 20_000, outcome_sd=0.2), epsilon=epsilon, delta=delta
    )
    effect = replace(effect, bias_bound=0.0)
    assert effect.standard_error is not None
    assert effect.sampling_sd is not None
    size = 0.8 * effect.standard_error
    generator = np.random.default_rng(1)
    estimates = size + generator.normal(0, effect.sampling_sd, 200_000)
    for term in effect.noise:
        draw = generator.laplace if term.family == "laplace" else generator.normal
        estimates += draw(0, term.scale / term.parts**0.5, (int(term.parts), 200_000)).sum(axis=0)
    assert wrong_sign(effect, size) == pytest.approx((estimates <= 0).mean(), abs=0.004)
    seen = estimates[np.abs(estimates) > half_width(effect)]
    assert type_s_error(effect, size) == pytest.approx((seen <= 0).mean(), abs=0.015)


def test_a_bias_bound_makes_a_wrong_sign_likelier() -> None:
    effect = dpc.DifferenceInMeans().estimate(expected(2_000), epsilon=1.0)
    biased = replace(effect, bias_bound=0.01)
    assert wrong_sign(biased, 0.02) == pytest.approx(wrong_sign(effect, 0.01))


def test_a_wrong_sign_needs_known_errors_and_an_effect() -> None:
    drowned = dpc.RegressionAdjustment(covariates=["x0", "x1"]).estimate(expected(1_000, 2), epsilon=0.02)
    with pytest.raises(dpc.DpcausalError, match="a plan with an interval"):
        wrong_sign(drowned, 0.1)
    effect = dpc.DifferenceInMeans().estimate(expected(2_000), epsilon=1.0)
    for size in (0, math.nan, "0.1"):
        with pytest.raises(dpc.DpcausalError, match="the size of an effect"):
            wrong_sign(effect, size)  # type: ignore[arg-type]


def test_the_epsilon_that_is_needed_is_enough_and_a_little_less_is_not() -> None:
    needed = epsilon_for(0.05, dpc.DifferenceInMeans(), expected(500), 0.0)
    assert needed is not None
    assert width(500, needed) <= 0.05 < width(500, needed * 0.98)


def test_no_epsilon_makes_up_for_too_few_units() -> None:
    assert epsilon_for(0.01, dpc.DifferenceInMeans(), expected(500), 0.0) is None


def test_the_units_that_are_needed_are_enough_and_a_few_less_are_not() -> None:
    needed = units_for(0.02, dpc.DifferenceInMeans(), expected(500), GUARANTEE)
    assert needed is not None
    assert width(needed, 1.0) <= 0.02 < width(int(needed * 0.995), 1.0)


def test_nothing_reaches_a_width_of_next_to_nothing() -> None:
    assert units_for(1e-9, dpc.DifferenceInMeans(), expected(500), GUARANTEE) is None


def test_a_regression_on_as_many_as_are_carried_has_less_noise_than_sampling_error() -> None:
    carried = max_confounders(expected(20_000), GUARANTEE)
    assert 0 < carried < 30
    for count, carries in ((carried, True), (carried + 1, False)):
        names = [f"x{place}" for place in range(count)]
        effect = dpc.RegressionAdjustment(covariates=names).estimate(expected(20_000, count), epsilon=1.0)
        assert (effect.privacy_sd < (effect.sampling_sd or 0.0)) is carries


def test_few_units_carry_none() -> None:
    made = plan(dpc.DifferenceInMeans(), expected(60), GUARANTEE, covariates=[])
    assert made.max_confounders == 0
    assert "a regression on any numeric confounder has more privacy noise" in str(made)


def test_a_plan_prints_what_a_person_asks() -> None:
    text = str(plan(dpc.DifferenceInMeans(), expected(500), GUARANTEE, covariates=[], width=0.03))
    for words in (
        "Plan (no data read, nothing spent): effect of t=1 against t=0 on y",
        "arm_moments: epsilon 1, delta 0",
        "expect the estimate ±",
        "sampling alone would give ±",
        "with 80 % power",
        "for ± 0.03        no epsilon is enough with 500 units; or",
        "Estimators by expected error",
    ):
        assert words in text, words


def test_where_there_would_be_no_interval_it_says_what_one_takes() -> None:
    made = plan(dpc.RegressionAdjustment(covariates=["x0", "x1"]), expected(1_000, 2), dpc.Guarantee(epsilon=0.02))
    assert math.isinf(made.half_width)
    assert made.epsilon_needed is not None
    assert made.epsilon_needed > 0.02
    assert made.units_needed is not None
    assert made.units_needed > 1_000
    assert "for an interval" in str(made)
    document = json.loads(made.to_json())
    assert (document["half_width"], document["smallest_detectable"], document["target_width"]) == (None, None, None)
    assert document["no_interval"]
    assert document["refused_share"] == made.refusals / 40 > 0.5


@pytest.mark.usefixtures("_quick")
def test_an_outcome_whose_spread_is_unknown_is_said_to_be() -> None:
    unknown = plan(dpc.DifferenceInMeans(), dpc.Rehearsal(schema_of(0), 500), GUARANTEE, covariates=[])
    assert "no standard deviation was given" in str(unknown)
    assert "no standard deviation was given" not in str(
        plan(dpc.DifferenceInMeans(), expected(500), GUARANTEE, covariates=[])
    )


@pytest.mark.usefixtures("_quick")
def test_the_study_is_drawn_once_among_the_estimators_that_fit() -> None:
    curves = plan(dpc.RegressionAdjustment(covariates=("x0", "x1")), expected(20_000, 2), GUARANTEE).widths()
    assert "this study" in curves
    assert "doubly robust, of x0, x1" in curves
    assert not {"regression on x0, x1", "difference in means"} & set(curves)
    for curve in curves.values():
        epsilons, halves = zip(*curve, strict=True)
        assert list(epsilons) == sorted(epsilons)
        assert halves[0] > halves[-1]


@pytest.mark.usefixtures("_quick")
def test_a_study_that_does_not_adjust_is_said_to_be_not_ranked() -> None:
    made = plan(dpc.DifferenceInMeans(), expected(20_000, 2), GUARANTEE)
    assert "this study is not ranked: not adjusted" in " ".join(str(made).split())
    assert not isinstance(made.ranking.best, dpc.DifferenceInMeans)


@pytest.mark.usefixtures("_quick")
def test_a_study_of_the_overlap_population_hears_what_is_narrower_there() -> None:
    weighting, both = (
        kind(covariates=["x0", "x1"], estimand="ATO") for kind in (dpc.InverseWeighting, dpc.DoublyRobust)
    )
    texts = [" ".join(str(plan(each, expected(20_000, 2), GUARANTEE)).split()) for each in (weighting, both)]
    assert "; of that effect, doubly robust overlap weighting of x0, x1 is expected within" in texts[0]
    assert "this study is not ranked: another effect" in texts[1]
    assert "of that effect" not in texts[1]


@pytest.mark.usefixtures("_quick")
def test_the_ranking_is_about_the_confounders_that_the_study_adjusts_for() -> None:
    made = plan(dpc.RegressionAdjustment(covariates=["x0", "x1"]), expected(20_000, 3), GUARANTEE)
    ranked = next(each for each in made.ranking.candidates if isinstance(each.estimator, dpc.RegressionAdjustment))
    assert ranked.label == "regression on x0, x1"
    assert ranked.half_width == pytest.approx(made.half_width)
    assert ranked.delta == sum(receipt.delta for receipt in made.effect.receipts)


@pytest.mark.parametrize(("n", "epsilon"), sampled(itertools.product([500, 5_000], [0.02, 0.3, 3.0]), 5))
def test_refusals_width_and_what_a_target_takes_agree(epsilon: float, n: int) -> None:
    """A page must not promise a width and deny an interval, nor ask for more than it has where that is enough."""
    made = plan(dpc.DoublyRobust(covariates=["x0", "x1"]), expected(n, 2), dpc.Guarantee(epsilon=epsilon), width=0.05)
    text = " ".join(str(made).split())
    assert made.refused is (made.refusals > 20)
    if made.refused:
        assert "95 % interval none" in text or "95 % interval probably none" in text
    if made.half_width <= 0.05:
        assert made.epsilon_needed is not None
        assert made.epsilon_needed <= epsilon * 1.05
        assert made.units_needed is not None
        assert made.units_needed <= n * 1.01


@pytest.mark.usefixtures("_quick")
def test_it_says_what_poor_overlap_would_cost_where_no_overlap_is_given() -> None:
    adjusted, source = dpc.DoublyRobust(covariates=[f"x{place}" for place in range(8)]), expected(20_000, 8)
    guarantee = dpc.Guarantee(epsilon=1.0, delta=1e-6)
    made = plan(adjusted, source, guarantee)
    poor = plan(adjusted, replace(source, overlap=0.5), guarantee)
    assert made.poor_overlap == poor.half_width
    assert made.poor_overlap > 1.1 * made.half_width
    said = " ".join(str(made).split())
    assert "where propensity scores have 50% in common; 76% is expected, as none was given" in said
    assert json.loads(made.to_json())["poor_overlap"] == made.poor_overlap
    assert poor.poor_overlap is None
    assert "poor overlap" not in str(poor)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(
    ("estimator", "expects"),
    [
        (dpc.DifferenceInMeans(), {}),
        (dpc.RegressionAdjustment(covariates=["x0"]), {"confounding": 0.0}),
        (dpc.RegressionAdjustment(covariates=["x0"]), {"confounding": 0.7}),
    ],
)
def test_poor_overlap_is_none_of_a_trial_and_nothing_new_where_it_is_expected(
    estimator: Any, expects: dict[str, Any]
) -> None:
    assert plan(estimator, replace(expected(20_000, 1), **expects), GUARANTEE, by=["x0"]).poor_overlap is None


@pytest.mark.usefixtures("_quick")
def test_json_holds_what_is_printed() -> None:
    made = plan(dpc.DifferenceInMeans(), expected(500, 1), GUARANTEE, width=0.1)
    document = json.loads(made.to_json())
    assert document["half_width"] == made.half_width
    assert document["epsilon_needed"] == made.epsilon_needed
    assert document["asks"] == [{"query": "arm_moments", "epsilon": 1.0, "delta": 0.0}]
    assert document["widths"]["this study"]
    assert document["public"]["outcome_sd"] == 0.2
    assert {each["label"] for each in document["estimators"]} >= {"difference in means"}
