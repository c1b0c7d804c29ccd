"""The sample ratio: whether as many units are in each arm as were meant to be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.uncertainty.interval import simulated
from dpcausal.uncertainty.joint_estimate import JointEstimate

_DRAWS = 100_000
_MISMATCH = 0.001
"""Below this p-value arms are called mismatched; the usual threshold, as the check is made for every experiment."""

_SMALLEST_P = 1e-6
"""Smaller p-values are not written out."""

_MANY_OUTSIDE = 0.01
"""From this share on, units in no declared arm are told of above the result."""

_CLEARLY_OUTSIDE = 5.0
"""So many standard deviations of the noise, and one unit in a thousand, are units that are in no declared arm."""


@dataclass(frozen=True)
class SampleRatio:
    """A test of the arms' sizes against the declared allocation (sample ratio mismatch).

    The statistic is chi-squared, with the variance of the privacy noise beside that of random assignment; Laplace noise
    has heavier tails than the normal, so its distribution is simulated.

    Attributes:
        sizes: How many units each has, noise included.
        allocation: The share that each was meant to get.
        p_value: The probability of one as large if the allocation is right.
        looks: How many looks there will be; the threshold is divided among them.
        units: The number of units in the table.
        outside: How many of them are in none of the arms, noise included; None where noise may be all of it.

    Reference:
        Fabijan and others (2019), Diagnosing sample ratio mismatch in online controlled experiments.
    """

    arms: tuple[str, ...]
    sizes: tuple[float, ...]
    allocation: tuple[float, ...]
    statistic: float
    p_value: float
    looks: int = 1
    units: int | None = None
    outside: float | None = None

    @classmethod
    def of(cls, sizes: JointEstimate, allocation: Sequence[float], *, looks: int = 1, units: int | None = None) -> Self:
        """Test released sizes against an allocation, at one of so many looks, in a table of so many units.

        Example:
            >>> sizes = JointEstimate(("a", "b"), (5_200.0, 4_800.0), ((0.0, 0.0), (0.0, 0.0)), ())
            >>> SampleRatio.of(sizes, [1, 1]).p_value < 0.001
            True
        """
        shares = np.array(allocation, dtype=float) / sum(allocation)
        values = np.array(sizes.values)
        counted = max(float(values.sum()), 1.0)
        # The last arm follows from the others and the total.
        apart = (np.eye(len(shares)) - shares[:, None])[:-1]
        moved, assigned = apart @ values, counted * (np.diag(shares) - np.outer(shares, shares))[:-1, :-1]
        precision = np.linalg.inv(assigned + apart @ sizes.covariance @ apart.T)
        statistic = float(moved @ precision @ moved)
        laplace = [each for each in sizes.noise if each.family == "laplace"]
        if laplace:
            normal = simulated("gaussian", [1.0] * len(moved), _DRAWS) @ np.linalg.cholesky(assigned).T
            noise = simulated("laplace", [1.0] * len(laplace), _DRAWS) @ np.array([each.scales for each in laplace])
            errors = normal + noise @ apart.T
            drawn = ((errors @ precision) * errors).sum(axis=1)
            p_value = float((1 + (drawn >= statistic).sum()) / (1 + _DRAWS))
        else:
            p_value = chi_squared_beyond(statistic, len(moved))
        outside = _outside(sizes, units)
        released, expected = tuple(map(float, values)), tuple(map(float, shares))
        return cls(sizes.names, released, expected, statistic, p_value, looks, units, outside)

    @property
    def mismatch(self) -> bool:
        """Whether the arms are mismatched: then no metric of the experiment should be trusted."""
        return self.p_value < _MISMATCH / self.looks

    @property
    def many_outside(self) -> bool:
        """Whether so many units are in none of the arms that whoever reads the result must know why."""
        return self.outside is not None and self.outside > _MANY_OUTSIDE * (self.units or 0)

    @property
    def outside_words(self) -> str:
        """How many units are in none of the arms, and what may be the cause; empty where noise may be all of them."""
        if self.outside is None or self.units is None:
            return ""
        cause = "check that every arm is declared, as the table writes it"
        cause += ", and that the table is the one of this look" if self.looks > 1 else ""
        share = f"{100 * self.outside / self.units:.1f} %"
        return f"about {self.outside:,.0f} of {self.units:,} units ({share}) count in none of the arms: {cause}"

    def __str__(self) -> str:
        word = "MISMATCH: find the cause before you read any metric" if self.mismatch else "as declared"
        words = p_words(self.p_value)
        relation, words = ("<", words[2:]) if words.startswith("<") else ("=", words)
        sizes = ", ".join(f"{arm} {size:,.0f}" for arm, size in zip(self.arms, self.sizes, strict=True))
        return f"{word} (p {relation} {words}; {sizes})"


def p_words(p_value: float) -> str:
    """Return a p-value as text; below a millionth it is of rounding, and none is 0.

    Example:
        >>> p_words(0.0213), p_words(0.0)
        ('0.021', '< 1e-6')
    """
    return f"{p_value:.2g}" if p_value >= _SMALLEST_P else "< 1e-6"


def _outside(sizes: JointEstimate, units: int | None) -> float | None:
    """Return how many units are in none of the arms, or None where noise may be all of it."""
    if units is None:
        return None
    outside = float(units - np.sum(sizes.values))
    noise = math.sqrt(max(float(np.sum(sizes.covariance)), 0.0))
    return outside if outside > max(_CLEARLY_OUTSIDE * noise, units / 1_000) else None


def chi_squared_beyond(statistic: float, degrees: int) -> float:
    """Return the probability that a chi-squared variable exceeds a statistic.

    Example:
        >>> round(chi_squared_beyond(3.841, 1), 3), round(chi_squared_beyond(5.991, 2), 3)
        (0.05, 0.05)
    """
    half = max(statistic, 0.0) / 2
    at, beyond = (1, math.erfc(math.sqrt(half))) if degrees % 2 else (2, math.exp(-half))
    while at < degrees:
        beyond += half ** (at / 2) * math.exp(-half) / math.gamma(at / 2 + 1)
        at += 2
    return min(beyond, 1.0)
