"""Sensitivity to unmeasured confounding: how strong a confounder would have to be to explain an effect away.

Computed from the published effect, so it costs no budget. VanderWeele and Ding (2017), Sensitivity Analysis in
Observational Research: Introducing the E-Value; Cinelli and Hazlett (2020), Making Sense of Sensitivity.
"""

import math
from dataclasses import dataclass

from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect
from dpcausal.results.effect_measures import Measure

_RISKS = "risk ratio of the two noisy risks, and the limit of its own interval"
_STANDARDISED = (
    "an approximation: standardised mean difference d, converted to the risk ratio exp(0.91 d); the standard deviation "
    "follows from the sampling error, for two arms of equal size"
)
_WITHOUT_RISKS = (
    "no E-value: it needs a risk ratio, and this effect does not have both risks between 0 and 1; use an estimator "
    "that gives the risks, such as DoublyRobust"
)


@dataclass(frozen=True)
class Confounding:
    """E-values and robustness values, for the estimate and for the limit of its interval nearer to 0.

    Attributes:
        e_value: The risk ratio with treatment and with outcome that a confounder needs to explain the estimate; None
            for a binary outcome without both risks, where no conversion is near the truth.
        e_value_limit: The same for the limit nearer to 0; 1 where the interval contains 0.
        robustness: The share of the residual variance of treatment and of outcome that a confounder must explain.
        robustness_limit: The same for the limit nearer to 0; 0 where the interval contains 0.
        scale: How the effect was converted to a risk ratio, in words.
    """

    e_value: float | None
    e_value_limit: float | None
    robustness: float
    robustness_limit: float
    scale: str

    @property
    def converted(self) -> bool:
        """Whether the E-value is an approximation, by a conversion from a difference in means."""
        return self.scale == _STANDARDISED


def sensitivity_to_confounding(
    effect: Effect, interval: tuple[float, float] | None, covariates: int, *, binary: bool = False
) -> Confounding | None:
    """Return E-values and robustness values, or None without an interval or a sampling error, and for what is no mean.

    A binary outcome has an E-value only by the ratio of its risks: exp(0.91 d), which is meant for numbers, gives half
    of it and less where events are rare.
    """
    units = effect.n - effect.outside
    freedom = units - 2 - covariates
    if interval is None or effect.rehearsed or effect.quantity or not effect.sampling_sd or freedom < 1:
        return None
    limit = limit_nearer_to_zero(interval)
    ratios: tuple[float, float] | None = None
    if not binary:
        # Arms of equal size imply the largest spread for this standard error: d errs towards 0.
        spread = effect.sampling_sd * math.sqrt(units) / 2
        # The cap avoids an overflow; no effect is as large.
        ratio, ratio_limit = (math.exp(min(0.91 * abs(value) / spread, 20.0)) for value in (effect.estimate, limit))
        ratios = ratio, ratio_limit
    elif (risks := _risk_ratio(effect)) is not None:
        ratios = risks.estimate, _limit_nearer_to_one(risks) if limit else 1.0
    size = effect.sampling_sd * math.sqrt(freedom)
    return Confounding(
        e_value=e_value(ratios[0]) if ratios else None,
        e_value_limit=e_value(ratios[1]) if ratios else None,
        robustness=robustness_value(effect.estimate / size),
        robustness_limit=robustness_value(limit / size),
        scale=_STANDARDISED if not binary else _RISKS if ratios else _WITHOUT_RISKS,
    )


def _risk_ratio(effect: Effect) -> Measure | None:
    """Return the risk ratio where both risks are between 0 and 1 and it has an interval."""
    control, treated = effect.control_mean, effect.treated_mean
    if control is None or treated is None or not (0 < control < 1 and 0 < treated < 1):
        return None
    try:
        return effect.risk_ratio()
    except RefusedError:
        return None


def _limit_nearer_to_one(ratio: Measure) -> float:
    if ratio.low <= 1 <= ratio.high:
        return 1.0
    return ratio.low if ratio.low > 1 else ratio.high


def limit_nearer_to_zero(interval: tuple[float, float]) -> float:
    """Return the limit of an interval that is nearer to 0, or 0 where the interval contains it."""
    low, high = interval
    return 0.0 if low <= 0 <= high else min(interval, key=abs)


def e_value(ratio: float) -> float:
    """Return the E-value of a risk ratio.

    Example:
        >>> round(e_value(0.80), 2), e_value(1.0)  # as in the paper
        (1.81, 1.0)
    """
    away = max(ratio, 1 / ratio)
    return away + math.sqrt(away * (away - 1))


def robustness_value(f: float) -> float:
    """Return the robustness value of Cohen's partial f: a t value divided by the root of its degrees of freedom.

    Example:
        >>> round(robustness_value(5 / 102**0.5), 6)  # as in the R package sensemakr
        0.387467
    """
    square = f * f
    return (math.sqrt(square * square + 4 * square) - square) / 2
