"""Several estimates with their joint error: sampling covariance, and privacy noise that they may share.

Everything here is post-processing of released numbers, so it costs no privacy.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.uncertainty.derivatives import Numbers, slopes
from dpcausal.uncertainty.interval import (
    Family,
    NoiseTerm,
    beyond,
    check_level,
    few_terms,
    half_width,
    simulated,
    simulated_sums,
)
from dpcausal.utils.arrays import Array
from dpcausal.utils.text import format_number

_DRAWS = 20_000
"""Simulated errors behind a simultaneous critical value; its own error is below 1 %."""


@dataclass(frozen=True)
class JointNoise:
    """One independent part of the privacy noise, and how far it moves each estimate, to first order.

    Attributes:
        scales: For each estimate, the derivative by the released number times the scale of its noise; with its sign.
        parts: The number of independent parts of one size that it is the sum of.
    """

    family: Family
    scales: tuple[float, ...]
    parts: float = 1


@dataclass(frozen=True)
class JointEstimate:
    """Several estimates with their joint error.

    Attributes:
        values: The estimates, noise included.
        sampling: The covariance of their sampling errors.
        noise: The privacy noise in them, part by part.
        bias: For each, the largest bias in either direction, which intervals allow for; empty where there is none.

    Example:
        >>> apart = JointEstimate(("a", "b"), (2.0, 5.0), ((1.0, 0.0), (0.0, 1.0)), ())
        >>> apart.value("b")
        5.0
        >>> round(apart.sampling_sd((-1, 1)), 3)
        1.414
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    sampling: tuple[tuple[float, ...], ...]
    noise: tuple[JointNoise, ...]
    bias: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        sizes = {
            len(self.values),
            len(self.sampling),
            *map(len, self.sampling),
            *(len(each.scales) for each in self.noise),
            len(self.bias or self.names),
        }
        if sizes != {len(self.names)}:
            raise QueryError(
                expected=f"{len(self.names)} estimates with a covariance, noise and bias of the same size",
                got=f"sizes {sorted(sizes)}",
                hint="give one number for each name everywhere.",
            )

    def value(self, name: str) -> float:
        """Return the estimate of this name."""
        return self.values[self.names.index(name)]

    def sampling_sd(self, gradient: Sequence[float]) -> float:
        """Return the sampling error of a linear combination, or to first order of a function with this gradient."""
        along = np.asarray(gradient, dtype=float)
        return math.sqrt(max(float(along @ np.array(self.sampling) @ along), 0.0))

    def noise_along(self, gradient: Sequence[float]) -> tuple[NoiseTerm, ...]:
        """Return the privacy noise in such a combination."""
        along = np.asarray(gradient, dtype=float)
        scales = [(each, abs(float(along @ np.array(each.scales)))) for each in self.noise]
        return tuple(NoiseTerm(each.family, scale, each.parts) for each, scale in scales if scale > 0)

    def bias_along(self, gradient: Sequence[float]) -> float:
        """Return the largest bias of such a combination: biases of single estimates may add up."""
        return float(np.abs(gradient) @ np.array(self.bias)) if self.bias else 0.0

    def with_bias(self, bound: float) -> Self:
        """Return the same estimates, each with this much more bias to allow for."""
        return replace(self, bias=tuple(each + bound for each in self.bias or (0.0,) * len(self.names)))

    def noise_sd(self, gradient: Sequence[float]) -> float:
        """Return the standard deviation of the privacy noise in such a combination."""
        return math.sqrt(sum(term.variance for term in self.noise_along(gradient)))

    def standard_error(self, gradient: Sequence[float]) -> float:
        """Return the standard error of such a combination, sampling error and privacy noise together."""
        return math.hypot(self.sampling_sd(gradient), self.noise_sd(gradient))

    @property
    def covariance(self) -> Array:
        """The covariance of the estimates, sampling error and privacy noise together."""
        total: Array = np.array(self.sampling, dtype=float)
        for each in self.noise:
            scales = np.array(each.scales)
            total = total + (2.0 if each.family == "laplace" else 1.0) * np.outer(scales, scales)
        return total

    def mapped(self, names: Sequence[str], formula: Callable[[Numbers], Numbers]) -> Self:
        """Return functions of these estimates, with their errors to first order.

        Args:
            names: What each is.
            formula: It takes the values of these estimates, and returns those of the functions; see `derivatives`.

        Example:
            >>> apart = JointEstimate(("a", "b"), (2.0, 5.0), ((1.0, 0.0), (0.0, 1.0)), ())
            >>> ratio = apart.mapped(["b / a"], lambda each: [each[1] / each[0]])
            >>> ratio.values[0], round(ratio.sampling_sd([1.0]), 3)
            (2.5, 1.346)
        """
        values = np.array(self.values)
        matrix = slopes(formula, values)
        sampling = matrix @ np.array(self.sampling) @ matrix.T
        return type(self)(
            tuple(names),
            tuple(map(float, formula(values))),
            tuple(tuple(map(float, line)) for line in sampling),
            tuple(
                JointNoise(each.family, tuple(map(float, matrix @ np.array(each.scales))), each.parts)
                for each in self.noise
            ),
            tuple(self.bias_along(line) for line in matrix.tolist()) if self.bias else (),
        )

    def simultaneous(self, level: float) -> float:
        """Return how many standard errors all estimates stay within at once, with probability `level`.

        The errors are simulated jointly, so estimates that share arms or noise need less room than by Bonferroni.

        Example:
            >>> apart = JointEstimate(("a", "b"), (0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)), ())
            >>> together = JointEstimate(("a", "b"), (0.0, 0.0), ((1.0, 1.0), (1.0, 1.0)), ())
            >>> 2.2 < apart.simultaneous(0.95) < 2.3, 1.9 < together.simultaneous(0.95) < 2.0
            (True, True)
        """
        check_level(level)
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        values, vectors = np.linalg.eigh(np.array(self.sampling, dtype=float))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        gaussian, laplace = (
            [each for each in self.noise if each.family == family] for family in ("gaussian", "laplace")
        )
        # All normal errors in one go: the simulation has one seed, and a second one would repeat the first.
        normal = simulated("gaussian", [1.0] * (len(self.names) + len(gaussian)), _DRAWS)
        draws = normal[:, : len(self.names)] @ root.T
        if gaussian:
            draws = draws + normal[:, len(self.names) :] @ np.array([each.scales for each in gaussian])
        if laplace:
            summed = simulated_sums([each.parts for each in laplace], _DRAWS)
            draws = draws + summed @ np.array([each.scales for each in laplace])
        return float(np.quantile(np.abs(draws / errors).max(axis=1), level))

    def intervals(self, level: float = 0.95) -> tuple[tuple[float, float], ...]:
        """Return intervals that hold for all estimates at once, with probability `level`, whatever the biases."""
        half = self.simultaneous(level) * np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        half = half + np.array(self.bias or 0.0)
        return tuple((float(value - each), float(value + each)) for value, each in zip(self.values, half, strict=True))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for one estimate by itself.

        Example:
            >>> apart = JointEstimate(("a", "b"), (2.0, 5.0), ((1.0, 0.0), (0.0, 1.0)), ())
            >>> [round(limit) for limit in apart.interval("b")]
            [3, 7]
        """
        check_level(level)
        along = self._only(name)
        half = half_width(self.sampling_sd(along), few_terms(self.noise_along(along)), level, self.bias_along(along))
        return self.value(name) - half, self.value(name) + half

    def p_value(self, name: str, null: float = 0.0) -> float:
        """Return the two-sided p-value of the hypothesis that one estimate is `null`; it accounts for privacy noise."""
        along = self._only(name)
        sampling, noise = self.sampling_sd(along), few_terms(self.noise_along(along))
        far, bias = abs(self.value(name) - null), self.bias_along(along)
        return min(beyond(far - bias, sampling, noise) + beyond(far + bias, sampling, noise), 1.0)

    def lines(self, *, intervals: bool) -> tuple[str, ...]:
        """Return each estimate in words, with intervals that hold for all of them together where there are any."""
        several = len(self.names) > 1
        return tuple(
            f"{name}: {format_number(value)}"
            + (f" ({format_number(low)} to {format_number(high)}{' jointly' * several})" if intervals else "")
            for name, value, (low, high) in zip(self.names, self.values, self.intervals(0.95), strict=True)
        )

    def _only(self, name: str) -> list[float]:
        place = self.names.index(name)
        return [float(at == place) for at in range(len(self.names))]


def weighted_average(parts: Sequence[JointEstimate | None], weights: Sequence[float] | Array) -> JointEstimate | None:
    """Return the weighted average of independent estimates of the same; None where one with weight is unknown.

    It is without heterogeneity between them.
    """
    counted = [(each, weight) for each, weight in zip(parts, weights, strict=True) if weight > 0]
    found = [each for each, _ in counted if each is not None]
    if len(found) < len(counted):
        return None
    shares = np.array([weight for _, weight in counted], dtype=float)
    shares /= shares.sum()
    values = shares @ np.array([each.values for each in found])
    sampling = np.tensordot(shares**2, np.array([each.sampling for each in found]), 1)
    return JointEstimate(
        names=found[0].names,
        values=tuple(map(float, values)),
        sampling=tuple(tuple(map(float, line)) for line in sampling),
        noise=tuple(
            JointNoise(each.family, tuple(float(share) * scale for scale in each.scales), each.parts)
            for part, share in zip(found, shares, strict=True)
            for each in part.noise
        ),
        bias=tuple(map(float, shares @ [each.bias or (0.0,) * len(each.names) for each in found])),
    )
