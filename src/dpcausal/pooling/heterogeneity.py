"""How much effects differ between sites, beyond what sampling error and privacy noise explain."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

from dpcausal.pooling.weights import Array, inverse_variance
from dpcausal.text import format_number

_DOUBT = 0.1
"""How likely the limit may be too low: with this much, intervals that rest on it cover (measured: docs/pooling.md)."""


@dataclass(frozen=True)
class Heterogeneity:
    """Differences between sites, from their noisy estimates.

    Attributes:
        spread: Cochran's Q, which is about `freedom` where effects do not differ.
        freedom: The number of sites less one.
        variance: The variance of effects between sites as DerSimonian and Laird (1986) estimate it.
        limit: The largest such variance that the estimates bear out, with 90 % confidence; infinite with two sites.

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
        """The differences between sites with these estimates and variances."""
        precisions, shares = 1 / variances, inverse_variance(variances)
        spread = float((precisions * (estimates - shares @ estimates) ** 2).sum())
        freedom = len(estimates) - 1
        added = float((precisions * (1 - shares)).sum())  # what a variance of 1 between sites adds to Q
        variance = max(spread - freedom, 0.0) / added
        # Q is then a sum of this many independent squares of about one size: fewer where few sites are precise.
        squares = float((precisions**2 * (1 - 2 * shares)).sum() + (precisions @ shares) ** 2)
        parts = max(added**2 / max(squares, added**2 / freedom), 1.0)
        return cls(spread, freedom, variance, _limit(spread, freedom, added, parts))

    @property
    def share(self) -> float:
        """The share of the spread that differences between sites explain: I²."""
        return max(1 - self.freedom / self.spread, 0.0) if self.spread > 0 else 0.0

    def __str__(self) -> str:
        most = "which two sites hardly tell"
        if math.isfinite(self.limit):
            most = f"at most {format_number(math.sqrt(self.limit))} with 90 % confidence"
        return (
            f"between sites, effects have a standard deviation of {format_number(math.sqrt(self.variance))}, {most}; "
            f"noise hides small differences (I² {self.share:.0%}, Q {format_number(self.spread)} on {self.freedom})"
        )


def _limit(spread: float, freedom: int, added: float, parts: float) -> float:
    """The variance between sites with which Q would be as small as it is in one case of ten.

    Q is taken to be its mean times a chi-square of `parts` degrees of freedom over these, much as Biggerstaff and
    Tweedie (1997) do. Estimates that agree better than their errors let them do so by luck, so Q counts as no less than
    it would be without differences. Two sites have one distance between them, which can be small in any case.
    """
    if freedom == 1:
        return math.inf
    ninth = 2 / (9 * parts)
    smallest = (1 - ninth + NormalDist().inv_cdf(_DOUBT) * math.sqrt(ninth)) ** 3  # Wilson and Hilferty (1931)
    return (max(spread, freedom) / smallest - freedom) / added
