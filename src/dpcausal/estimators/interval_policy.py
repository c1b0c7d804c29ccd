"""Rules that decide whether an estimate gets an interval.

An interval is refused where bias of unknown size could exceed what the interval covers: residual confounding from noise
in a model, or scores that clipping or a limit cut off. The rules read released and public numbers only. Each function
returns the reason for a refusal, or an empty text where its rule allows the interval.
"""

from collections.abc import Mapping, Sequence

ARM_NOISE_SDS = 3.0
"""An arm is seen where its size exceeds so many standard deviations of the noise in it: in an empty arm, Gaussian noise
goes beyond in 1 of 700 runs and Laplace noise in 1 of 140."""

MAX_CUT_OFF = 0.02
"""The largest share of scores that a limit may cut off. Each loses up to the whole limit, so a larger share can bias an
estimate by more than its standard error."""

MOST_LIMIT_BIAS = 2.0
"""The largest bias that a limit on scores may seem to cause, in standard errors. Intervals allow for it, but what a
score beyond the limit loses is a guess."""

MAX_CLIPPED = 0.1
"""The largest share of an arm's weights that clipping may leave out. There the regression alone adjusts; with more, the
estimate is no longer doubly robust."""

MIN_RESOLUTION = 0.75
"""The least variance of a feature, in standard deviations of the noise in it. Below, noise hides how the feature varies
and so how far arms differ in it: it is not adjusted for, and nothing bounds the confounding that is left in."""

MIN_SPREAD_RESOLUTION = 1.5
"""The same for a number without a scale that weights are to balance: its variance decides how far the ridge of a score
is undone, and no regression of the outcome makes up for it."""

MAX_SCORE_NOISE_SD = 1.0
"""The largest standard deviation of the noise in the predictor of a propensity: a whole logit leaves little of the
score, and the first-order formula for residual confounding no longer holds."""


def arm_below_noise(size: float, noise_sd: float, what: str = "size") -> str:
    """Refuse where an arm may be nearly empty."""
    if size > ARM_NOISE_SDS * noise_sd:
        return ""
    return f"an arm's {what} is below the noise; check that the treatment's declared values are those in the table"


def arm_clipped(cut_off: float, clip: float) -> str:
    """Refuse where clipping leaves too much of a small arm's outcomes out of the weights."""
    if cut_off <= MAX_CLIPPED:
        return ""
    return f"an arm is so small that many of its propensities may be beyond {clip:g}; lower clip"


def limit_bias(bias: float, error: float) -> str:
    """Refuse where scores beyond the limit bias the estimate by more than an interval should allow for.

    Args:
        bias: The estimated bias; 0 where noise hides it.
    """
    if bias <= MOST_LIMIT_BIAS * error:
        return ""
    return "scores beyond the limit may bias the estimate by more than the interval would show; raise limit"


def limit_cut_off(share: float, limit: float) -> str:
    """Refuse where the limit cut off too large a share of the scores behind an effect curve."""
    if share <= MAX_CUT_OFF:
        return ""
    return f"the limit of {limit:g} half ranges cut off about {share:.0%} of scores; raise limit"


def residual_confounding(bias: float, error: float, covariates: Sequence[str]) -> str:
    """Refuse where noise in the models may leave more confounding than all other error."""
    return "" if bias <= error else _noise_in_models(covariates)


def score_drowned(noise_sd: float, covariates: Sequence[str]) -> str:
    """Refuse where noise drowns the propensity score behind an effect curve."""
    return "" if noise_sd <= MAX_SCORE_NOISE_SD else _noise_in_models(covariates)


def hidden_names(resolution: Sequence[float], features: Sequence[str]) -> tuple[str, ...]:
    """Return the features that noise hides: nothing bounds the confounding by them that remains in the estimate.

    Args:
        resolution: Each feature's variance in standard deviations of the noise in it.
    """
    return tuple(name for name, seen in zip(features, resolution, strict=True) if seen < MIN_RESOLUTION)


def hidden_features(resolution: Sequence[float], features: Sequence[str]) -> str:
    """Refuse where noise hides how a covariate varies; the arguments are those of `hidden_names`."""
    return hidden_covariates(hidden_names(resolution, features), features)


def not_adjusted(
    resolution: Sequence[float], covariates: Mapping[str, Sequence[str]], unread: Sequence[str]
) -> tuple[str, ...]:
    """Return the covariates that a regression may not adjust for: nothing bounds the confounding that they leave in.

    Noise hides all of their features. Where it hides one value of several, others show that the covariate is read, and
    the share of that value bounds what it can confound.

    Args:
        resolution: Each feature's variance in standard deviations of the noise in it.
        unread: The covariates of which every cell may be unreadable.
    """
    features = [name for names in covariates.values() for name in names]
    hidden = set(hidden_names(resolution, features))
    return tuple(name for name, own in covariates.items() if name in unread or hidden.issuperset(own))


def hidden_covariates(hidden: Sequence[str], features: Sequence[str]) -> str:
    """Refuse where noise hides how some covariates vary, or values of them; they are given by their names."""
    if not hidden:
        return ""
    remedy = _remedy(hidden, several=len(features) > 1)
    return f"privacy noise hides how {', '.join(hidden)} varies; declare tighter bounds, or {remedy}"


def whole_range(half_width: float, bounds: tuple[float, float], covariates: Sequence[str]) -> str:
    """Refuse where an interval would be as wide as all that an effect can be, whatever the table holds.

    Args:
        half_width: Half the width of the 95 % interval.
        bounds: The outcome's bounds; an effect lies between low - high and high - low.
    """
    if half_width < bounds[1] - bounds[0]:
        return ""
    remedy = _remedy(covariates, several=len(covariates) > 1)
    return f"privacy noise makes it as wide as the range of possible effects; {remedy}"


def _noise_in_models(covariates: Sequence[str]) -> str:
    remedy = _remedy(covariates, several=len(covariates) > 1)
    return f"noise in the models may leave residual confounding larger than the standard error; {remedy}"


def _remedy(covariates: Sequence[str], *, several: bool) -> str:
    """Return what to do about noise in a model: the likeliest mistake first, because no price corrects it."""
    fewer = "fewer covariates, " if several else ""
    return (
        f"first check that values of {', '.join(covariates)} are spelled in the table as declared (dpcausal check), "
        f"because all others count as one value; then use {fewer}more epsilon or more units"
    )
