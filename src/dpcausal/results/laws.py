"""The laws of an estimate's error. Each gives an effect its limits, its p-values and the widths of its parts."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from dpcausal.results.effect_measures import Alternative, p_value, ratio_interval
from dpcausal.uncertainty.anytime import LooksSoFar, anytime_half_width, anytime_p_value, one_sided_p_value
from dpcausal.uncertainty.interval import NoiseTerm, half_width, student_beyond, student_half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate


@dataclass(frozen=True)
class NormalLaw:
    """Normal sampling error, differences between sites, and the known privacy noise.

    Attributes:
        bias: The largest bias in either direction; limits and p-values are those under the worst.
    """

    estimate: float
    sampling_sd: float
    between_sd: float
    noise: tuple[NoiseTerm, ...]
    bias: float

    @cached_property
    def sites_sd(self) -> float:
        """The error without privacy noise."""
        return math.hypot(self.sampling_sd, self.between_sd)

    def half(self, sd: float, noise: tuple[NoiseTerm, ...], level: float) -> float:
        """Return the half-width of an interval for an error and noise."""
        return half_width(sd, noise, level, self.bias)

    def limits(self, level: float) -> tuple[float, float]:
        """Return the limits of the interval."""
        half = self.half(self.sites_sd, self.noise, level)
        return self.estimate - half, self.estimate + half

    def widths(self, level: float) -> tuple[float, float, float]:
        """Return half-widths for sampling error alone, with differences between sites, and with privacy noise as well.

        Example:
            >>> [round(each, 1) for each in NormalLaw(0.0, 1.0, 0.0, (NoiseTerm("gaussian", 1.0),), 0.0).widths(0.95)]
            [2.0, 2.0, 2.8]
        """
        sampling, sites = (self.half(sd, (), level) for sd in (self.sampling_sd, self.sites_sd))
        return sampling, sites, self.half(self.sites_sd, self.noise, level)

    def p_value(self, null: float, alternative: Alternative) -> float:
        """Return the p-value of the hypothesis that the effect is `null`."""
        return p_value(self.estimate - null, self.sites_sd, self.noise, alternative, self.bias)


_TUNED = 0.05
"""Limits that hold at all looks are narrowest at this alpha; with one tuning, p-values agree with all limits."""


@dataclass(frozen=True)
class AnytimeLaw(NormalLaw):
    """The same for one look of several: limits and p-values hold at all looks together."""

    looks: LooksSoFar

    def half(self, sd: float, noise: tuple[NoiseTerm, ...], level: float, bias: float | None = None) -> float:
        """Return the half-width of an interval for an error and noise."""
        now = self.looks
        half = anytime_half_width(sd, noise, 1 - level, look=now.look, progress=now.progress, tuned_alpha=_TUNED)
        return half + (self.bias if bias is None else bias)

    def p_value(self, null: float, alternative: Alternative) -> float:
        """Return the p-value of the hypothesis that the effect is `null`.

        Example:
            >>> law = AnytimeLaw(3.6, 1.0, 0.0, (), 0.0, LooksSoFar(1, 8, 0.125))
            >>> [round(law.p_value(0.0, each), 3) for each in ("two-sided", "greater", "less")]
            [0.003, 0.002, 1.0]
        """
        away = self.estimate - null
        towards = {"two-sided": abs(away), "greater": away, "less": -away}[alternative] - self.bias
        if towards <= 0:
            return 1.0
        now, error = self.looks, (self.sites_sd, self.noise)
        both = anytime_p_value(towards, *error, look=now.look, progress=now.progress, tuned_alpha=_TUNED)
        return both if alternative == "two-sided" else one_sided_p_value(both)


@dataclass(frozen=True)
class StudentLaw(NormalLaw):
    """Student's t: the standard error comes from differences between sites, and has few degrees of freedom."""

    freedom: int

    def half(self, sd: float, noise: tuple[NoiseTerm, ...], level: float) -> float:
        """Return the half-width of an interval for an error and noise."""
        error = math.sqrt(sd**2 + sum(term.variance for term in noise))
        return student_half_width(self.freedom, level) * error + self.bias

    def p_value(self, null: float, alternative: Alternative) -> float:
        """Return the p-value of the hypothesis that the effect is `null`.

        Example:
            >>> round(StudentLaw(2.776, 1.0, 0.0, (), 0.0, 4).p_value(0.0, "two-sided"), 2)
            0.05
        """
        error = math.sqrt(self.sites_sd**2 + sum(term.variance for term in self.noise))
        away = -(self.estimate - null) if alternative == "less" else self.estimate - null
        away = max(abs(away) - self.bias, 0.0) if alternative == "two-sided" else away - self.bias
        one_side = student_beyond(away / error, self.freedom) if error else float(away <= 0)
        return min(2 * one_side, 1.0) if alternative == "two-sided" else one_side


@dataclass(frozen=True)
class RatioLaw(NormalLaw):
    """Fieller's: the estimate is a ratio of two others, the numerator first, and its interval is not symmetric."""

    parts: JointEstimate

    def limits(self, level: float) -> tuple[float, float]:
        """Return the limits of the interval.

        Raises:
            RefusedError: Where the denominator is not distinguishable from 0: then every ratio may be right.
        """
        low, high = ratio_interval(self.parts, level)
        unbiased = replace(self, bias=0.0)
        wider = self.half(self.sites_sd, self.noise, level) - unbiased.half(self.sites_sd, self.noise, level)
        return low - wider, high + wider

    def p_value(self, null: float, alternative: Alternative) -> float:
        """Return the p-value of the hypothesis that the ratio is `null`: that (numerator) - null (denominator) is 0.

        It needs no expansion to first order, so it holds for a small denominator too (Anderson and Rubin 1949). With a
        bias of the ratio it is the largest p-value of any ratio within that bias of `null`.
        """
        numerator, denominator = self.parts.values
        apart = numerator / denominator - null if denominator else 0.0
        towards = {"greater": self.bias, "less": -self.bias, "two-sided": min(max(apart, -self.bias), self.bias)}
        null += towards[alternative]
        side: Alternative = alternative
        if denominator < 0 and alternative != "two-sided":
            side = "less" if alternative == "greater" else "greater"
        gradient = (1.0, -null)
        error, noise = self.parts.sampling_sd(gradient), self.parts.noise_along(gradient)
        return p_value(numerator - null * denominator, error, noise, side)
