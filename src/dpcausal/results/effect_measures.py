"""Measures and tests that follow from an effect and its arms' means, without further budget.

Ratios, numbers needed to treat and p-values are functions of released numbers: post-processing, so they cost nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcausal.errors import RefusedError
from dpcausal.uncertainty.derivatives import Numbers, slopes
from dpcausal.uncertainty.interval import NoiseTerm, beyond, check_alpha, half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.arrays import Array
from dpcausal.utils.text import format_number

Alternative = Literal["two-sided", "greater", "less"]

HalfWidth = Callable[[float, tuple[NoiseTerm, ...], float, float], float]


@dataclass(frozen=True)
class Measure:
    """An effect on another scale, such as a risk ratio.

    Attributes:
        low: The lower limit of its interval; minus infinity where there is none.
        high: The upper limit; infinity where there is none.
    """

    name: str
    estimate: float
    low: float
    high: float
    level: float
    null: float

    def __str__(self) -> str:
        limits = f"{format_number(self.low)} to {format_number(self.high)}"
        return f"{self.name} {format_number(self.estimate)} ({100 * self.level:g} % interval {limits})"


@dataclass(frozen=True)
class Test:
    """A test of a hypothesis about an effect."""

    __test__ = False  # for pytest

    claim: str
    p_value: float
    alpha: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def succeeds(self) -> bool:
        """Whether the claim is shown at this level."""
        return self.p_value <= self.alpha

    def __str__(self) -> str:
        verdict = "shown" if self.succeeds else "not shown"
        return f"{self.claim}: {verdict} (p = {self.p_value:.3g}, alpha = {self.alpha:g})"


def p_value(
    distance: float, sampling_sd: float, noise: tuple[NoiseTerm, ...], alternative: Alternative, bias: float = 0.0
) -> float:
    """Return the p-value of an estimate at this distance from the null, noise included.

    Args:
        distance: The estimate minus the value under the null.
        bias: The largest bias in either direction; the p-value is that under the worst.

    Example:
        >>> round(p_value(1.96, 1.0, (), "two-sided"), 2), round(p_value(1.96, 1.0, (), "less"), 3)
        (0.05, 0.975)
    """
    if alternative == "two-sided":
        far = abs(distance)
        return min(beyond(far - bias, sampling_sd, noise) + beyond(far + bias, sampling_sd, noise), 1.0)
    return beyond((distance if alternative == "greater" else -distance) - bias, sampling_sd, noise)


def ratio_of_means(means: JointEstimate, level: float, name: str, half: HalfWidth = half_width) -> Measure:
    """Return the treated arm's mean over the control arm's, with Fieller's interval.

    The interval holds every ratio r for which (treated mean) - r (control mean) is within its own error of 0. It needs
    no expansion to first order (Fieller 1954).

    Args:
        means: The means of the control arm and of the treated arm.
        half: What gives the half width of an interval from sampling error, noise and level.

    Raises:
        RefusedError: Where the control arm's mean is not distinguishable from 0.
    """
    control, treated = means.values
    estimate = treated / control if control > 0 else math.nan
    gradient = (-estimate, 1.0)
    error = means.standard_error((1.0, 0.0))
    times = _critical(means, gradient if control > 0 else (0.0, 1.0), level, half)
    if control <= times * error:
        raise RefusedError(
            expected="a control arm whose mean is distinguishable from 0, to divide by",
            got=f"a mean of {format_number(control)} with a standard error of {format_number(error)}",
            hint="report the difference, or use more units or more epsilon.",
        )
    low, high = _fieller((treated, control), means.covariance[::-1, ::-1], times)
    return Measure(name, estimate, low, high, level, 1.0)


def ratio_interval(parts: JointEstimate, level: float) -> tuple[float, float]:
    """Return Fieller's interval of a ratio of two estimates, the numerator first.

    Raises:
        RefusedError: Where the denominator is not distinguishable from 0: then every ratio may be right.

    Example:
        >>> parts = JointEstimate(("effect", "share"), (1.0, 0.5), ((0.01, 0.0), (0.0, 0.0001)), ())
        >>> low, high = ratio_interval(parts, 0.95)
        >>> round(low, 1), round(high, 1)
        (1.6, 2.4)
    """
    numerator, denominator = parts.values
    gradient = (1.0, -numerator / denominator) if denominator else (0.0, 1.0)
    times, error = _critical(parts, gradient, level), parts.standard_error((0.0, 1.0))
    if abs(denominator) <= times * error:
        raise RefusedError(
            expected=f"a {parts.names[1]} that is distinguishable from 0, to divide by",
            got=f"{format_number(denominator)} with a standard error of {format_number(error)}",
            hint=f"report the {parts.names[0]}, or use more units or more epsilon.",
        )
    return _fieller((numerator, denominator), parts.covariance, times)


def _fieller(values: tuple[float, float], covariance: Array, times: float) -> tuple[float, float]:
    """Return every ratio r for which (first value) - r (second value) is within so many of its own errors of 0."""
    numerator, denominator = values
    allowed = times**2 * covariance
    a = denominator**2 - allowed[1, 1]
    b = denominator * numerator - allowed[0, 1]
    c = numerator**2 - allowed[0, 0]
    root = math.sqrt(max(b * b - a * c, 0.0))
    return float((b - root) / a), float((b + root) / a)


def odds_ratio(means: JointEstimate, level: float, half: HalfWidth = half_width) -> Measure:
    """Return the ratio of the arms' odds; its interval is symmetric on the log scale.

    Raises:
        RefusedError: Where a risk is not distinguishable from 0 or 1.
    """
    for place, (name, risk) in enumerate(zip(means.names, means.values, strict=True)):
        if risk > 1 + 10 * means.standard_error(tuple(float(at == place) for at in range(2))):
            raise RefusedError(
                problem=f"Odds are of risks, and the mean of {name}, {format_number(risk)}, is none",
                hint="declare a binary outcome as Binary; for others write risk_ratio() or relative_lift().",
            )
        error = means.standard_error(tuple(float(at == place) for at in range(2)))
        if not error < risk < 1 - error:
            raise RefusedError(
                expected="both risks at least a standard error away from 0 and 1",
                got=f"{format_number(risk)} with a standard error of {format_number(error)} for {name}",
                hint="report the risk difference, or use more units or more epsilon.",
            )
    log = float(_log_odds_ratio(means.values))
    gradient = slopes(_log_odds_ratio, means.values).tolist()
    wide = half(means.sampling_sd(gradient), means.noise_along(gradient), level, _bias(means, gradient))
    return Measure("odds ratio", math.exp(log), math.exp(log - wide), math.exp(log + wide), level, 1.0)


def _log_odds_ratio(risks: Numbers) -> Numbers:
    control, treated = risks
    return np.log(treated / (1 - treated)) - np.log(control / (1 - control))


def number_needed_to_treat(estimate: float, interval: tuple[float, float], level: float) -> Measure:
    """Return 1 / (risk difference) with its limits; where the interval contains 0 they go through infinity.

    A negative number counts how many treatments do harm to one (Altman 1998).

    Example:
        >>> print(number_needed_to_treat(0.1, (0.05, 0.2), 0.95))
        number needed to treat 10.00 (95 % interval 5.000 to 20.00)
    """
    low, high = interval
    if low <= 0 <= high:
        return Measure("number needed to treat", _inverse(estimate), -math.inf, math.inf, level, math.inf)
    return Measure("number needed to treat", _inverse(estimate), 1 / high, 1 / low, level, math.inf)


def _inverse(number: float) -> float:
    return 1 / number if number else math.inf


def _critical(means: JointEstimate, gradient: tuple[float, float], level: float, half: HalfWidth = half_width) -> float:
    """Return how many standard errors a combination of the means stays within."""
    error = means.standard_error(gradient)
    if error == 0:
        return 0.0
    return half(means.sampling_sd(gradient), means.noise_along(gradient), level, _bias(means, gradient)) / error


def _bias(means: JointEstimate, gradient: Sequence[float]) -> float:
    """Return the largest bias of a combination of two arms' means.

    Each bound is that of the difference as a whole, which is all in one arm or divided between both.
    """
    return max(abs(slope) * bias for slope, bias in zip(gradient, means.bias, strict=True)) if means.bias else 0.0


def shifted(measure: Measure, name: str, by: float) -> Measure:
    """Return a measure under another name, moved by a constant: a relative lift is a ratio minus 1."""
    numbers = (measure.estimate + by, measure.low + by, measure.high + by)
    return Measure(name, *numbers, measure.level, measure.null + by)


def share_lines(shares: JointEstimate | None) -> tuple[str, ...]:
    """Return shares of missing outcomes in words, each with the noise in it.

    Example:
        >>> from dpcausal.uncertainty.joint_estimate import JointNoise
        >>> noise = (JointNoise("gaussian", (0.01, 0.0)), JointNoise("gaussian", (0.0, 0.01)))
        >>> share_lines(JointEstimate(("usual", "new"), (0.12, 0.18), ((0.0, 0.0), (0.0, 0.0)), noise))
        ('usual: about 12 % of outcomes (noise ± 2.0 %)', 'new: about 18 % of outcomes (noise ± 2.0 %)')
    """
    if shares is None:
        return ()
    lines = []
    for place, (name, share) in enumerate(zip(shares.names, shares.values, strict=True)):
        noise = half_width(0.0, shares.noise_along([float(at == place) for at in range(len(shares.names))]), 0.95)
        lines.append(f"{name}: about {100 * min(max(share, 0.0), 1.0):.0f} % of outcomes (noise ± {100 * noise:.1f} %)")
    return tuple(lines)


def missing_lines(shares: JointEstimate | None, included: bool) -> tuple[str, ...]:
    """Return shares of missing outcomes in words, and whether the effect is about units without an outcome too."""
    whose = "all units, with an outcome or without" if included else "units with an outcome"
    return () if shares is None else (*share_lines(shares), f"the effect is that in {whose}")
