"""Heterogeneity of effects between sites, beyond sampling error and privacy noise."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

from dpcausal.pooling.weights import inverse_variance
from dpcausal.utils.arrays import Array
from dpcausal.utils.text import format_number

_LIMIT_ERROR = 0.1
"""The probability that the limit is too low. With 0.1, intervals that use it cover: see docs/pooling-evidence.md."""


@dataclass(frozen=True)
class Heterogeneity:
    """Heterogeneity between sites, from their noisy estimates.

    Attributes:
        spread: Cochran's Q, which is about `freedom` where effects do not differ.
        freedom: The degrees of freedom: the number of sites less one.
        variance: The between-site variance of effects (DerSimonian and Laird 1986).
        limit: An upper confidence limit of that variance, at 90 %; infinite with two sites.

    Example:
        >>> import numpy as np
        >>> found = Heterogeneity.of(np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.5))
        >>> found.spread, round(found.variance, 2), round(found.share, 2), round(found.limit, 1)
        (10.0, 1.17, 0.7, 8.2)
    """

    spread: float
    freedom: int
    variance: float
    limit: float

    @classmethod
    def of(cls, estimates: Array, variances: Array) -> Self:
        """Estimate the heterogeneity between sites with these estimates and variances."""
        precisions, shares = 1 / variances, inverse_variance(variances)
        spread = float((precisions * (estimates - shares @ estimates) ** 2).sum())
        freedom = len(estimates) - 1
        added = float((precisions * (1 - shares)).sum())  # what a between-site variance of 1 adds to Q
        variance = max(spread - freedom, 0.0) / added
        # Q is then a sum of this many independent squares of similar size: fewer where few sites are precise.
        squares = float((precisions**2 * (1 - 2 * shares)).sum() + (precisions @ shares) ** 2)
        parts = max(added**2 / max(squares, added**2 / freedom), 1.0)
        return cls(spread, freedom, variance, _limit(spread, freedom, added, parts))

    @property
    def share(self) -> float:
        """The share of Q that heterogeneity explains: I²."""
        return max(1 - self.freedom / self.spread, 0.0) if self.spread > 0 else 0.0

    def __str__(self) -> str:
        most = "which two sites cannot estimate well"
        if math.isfinite(self.limit):
            most = f"at most {format_number(math.sqrt(self.limit))} with 90 % confidence"
        return (
            f"the between-site standard deviation of effects is {format_number(math.sqrt(self.variance))}, {most}; "
            f"noise hides small differences (I² {self.share:.0%}, Q {format_number(self.spread)} on {self.freedom})"
        )


def _limit(spread: float, freedom: int, added: float, parts: float) -> float:
    """Return the between-site variance for which so small a Q has a probability of one in ten.

    Q is approximated by its mean times a chi-square of `parts` degrees of freedom over these, much as Biggerstaff and
    Tweedie (1997) do. Estimates that agree better than their errors allow do so by chance, so Q counts as at least its
    mean without heterogeneity. Two sites have one distance between them, which can be small in any case.
    """
    if freedom == 1:
        return math.inf
    ninth = 2 / (9 * parts)
    smallest = (1 - ninth + NormalDist().inv_cdf(_LIMIT_ERROR) * math.sqrt(ninth)) ** 3  # Wilson and Hilferty (1931)
    return (max(spread, freedom) / smallest - freedom) / added
