"""Intervals that account for sampling and for privacy noise, by Monte Carlo from public scales.

The random numbers here simulate known distributions after the release: they protect nobody, so they may have a seed,
and do, so that the same effect always prints the same interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

DRAWS = 100_000

_MANY = 20
"""Beyond so many parts, a sum of Laplace noise has the quantiles of a normal one to within a hundredth of its size."""

Family = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class NoiseTerm:
    """One independent part of an estimate's privacy noise, to first order.

    Attributes:
        family: Its distribution.
        scale: The scale of a Laplace, the standard deviation of a Gaussian, in the estimate's own terms.
        parts: Of how many independent parts of one size it is the sum; their variances add up to that of the scale.
    """

    family: Family
    scale: float
    parts: int = 1

    @property
    def variance(self) -> float:
        """The variance of this part."""
        return (2.0 if self.family == "laplace" else 1.0) * self.scale**2


def simulated(family: Family, scales: Sequence[float], draws: int) -> NDArray[np.float64]:
    """Draws of independent noise of these sizes, one draw a line: to see what noise does to a result."""
    generator = np.random.default_rng(20)  # the same interval each time; what was released has its noise already
    draw = generator.laplace if family == "laplace" else generator.normal
    noise: NDArray[np.float64] = draw(0.0, 1.0, (draws, len(scales))) * np.array(scales)
    return noise


def half_width(sampling_sd: float, noise: Sequence[NoiseTerm], level: float) -> float:
    """The distance that normal sampling error plus privacy noise stays within, with probability `level`.

    Example:
        >>> round(half_width(1.0, [], 0.95), 1)
        2.0
        >>> round(half_width(0.0, [NoiseTerm("laplace", 1.0)], 0.95), 1)  # ln 20
        3.0
    """
    generator = np.random.default_rng(20)  # as above
    error = generator.normal(0.0, 1.0, DRAWS) * sampling_sd
    for term in noise:
        draw = generator.laplace if term.family == "laplace" else generator.normal
        parts = min(term.parts, _MANY) if term.family == "laplace" else 1
        for _ in range(parts):
            error += draw(0.0, 1.0, DRAWS) * (term.scale / parts**0.5)
    return float(np.quantile(np.abs(error), level))


def critical_values(family: Family, shares: NDArray[np.float64], level: float, parts: int = 1) -> NDArray[np.float64]:
    """By how many standard errors an estimate is off at most, with probability `level`, for shares of privacy noise.

    An error is a normal part and privacy noise, which is the sum of so many independent `parts` of one size; a share is
    what the standard deviation of the noise is of the whole error's.

    Example:
        >>> critical_values("laplace", np.array([0.0, 1.0]), 0.95).round(1)
        array([2. , 2.1])
    """
    if family == "gaussian":
        return np.full(len(shares), NormalDist().inv_cdf((1 + level) / 2))
    known = np.linspace(0, 1, 11)
    generator = np.random.default_rng(20)
    normal, noise = generator.normal(0, 1, DRAWS), generator.laplace(0, (2 * parts) ** -0.5, (parts, DRAWS)).sum(axis=0)
    errors = [np.abs(np.sqrt(1 - share**2) * normal + share * noise) for share in known]
    values: NDArray[np.float64] = np.interp(shares, known, [np.quantile(each, level) for each in errors])
    return values
