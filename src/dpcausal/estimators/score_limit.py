"""The limit of augmented scores, from released models: noise is in proportion to it, and what it cuts off is bias."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpcausal.utils.arrays import Array

_LEAST = 0.5
"""The smallest limit of a query of scores, in half ranges."""

_SHARES = 2.0 ** ((3 - np.arange(16)) / 3)
"""The limits to choose from, as shares of the usual one."""

_CUT_OFF_LOSS = 0.5
"""What a score beyond the limit is taken to lose on average, as a share of that limit or the usual one."""

_ONE_SIDED = 1.645
"""An interval that allows for a bias has so many standard errors beyond it."""

Law = tuple[Array, Array]
"""How large something is, and how frequently."""

_PLACES = np.linspace(-6, 6, 241)
_DENSITY = np.exp(-(_PLACES**2) / 2) / np.exp(-(_PLACES**2) / 2).sum()
"""A standard normal distribution."""


def cut_off_loss(limit: float, usual: float) -> float:
    """Return what a score beyond the limit is taken to lose: less of a smaller limit would be a guess at the tail."""
    return _CUT_OFF_LOSS * max(limit, usual)


def best_limit(
    usual: float,
    spread: Callable[[float], float],
    weights: Sequence[Law],
    outcomes: Sequence[Sequence[Law]],
) -> float:
    """Return the limit with which the interval is expected to be narrowest, the bias that it allows for included.

    Args:
        usual: The limit where nothing is known of scores.
        spread: The standard error of the mean score, noise included, in half ranges, by limit.
        weights: For each arm, weights and how frequent units of that arm are that have them.
        outcomes: For each arm, how far outcomes are from their prediction, by each law that they may have.
    """

    def width(limit: float) -> float:
        beyond = max(
            sum(
                float(units @ (np.outer(weight, far) > limit) @ frequent)
                for (weight, units), (far, frequent) in zip(weights, arms, strict=True)
            )
            for arms in zip(*outcomes, strict=True)
        )
        return _ONE_SIDED * spread(limit) + cut_off_loss(limit, usual) * beyond

    return min((float(limit) for limit in np.maximum(usual * _SHARES, _LEAST)), key=width)


def far_outcomes(mean: float, variance: float, *, binary: bool) -> tuple[Law, ...]:
    """Return how far an arm's outcomes may be from their prediction, and how frequently, by each law to allow for.

    A number may be as far from its nearer bound as a lognormal, nearly symmetric where that bound is far. Or most are
    at that bound, as where a number is mostly 0, and few are far from it: of that law only these few.

    Args:
        mean: The arm's mean, in half ranges from the middle.
        variance: The residual variance, in squared half ranges.
        binary: Whether outcomes have two values only.
    """
    room = max(1 - abs(mean), 1e-3)
    if binary:
        return ((np.array([2 - room]), np.array([room / 2])),)
    spike = min(variance / room, 2 - room)
    two_points = np.array([spike]), np.array([room / (room + spike)])
    spread = math.sqrt(math.log1p(variance / room**2))
    far = room * np.expm1(spread * _PLACES - spread**2 / 2)
    return (np.minimum(np.abs(far), 2 - room), _DENSITY), two_points
