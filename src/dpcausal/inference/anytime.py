"""Always-valid intervals for a growing table: they hold at all looks at once, however many there are and whenever."""

import math

from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.anytime import anytime_half_width
from dpcausal.uncertainty.interval import check_alpha
from dpcausal.utils.other_names import called_as


@called_as("anytime_interval(effect, look=3, tuned_n=10_000)")
def anytime_interval(
    effect: Effect, *, look: int, tuned_n: int, alpha: float = 0.05, noise_share: float = 0.2
) -> tuple[float, float]:
    """Return the interval at one look at a growing table; the intervals at all looks hold together.

    With probability 1 - alpha the true effect is in the intervals of all looks, with no limit on their number. The
    times of looks may depend on earlier results, and whoever stops at the first interval without 0 makes a false claim
    with probability alpha at most. Intervals are wider than those of `sequential_looks`, which need the number of units
    to be planned and looks that do not depend on results.

    Sampling error is bounded at all times by Robbins' normal mixture, as in the asymptotic confidence sequences of
    Waudby-Smith and others (2024): valid where looks begin after enough units for a normal approximation. Privacy noise
    is another at each look. Look t may fail because of it with probability noise_share · alpha / (t (t + 1)), which
    adds up to noise_share · alpha over all looks, whether the noise of looks is independent or, as in a prepaid
    schedule, correlated.

    Privacy: post-processing.

    Args:
        effect: The effect at this look, on all units so far.
        look: The number of this look; the first is 1. Count every look whose interval was computed.
        tuned_n: The number of units at which intervals are to be narrowest. Fix it before the first look.
        alpha: The probability that any interval misses the effect.
        noise_share: The part of alpha that is for the privacy noise. Fix it before the first look.

    Raises:
        RefusedError: Where the effect has no interval, or is a ratio.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("arm"), outcome=Real("y", 0, 1))
        >>> effect = DifferenceInMeans().estimate(Rehearsal(schema, n=5_000), epsilon=0.5)
        >>> [round(limit, 3) for limit in effect.interval()]
        [-0.017, 0.017]
        >>> [round(limit, 3) for limit in anytime_interval(effect, look=10, tuned_n=5_000)]
        [-0.03, 0.03]
    """
    check_alpha(alpha)
    if not (look >= 1 and tuned_n >= 1 and 0 < noise_share < 1):
        raise RefusedError(
            expected="look and tuned_n from 1 on, and noise_share between 0 and 1",
            got=f"look {look!r}, tuned_n {tuned_n!r}, noise_share {noise_share!r}",
            hint="write for instance anytime_interval(effect, look=3, tuned_n=10_000).",
        )
    if effect.no_interval or effect.ratio:
        raise RefusedError(
            expected="a difference with an interval",
            got=f"none: {effect.no_interval}" if effect.no_interval else "a ratio",
            hint="print the effect to see the rest.",
        )
    sampling_sd = math.hypot(effect.sampling_sd or 0.0, effect.between_sd)
    half = anytime_half_width(
        sampling_sd, effect.noise, alpha, look=look, progress=effect.n / tuned_n, noise_share=noise_share
    )
    half += effect.bias_bound
    return effect.estimate - half, effect.estimate + half
