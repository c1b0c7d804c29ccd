"""Confounding that may be left in is a bound on the bias, and every interval allows for it."""

import dataclasses
import json
from collections.abc import Callable

import pytest

import dpcausal as dpc
from dpcausal.inference import EffectFamily, anytime_interval, sequential_looks
from dpcausal.planning.left_in import confounders_of, expected_left_in
from dpcausal.pooling import RULES, pool
from dpcausal.report.verdict import verdict_on
from dpcausal.uncertainty.interval import NoiseTerm, beyond
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.text import format_number

BOUND = 0.05
LAWS = {
    "sampling error alone": (0.02, ()),
    "Laplace noise alone": (0.0, (NoiseTerm("laplace", 0.02),)),
    "both": (0.02, (NoiseTerm("laplace", 0.01), NoiseTerm("laplace", 0.005, parts=3))),
    "Gaussian noise": (0.02, (NoiseTerm("gaussian", 0.03),)),
}


@pytest.fixture
def effect() -> dpc.Effect:
    schema = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Binary("cured"))
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=4_000), epsilon=1.0)
    names, covariance = plan.arms, ((0.0002, 0.0), (0.0, 0.0002))
    return dataclasses.replace(
        plan,
        receipts=tuple(dataclasses.replace(each, digest="0" * 64) for each in plan.receipts),
        estimate=0.2,
        sampling_sd=0.02,
        noise=(NoiseTerm("laplace", 1e-4),),
        arm_means=JointEstimate(names, (0.4, 0.6), covariance, ()),
        contrasts=JointEstimate(("b", "c"), (0.1, 0.2), covariance, ()),
    )


def least_coverage(effect: dpc.Effect, level: float) -> float:
    """Return the probability that an interval covers under the worst bias within the bound, exactly."""
    half = (effect.interval(level)[1] - effect.interval(level)[0]) / 2
    sampling, noise = effect.sampling_sd or 0.0, effect.noise
    biases = [effect.left_in * step / 10 for step in range(11)]
    return min(1 - beyond(half - bias, sampling, noise) - beyond(half + bias, sampling, noise) for bias in biases)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("times", [1.0, 5.0])
def test_an_interval_covers_whatever_is_left_in_within_the_bound(effect: dpc.Effect, law: str, times: float) -> None:
    sampling, noise = LAWS[law]
    allowing = dataclasses.replace(effect, sampling_sd=sampling, noise=noise).with_left_in(0.02 * times)
    for level in (0.5, 0.95):
        assert least_coverage(allowing, level) == pytest.approx(level, abs=0.004)
        ignoring = dataclasses.replace(allowing, bias_bound=0.0)  # the mutant
        assert least_coverage(ignoring, level) < level - 0.01


Widths = Callable[[dpc.Effect], tuple[float, float]]

WIDTHS: dict[str, Widths] = {
    "interval": lambda effect: effect.interval(),
    "Student's": lambda effect: dataclasses.replace(effect, degrees_of_freedom=9).interval(),
    "ratio": lambda effect: dataclasses.replace(effect, contrasts=effect.arm_means, ratio=True).interval(),
    "risk ratio": lambda effect: _limits(effect.risk_ratio()),
    "lift": lambda effect: _limits(effect.relative_lift()),
    "odds ratio": lambda effect: _limits(effect.odds_ratio()),
    "contrasts": lambda effect: _known(effect.contrasts).intervals()[0],
    "contrast": lambda effect: _known(effect.contrasts).interval("b"),
    "arm": lambda effect: _known(effect.arm_means).interval(effect.arms[0]),
    "anytime": lambda effect: anytime_interval(effect, look=1, tuned_n=effect.n),
    "early look": lambda effect: (
        sequential_looks([dataclasses.replace(effect, n=40), effect], planned_n=4_000)[0].interval
    ),
    "family": lambda effect: next(iter(EffectFamily({"a": effect}).intervals().values())),
    "archived": lambda effect: dpc.Effect.from_json(effect.to_json()).interval(),
    **{
        f"pooled by {rule}": lambda effect, rule=rule: pool(  # type: ignore[misc]
            {site: dataclasses.replace(effect, n=effect.n + place) for place, site in enumerate("abcde")}, rule
        ).interval()
        for rule in RULES
    },
}


def _known(joint: JointEstimate | None) -> JointEstimate:
    assert joint is not None
    return joint


def _limits(measure: object) -> tuple[float, float]:
    return measure.low, measure.high  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", WIDTHS)
def test_every_interval_allows_for_what_is_left_in(effect: dpc.Effect, name: str) -> None:
    (low, high), (wide_low, wide_high) = WIDTHS[name](effect), WIDTHS[name](effect.with_left_in(BOUND))
    assert (wide_high - wide_low) - (high - low) > 1.2 * BOUND
    assert wide_low < low


def test_a_p_value_is_below_a_level_where_the_interval_excludes_the_null(effect: dpc.Effect) -> None:
    ratio = dataclasses.replace(effect, contrasts=effect.arm_means, ratio=True, estimate=2 / 3)
    for each in (effect.with_left_in(BOUND), ratio.with_left_in(BOUND)):
        low, high = each.interval()
        for null, side in ((low, "greater"), (high, "less")):
            assert each.p_value(null - 0.01 if side == "greater" else null + 0.01) < 0.05
            assert each.p_value(null + 0.01 if side == "greater" else null - 0.01) > 0.05
            assert each.p_value(null, side) < 0.055  # type: ignore[arg-type]
        assert each.p_value(each.estimate) == 1
    contrast = _known(effect.with_left_in(BOUND).contrasts)
    assert contrast.p_value("b", contrast.interval("b")[0]) == pytest.approx(0.05, abs=0.002)


def test_biases_of_sites_add_up_by_their_weights(effect: dpc.Effect) -> None:
    sites = {"a": effect.with_left_in(0.04), "b": dataclasses.replace(effect, n=12_000).with_left_in(0.02)}
    pooled = pool(sites, "sample_size")
    assert (pooled.left_in, pooled.bias_bound) == pytest.approx((0.025, 0.025))
    assert _known(pooled.arm_means).bias == pytest.approx((0.025, 0.025))
    assert pool({**sites, "c": effect}, "median").left_in == 0.04


def test_what_is_left_in_counts_once_and_beside_other_biases(effect: dpc.Effect) -> None:
    once = effect.with_bias(0.01).with_left_in(BOUND)
    assert (once.left_in, once.bias_bound) == pytest.approx((BOUND, BOUND + 0.01))
    assert once.with_left_in(BOUND) == once.with_left_in(BOUND / 2) == once
    assert once.with_left_in(2 * BOUND).bias_bound == pytest.approx(2 * BOUND + 0.01)


def test_an_effect_says_how_much_of_its_interval_is_for_confounding(effect: dpc.Effect) -> None:
    confounded = effect.with_left_in(BOUND)
    part = (confounded.interval()[1] - confounded.interval()[0] - effect.interval()[1] + effect.interval()[0]) / 2
    text = " ".join(str(confounded).split())
    assert f"of which ± {format_number(part)} for confounding that may be left in" in text
    assert "bias bound 0.05000 in either direction" in text
    assert "left in" not in str(effect)


def test_a_verdict_allows_for_what_is_left_in(effect: dpc.Effect) -> None:
    confounded = effect.with_left_in(0.3)
    assert verdict_on(effect, effect.interval()).kind == "higher"
    assert verdict_on(confounded, confounded.interval()).kind == "inconclusive"


def test_effects_archived_before_biases_were_kept_still_open(effect: dpc.Effect) -> None:
    document = json.loads(effect.to_json())
    del document["bias_bound"], document["left_in"], document["arm_means"]["bias"]
    assert dpc.Effect.from_json(json.dumps(document)) == effect


def test_confounders_that_are_declared_and_not_used_are_left_in() -> None:
    columns: list[dpc.Real | dpc.Binary] = [
        dpc.Binary("sex"),
        dpc.Real("age", 0, 1),
        dpc.Real("lab", 0, 1),
        dpc.Real("score", 0, 1),
    ]
    schema = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("y", 0, 1), covariates=columns)
    rehearsal = dpc.Rehearsal(schema, 4_000, outcome_sd=0.1, confounding=0.4)

    def left(estimator: dpc.RegressionAdjustment | dpc.Stratification | dpc.Winsorised) -> float:
        return expected_left_in(estimator, confounders_of(estimator, schema), rehearsal)

    # Those that are not used may have all of the confounding.
    assert left(dpc.RegressionAdjustment(covariates=["sex", "age"])) == pytest.approx(0.04)
    assert left(dpc.Winsorised(dpc.RegressionAdjustment(covariates=["sex", "age", "lab"]))) == pytest.approx(0.04)
    assert left(dpc.Stratification(by=["sex"])) == pytest.approx(0.04)
    assert left(dpc.RegressionAdjustment(covariates=[each.name for each in columns])) == 0
    names = [each.name for each in columns]
    regression = dpc.RegressionAdjustment(covariates=["sex", "age"])
    plan = dpc.plan(regression, rehearsal, dpc.Guarantee(epsilon=1.0), covariates=names)
    assert plan.effect.left_in == pytest.approx(0.04)
    assert "confounding left in ± 0.04000" in " ".join(str(plan).split())
    assert min(plan.widths()["this study"])[1] > 0.04
