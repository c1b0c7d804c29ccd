"""Expected sums over strata of a table that nobody has read."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpcausal.queries.cuts import Cut, bins
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.real import Real
from dpcausal.utils.arrays import Array

_EXPLAINED = 0.5
"""The share of a number's variance that the finest strata are assumed to explain; of a binary outcome's, half of it."""

_SPREAD = 0.95
"""The standard deviation of the logit of treatment between strata, for each standard deviation by which arms differ in
what predicts treatment."""

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(5)

_SIZES = np.geomspace(0.02, 200, 41)
"""Expected sizes of strata for which sums are computed. Others are interpolated; beyond them sums grow linearly."""


def expected_in_strata(by: Sequence[Cut], cap: int, expectations: Expectations) -> dict[str, float]:
    """Return the expected sums over strata.

    Numbers are normal around the middle of their range, all values of a listed covariate are as frequent, covariates
    are independent, and the logit of treatment varies between strata as far as confounding is expected. A hundred
    strata explain a third of a number's variance, thousands explain more.
    """
    sizes = expectations.compared * _shares(by, expectations)
    per_unit = _per_unit(cap, expectations.treated_share, round(_SPREAD * expectations.apart, 6))
    size, weight_square_sum, means = (
        float((sizes * np.interp(np.log(sizes), np.log(_SIZES), each)).sum()) for each in per_unit
    )
    compared = float(expectations.compared)
    means = min(max(means, 2.0), compared)
    return {
        "effect": 0.0,
        "size": min(size, compared),
        "squares": (compared - means) * (1 - _explained(len(sizes), expectations)) * expectations.sd**2,
        "weight_square_sum": weight_square_sum,
        "means": means,
        "compared": compared,
    }


def _explained(strata: int, expectations: Expectations) -> float:
    """Return the share of the outcome's variance that so many strata are expected to explain."""
    most = _EXPLAINED if isinstance(expectations.schema.outcome, Real) else _EXPLAINED / 2
    return most * (1 - 1 / math.sqrt(math.sqrt(strata)))


def _shares(by: Sequence[Cut], expectations: Expectations) -> Array:
    """Return the expected share of units in each stratum that holds any."""
    shares = np.ones(1)
    columns = {column.name: column for column in expectations.schema.covariates}
    for cut, count in zip(by, bins(by, expectations.schema), strict=True):
        column = columns[cut.name]
        each = np.full(count, 1 / count)
        if isinstance(column, Real):
            edges = (column.low, *cut.edges, column.high)
            below = np.array([NormalDist().cdf(expectations.standardised(column, edge)) for edge in edges])
            each = np.diff(below) / (below[-1] - below[0])
        shares = np.outer(shares, each).ravel()
    return np.maximum(shares, 1e-12)


@lru_cache(64)
def _per_unit(cap: int, treated_share: float, spread: float) -> tuple[Array, Array, Array]:
    """Return, for strata of each expected size, size, weight_square_sum and means over that size."""
    logit = math.log(treated_share / (1 - treated_share))
    masses = _MASSES / _MASSES.sum()
    found = np.zeros((3, len(_SIZES)))
    for node, mass in zip(_NODES, masses, strict=True):
        share = 1 / (1 + math.exp(-logit - spread * node))
        for place, size in enumerate(_SIZES):
            t, c = _counts(size * share), _counts(size * (1 - share))
            found[:, place] += mass * _sums(t, c, cap) / size
    return found[0], found[1], found[2]


def _counts(mean: float) -> Array:
    """Return the probabilities of 0, 1, 2, … units, where so many are expected."""
    numbers = np.arange(math.ceil(mean + 6 * math.sqrt(mean) + 6))
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean / numbers[1:]))])
    return np.asarray(np.exp(logs - mean))


def _sums(treated: Array, control: Array, cap: int) -> Array:
    """Return the expected size, weight_square_sum and means of a stratum, from the probabilities of arms' sizes."""
    t, c = np.arange(1, len(treated))[:, None], np.arange(1, len(control))
    m = np.minimum(t, cap * c) + np.minimum(c, cap * t)
    both = treated[1:, None] * control[1:]
    return np.array([(both * m).sum(), (both * m**2 * (1 / t + 1 / c)).sum(), 2 - treated[0] - control[0]])
