import math

import pytest

from dpcausal.report.confounding import (
    Confounding,
    e_value,
    limit_nearer_to_zero,
    robustness_value,
    sensitivity_to_confounding,
)
from dpcausal.results.effect import Effect
from tests.report.conftest import Made, interval_of


def sensitivity(effect: Effect, covariates: int = 0, *, binary: bool = False) -> Confounding | None:
    return sensitivity_to_confounding(effect, interval_of(effect), covariates, binary=binary)


def test_e_values_of_the_paper() -> None:
    # VanderWeele and Ding (2017): leukemia, risk ratio 0.80 (0.71 to 0.91).
    assert e_value(0.80) == pytest.approx(1.81, abs=0.005)
    assert e_value(0.91) == pytest.approx(1.43, abs=0.005)
    assert e_value(0.80) == pytest.approx(e_value(1 / 0.80))
    assert e_value(1.0) == 1.0


@pytest.mark.parametrize("f", [0.01, 0.3, 1.0, 4.0])
def test_a_confounder_as_strong_as_the_robustness_value_explains_all(f: float) -> None:
    # Cinelli and Hazlett (2020), equation 14: the bias is se * root df * R² / root(1 - R²) where both shares are R².
    share = robustness_value(f)
    assert share / math.sqrt(1 - share) == pytest.approx(f)


def test_standard_deviation_is_the_one_of_equal_arms(made: Made) -> None:
    error = 1.0 * math.sqrt(4 / 1_000)  # that of arms of 500 with a standard deviation of 1
    effect = made(estimate=0.5, sampling_sd=error, noise=())
    found = sensitivity(effect)
    assert found is not None
    assert found.e_value is not None
    assert found.e_value_limit is not None
    assert found.e_value == pytest.approx(e_value(math.exp(0.91 * 0.5)))
    low, _ = effect.interval()
    assert found.e_value_limit == pytest.approx(e_value(math.exp(0.91 * low)))
    assert found.robustness == pytest.approx(robustness_value(0.5 / error / math.sqrt(998)))
    assert 1 < found.e_value_limit < found.e_value
    assert 0 < found.robustness_limit < found.robustness


def test_privacy_noise_weakens_the_limit_only(made: Made) -> None:
    noisy, quiet = (
        sensitivity(made(), covariates=2),
        sensitivity(made(noise=()), covariates=2),
    )
    assert noisy is not None
    assert quiet is not None
    assert noisy.e_value == quiet.e_value
    assert noisy.e_value_limit is not None
    assert quiet.e_value_limit is not None
    assert noisy.e_value_limit < quiet.e_value_limit


def test_e_value_of_a_binary_outcome_uses_the_noisy_risks(made: Made) -> None:
    effect = made(estimate=0.2, sampling_sd=0.03, noise=(), risks=(0.2, 0.4))
    found = sensitivity(effect, binary=True)
    assert found is not None
    assert found.e_value == pytest.approx(e_value(2.0))
    assert found.e_value_limit == pytest.approx(e_value(effect.risk_ratio().low))
    assert found.scale.startswith("risk ratio of the two noisy risks")


@pytest.mark.parametrize("risks", [None, (0.0, 0.4), (-0.1, 0.4), (0.2, 1.3)])
def test_binary_outcome_without_both_risks_has_no_e_value(made: Made, risks: tuple[float, float] | None) -> None:
    found = sensitivity(made(risks=risks), binary=True)
    assert found is not None
    assert (found.e_value, found.e_value_limit) == (None, None)
    assert found.scale.startswith("no E-value: it needs a risk ratio")
    assert 0 < found.robustness_limit < found.robustness


def test_e_value_ignores_means_of_a_numeric_outcome(made: Made) -> None:
    found = sensitivity(made(risks=(0.2, 0.4)))
    assert found is not None
    assert found.converted
    assert found.scale.startswith("an approximation: standardised mean difference")


def test_limit_is_neutral_if_the_interval_contains_0(made: Made) -> None:
    found = sensitivity(made(estimate=0.1))
    assert found is not None
    assert (found.e_value_limit, found.robustness_limit) == (1.0, 0.0)
    assert limit_nearer_to_zero((-3.0, -1.0)) == -1.0


@pytest.mark.parametrize(
    "changes", [{"no_interval": "too noisy"}, {"sampling_sd": 0.0}, {"sampling_sd": None}, {"n": 2}]
)
def test_sensitivity_is_none_without_interval_or_sampling_error(made: Made, changes: dict[str, object]) -> None:
    assert sensitivity(made(**changes)) is None


def test_e_value_of_a_huge_effect_is_finite(made: Made) -> None:
    found = sensitivity(made(estimate=30.0, sampling_sd=0.01))
    assert found is not None
    assert found.e_value is not None
    assert math.isfinite(found.e_value)
