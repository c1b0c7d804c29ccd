"""Weights of sites by rule. Arithmetic on public numbers: no names, no randomness, any number of sites."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from dpcausal.pooling.robust import RobustFit
from dpcausal.utils.arrays import Array

Rule = Literal["minimum_variance", "inverse_variance", "random_effects", "sample_size", "largest", "median", "robust"]
RULES: tuple[Rule, ...] = get_args(Rule)

Automatic = Literal["automatic"]

ROBUST_FROM = 5
"""From so many sites on, the rule is `robust` unless another is given: its intervals cover with this many, and one
wrong site moves it by a bounded distance (simulations: docs/pooling-evidence.md)."""

NEED_VARIANCES: tuple[Rule, ...] = ("minimum_variance", "inverse_variance", "random_effects")


def automatic_rule(sites: int) -> Rule:
    """Return the rule for so many sites, where none is given."""
    return "robust" if sites >= ROBUST_FROM else "minimum_variance"


def describe_pooling(pooling: str) -> str:
    """Return how the answers of several sites become one effect, for people to read."""
    if pooling == "sums":
        return "sums at the coordinator"
    words = f"robust from {ROBUST_FROM} answers on, otherwise minimum_variance" if pooling == "automatic" else pooling
    return f"effects of sites, {words}"


def minimum_variance(sizes: Array, variances: Array) -> Array:
    """Return weights in proportion to size within the set of sites that has the smallest variance, and 0 outside.

    The best of all sets is a prefix of the sites in the order of size times variance (docs/pooling-evidence.md proves
    it), so sites are sorted instead of all subsets tried. Ties go to the first site, and to the smallest set.

    Args:
        variances: Each site's variance, greater than 0. With negative ones, which noise can cause in an estimated
            variance, no prefix need be best, and the best set is meaningless.

    Reference:
        Koga, Chaudhuri and Page (2024), Differentially Private Multi-Site Treatment Effect Estimation, Algorithm 3
        (MVAgg), which tries all sets.

    Example:
        >>> minimum_variance(np.array([100.0, 300.0, 100.0]), np.array([1.0, 1.0, 50.0]))  # the third is too noisy
        array([0.25, 0.75, 0.  ])
    """
    shares = _scaled(sizes)
    order = np.argsort(shares * variances, kind="stable")
    total = np.cumsum(shares[order])
    error = np.cumsum(shares[order] ** 2 * variances[order])
    chosen = order[: np.argmin(error / total**2) + 1]
    weights = np.zeros(len(sizes))
    weights[chosen] = _scaled(shares[chosen])
    return weights


def inverse_variance(variances: Array) -> Array:
    """Return weights in proportion to precision: the smallest possible variance where effects do not differ."""
    return _scaled(variances.min() / variances)


def middle(estimates: Array) -> Array:
    """Return all weight on the median site; with an even number of sites, half on each of two.

    Example:
        >>> middle(np.array([30.0, -1.6, -1.1]))
        array([0., 0., 1.])
    """
    order, half = np.argsort(estimates, kind="stable"), len(estimates) // 2
    weights = np.zeros(len(estimates))
    weights[order[half if len(order) % 2 else slice(half - 1, half + 1)]] = 1.0 if len(order) % 2 else 0.5
    return weights


def median_sd(variances: Array) -> float:
    """Return the standard error of the median of normal estimates of one effect with these variances.

    It is the root of pi / 2 times the number of sites, over the sum of the inverse standard errors. No site counts as
    more precise than the median one, because a site may overstate its precision.
    """
    errors = np.sqrt(np.maximum(variances, np.median(variances)))
    return float(math.sqrt(math.pi / 2 * len(errors)) / (1 / errors).sum())


def weights_of(rule: Rule, sizes: Array, variances: Array, between: float, estimates: Array) -> Array:
    """Return the weight of each site.

    Only random effects use the between-site variance, and only the median and the robust rule use the estimates.
    """
    if rule == "robust":
        return RobustFit.of(estimates, variances).weights
    if rule == "median":
        return middle(estimates)
    if rule == "minimum_variance":
        return minimum_variance(sizes, variances)
    if rule == "inverse_variance":
        return inverse_variance(variances)
    if rule == "random_effects":
        return inverse_variance(variances + between)
    return _scaled(sizes if rule == "sample_size" else (np.arange(len(sizes)) == np.argmax(sizes)).astype(np.float64))


def _scaled(sizes: Array) -> Array:
    """Return sizes as shares of their sum."""
    shares: Array = sizes / sizes.sum()
    return shares


def largest_bias(rule: Rule, weights: Array, bounds: Sequence[float]) -> float:
    """Return the largest bias of a pooled effect: all sites may err in one direction, and any may be the median.

    Example:
        >>> largest_bias("sample_size", np.array([0.75, 0.25]), [0.2, 0.4])
        0.25
    """
    return max(bounds) if rule == "median" else float(weights @ np.array(bounds))
