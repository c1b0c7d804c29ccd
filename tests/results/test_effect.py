import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.inference import EffectFamily, anytime_interval, sequential_looks
from dpcausal.report.verdict import verdict_on
from dpcausal.uncertainty import interval
from dpcausal.uncertainty.interval import NoiseTerm, half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.text import format_number


@pytest.fixture
def effect(vault: dpc.Vault) -> dpc.Effect:
    return dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)


def test_an_effect_prints_what_a_clinician_needs(effect: dpc.Effect) -> None:
    text = str(effect)
    assert text.startswith("Effect of training against usual care on score\n")
    for label in ("estimand", "estimate", "95 % interval", "standard error", "units", "privacy", "assumes", "paid"):
        assert f"\n{label}" in text
    assert max(map(len, text.splitlines())) <= 100


def test_html_shows_the_same_and_escapes(effect: dpc.Effect) -> None:
    hostile = dataclasses.replace(effect, outcome="<script>alert(1)</script>")
    assert "<script>" not in hostile._repr_html_()
    assert format_number(effect.estimate) in effect._repr_html_()


def test_json_is_lossless(effect: dpc.Effect) -> None:
    assert dpc.Effect.from_json(effect.to_json()) == effect
    assert json.loads(effect.to_json())["estimate"] == effect.estimate


def test_an_interval_is_computed_once_for_text_verdict_and_figures(effect: dpc.Effect) -> None:
    interval._half_width.cache_clear()
    low, high = effect.interval()
    str(effect)
    effect._repr_html_()
    verdict_on(effect, effect.interval())
    assert interval._half_width.cache_info().misses == 2  # the interval, and in the figure its part without noise
    assert (low, high) == effect.interval(0.95)


def test_effects_are_frozen(effect: dpc.Effect) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        effect.estimate = 0.0  # type: ignore[misc]


def test_an_interval_is_the_same_every_time_and_grows_with_its_level(effect: dpc.Effect) -> None:
    assert effect.interval(0.95) == effect.interval(0.95)
    assert effect.interval(0.5)[1] < effect.interval(0.95)[1] < effect.interval(0.99)[1]


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, "95%", "0.95"])
def test_a_level_that_is_none_is_refused(effect: dpc.Effect, level: object) -> None:
    with pytest.raises(RefusedError, match=r"for a 95 % interval give 0\.95"):
        effect.interval(level)  # type: ignore[arg-type]


def _with_contrasts(effect: dpc.Effect) -> dpc.Effect:
    joint = JointEstimate(effect.arms, (0.3, 0.4), ((0.001, 0.0), (0.0, 0.001)), ())
    return dataclasses.replace(effect, arm_means=joint)


@pytest.mark.parametrize(
    "ask",
    [
        lambda effect, level: effect.interval(level),
        lambda effect, level: effect.risk_ratio(level),
        lambda effect, level: effect.relative_lift(level),
        lambda effect, level: effect.odds_ratio(level),
        lambda effect, level: replace(effect, is_risk_difference=True).number_needed_to_treat(level),
        lambda effect, level: effect.arm_means.intervals(level),
        lambda effect, level: effect.arm_means.interval(effect.arms[0], level),
        lambda effect, level: EffectFamily({"score": effect}).intervals(level),
        lambda effect, level: dpc.tidy(effect, level=level),
    ],
)
def test_error_probability_as_a_level_is_refused_everywhere(
    effect: dpc.Effect, ask: Callable[[dpc.Effect, float], object]
) -> None:
    ask(_with_contrasts(effect), 0.5)
    with pytest.raises(RefusedError, match=r"for a 95 % interval give 0\.95"):
        ask(_with_contrasts(effect), 0.05)


@pytest.mark.parametrize(
    "ask",
    [
        lambda effect, alpha: effect.superiority(alpha=alpha),
        lambda effect, alpha: effect.non_inferiority(0.1, alpha=alpha),
        lambda effect, alpha: effect.equivalence(0.1, alpha=alpha),
        lambda effect, alpha: EffectFamily({"score": effect}).claims(alpha),
        lambda effect, alpha: anytime_interval(effect, look=1, tuned_n=effect.n, alpha=alpha),
        lambda effect, alpha: sequential_looks([effect], planned_n=effect.n, alpha=alpha),
    ],
)
def test_level_as_an_error_probability_is_refused_everywhere(
    effect: dpc.Effect, ask: Callable[[dpc.Effect, float], object]
) -> None:
    ask(effect, 0.05)
    with pytest.raises(RefusedError, match=r"for 95 % confidence give 0\.05"):
        ask(effect, 0.95)


def test_effect_explains_the_ratio_of_its_errors(effect: dpc.Effect) -> None:
    assert "\nreading" not in str(dataclasses.replace(effect, sampling_sd=1.0))
    assert "privacy noise exceeds" in str(dataclasses.replace(effect, sampling_sd=1e-3))
    assert "the sampling error is below the noise floor" in str(dataclasses.replace(effect, sampling_sd=0.0))


def test_effect_states_how_missing_values_count(effect: dpc.Effect) -> None:
    assert "a missing or undeclared arm counted as usual care" in effect.assumptions
    assert (
        "outside the comparison: units whose outcome is missing or no number; "
        "numbers in text were read as in 1,234.5 or 1234,5" in effect.assumptions
    )
    assert "outcomes lie within 0 and 10; values beyond were moved to the bound" in effect.assumptions
    assert "training: " in str(effect)


def test_refused_interval_gives_its_reason(effect: dpc.Effect) -> None:
    refused = dataclasses.replace(effect, no_interval="the estimator is biased")
    assert "none: the estimator is biased" in str(refused)
    with pytest.raises(RefusedError, match="the estimator is biased"):
        refused.interval()


def test_half_widths_against_known_quantiles() -> None:
    assert half_width(2.0, [], 0.95) == pytest.approx(2 * 1.95996, rel=0.01)
    assert half_width(0.0, [NoiseTerm("laplace", 3.0)], 0.95) == pytest.approx(3 * math.log(20), rel=0.01)
    assert half_width(3.0, [NoiseTerm("gaussian", 4.0)], 0.95) == pytest.approx(5 * 1.95996, rel=0.01)


def test_effect_separates_sampling_error_and_privacy_noise(effect: dpc.Effect) -> None:
    assert effect.sampling_sd == pytest.approx(1.5 * math.sqrt(4 / 1000), rel=0.5)
    # Two totals with Laplace noise of scale 1.5 * 10 over arms of about 500, and a little from the noisy size.
    assert 0.9 * 0.06 < effect.privacy_sd < 1.3 * 0.06


@pytest.mark.parametrize(
    ("value", "text"), [(0.00001234, "0.00001234"), (-1.5, "-1.500"), (123456.7, "123,457"), (1e15, "1.000e+15")]
)
def test_numbers_have_four_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text
