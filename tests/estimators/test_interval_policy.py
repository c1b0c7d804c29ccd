"""The rules that refuse an interval: each allows its threshold, and gives a reason beyond it."""

from collections.abc import Callable

import pytest

from dpcausal.estimators import interval_policy as policy

COVARIATES = ["age", "sex"]

RULES: dict[str, tuple[Callable[[float], str], float, str]] = {
    "noise in the size of an arm": (
        lambda noise: policy.arm_below_noise(policy.ARM_NOISE_SDS, noise),
        1.0,
        "an arm's size is below the noise",
    ),
    "clipping of an arm": (lambda share: policy.arm_clipped(share, 0.1), policy.MAX_CLIPPED, "lower clip"),
    "bias of a limit": (lambda bias: policy.limit_bias(bias, 1.0), policy.MOST_LIMIT_BIAS, "raise limit"),
    "scores that a limit cut off": (lambda share: policy.limit_cut_off(share, 4), policy.MAX_CUT_OFF, "raise limit"),
    "residual confounding": (
        lambda bias: policy.residual_confounding(bias, 1.0, COVARIATES),
        1.0,
        "residual confounding larger than the standard error",
    ),
    "noise in a score": (
        lambda noise: policy.score_drowned(noise, COVARIATES),
        policy.MAX_SCORE_NOISE_SD,
        "noise in the models",
    ),
    "width": (
        lambda width: policy.whole_range(width, (1.0, 3.0), COVARIATES),
        2.0,
        "as wide as the range of possible effects",
    ),
    "hidden variance": (
        lambda noise: policy.hidden_features([9.0, policy.MIN_RESOLUTION / noise], COVARIATES),
        1.0,
        "hides how sex varies",
    ),
}


@pytest.mark.parametrize(("rule", "threshold", "reason"), RULES.values(), ids=RULES.keys())
def test_interval_is_refused_beyond_the_threshold_only(
    rule: Callable[[float], str], threshold: float, reason: str
) -> None:
    assert rule(threshold * (1 - 1e-9)) == ""
    assert reason in rule(threshold + 1e-9)


def test_remedy_names_spelling_first_and_fewer_covariates_only_where_there_are_several() -> None:
    several, one = (policy.residual_confounding(2.0, 1.0, covariates) for covariates in (COVARIATES, ["age"]))
    assert several.index("dpcausal check") < several.index("fewer covariates") < several.index("more epsilon")
    assert "fewer covariates" not in one
