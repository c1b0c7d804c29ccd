"""The weights of the sums of a formula: those with which noise widens its interval least, as far as is public.

They follow from the sums, the formulas, a rehearsal and the guarantee: none of these holds a table, or an answer.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpcausal.estimators.formula import Formulas
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CustomSums, seen_by
from dpcausal.queries.look_moments import norm_of
from dpcausal.rehearsal import Rehearsal
from dpcausal.schema.real import Real
from dpcausal.sums.cases import domain_of
from dpcausal.sums.sensitivity import sensitivity_bound
from dpcausal.sums.weights import best_weights, drawn_moves
from dpcausal.uncertainty.derivatives import slopes
from dpcausal.utils.arrays import Array

_MIDDLES = {0.1: 0.1, 0.3: 0.2, 0.5: 0.25, 0.7: 0.2, 0.9: 0.1}
"""Around which parts of their ranges numbers are taken to lie, and within how much, in turn, where nothing is expected
of them. Each of these tables counts the same."""

_EVEN = 0.1
"""The share of units that is spread evenly over cells: none is empty, so that formulas have a value."""

_ROUNDS = 4
"""How often weights are chosen again, with the noise in the variance that the last ones make."""


def chosen_weights(formulas: Formulas, rehearsal: Rehearsal, guarantee: Guarantee) -> dict[str, float]:
    """Return weights by the names of sums: 1 for all of them, the default, where no others are found to be better.

    Noise widens an interval by its variance in the estimate, and by its standard deviation in the sampling variance,
    which is at least that. The sum of both is made small, on average over what tables may be like.
    """
    own = tuple(formulas.own)
    return dict(_chosen(formulas.query, tuple(formulas.texts.items()), own, rehearsal, guarantee))


@lru_cache(256)
def _chosen(
    query: CustomSums,
    texts: tuple[tuple[str, str], ...],
    own: tuple[str, ...],
    rehearsal: Rehearsal,
    guarantee: Guarantee,
) -> dict[str, float]:
    norm, schema = norm_of(guarantee), seen_by(query, rehearsal.schema)
    protects = schema.bounded_as(guarantee.protects)
    (description,), domain = query.sums(schema, protects, norm), domain_of(schema, protects)
    default = np.array([float(weight) for weight in description.weights.values()])
    formulas = Formulas(query, rehearsal.schema, dict(texts), own)
    estimate, variance = _noise(formulas, rehearsal, guarantee)
    moved = drawn_moves(description, domain, norm)
    ones = dict.fromkeys(query.texts, 1.0)
    if not estimate.any() or not moved.any():
        return ones

    def widening(ratios: Array) -> float:
        """Return by how much noise widens the interval if its size is these multiples of the default."""
        return float(estimate @ ratios**2 + np.sqrt(variance @ ratios**2))

    ratios = np.ones(len(default))
    for _ in range(_ROUNDS):
        tangent = variance / (2 * np.sqrt(variance @ ratios**2) or 1.0)
        ratios = best_weights(moved, (estimate + tangent) / default**2, norm) / default
    least = ratios[moved.any(axis=0)].min()
    rounded = [float(f"{max(ratio / least, 1.0):.2g}") for ratio in ratios]
    chosen = replace(query, weights=dict(zip(query.texts, rounded, strict=True)))
    bounds = [
        float(sensitivity_bound(each.sums(schema, protects, norm)[0], domain, norm).bound) for each in (query, chosen)
    ]
    worth = widening(np.array(rounded) * bounds[1] / bounds[0]) < widening(np.ones(len(default)))
    return dict(chosen.weights) if worth else ones


def _noise(formulas: Formulas, rehearsal: Rehearsal, guarantee: Guarantee) -> tuple[Array, Array]:
    """Return the variances that default noise in each sum makes in the estimate and its variance, as shares of all."""
    count = len(formulas.query.texts)
    found = []
    for point in _points(rehearsal):
        release = point.release(formulas.query, guarantee)
        sds = np.array([release.variance(name) ** 0.5 for name in release.names])
        cells = np.array(release.values).reshape(-1, count)
        sums = ((1 - _EVEN) * cells + _EVEN * cells.mean(axis=0)).ravel()
        parts = np.zeros((2, count))
        for part, name in zip(parts, ("estimate", "variance"), strict=True):
            if name in formulas.texts:
                part[:] = ((_slopes(formulas, name, sums) * sds) ** 2).reshape(-1, count).sum(axis=0)
        whole = parts[0].sum() + np.sqrt(parts[1].sum())
        found += [parts / np.array([[whole], [whole**2]])] if np.isfinite(parts).all() and whole > 0 else []
    estimate, variance = np.mean(found, axis=0) if found else np.zeros((2, count))
    return estimate, variance


def _slopes(formulas: Formulas, name: str, sums: Array) -> Array:
    return slopes(lambda at: formulas.values(at)[name], sums)


def _points(rehearsal: Rehearsal) -> Iterator[Rehearsal]:
    """Yield what a table may be like: as is expected and, where nothing is, with numbers in any part of their range."""
    schema, known = rehearsal.schema, dict(rehearsal.typical)
    unknown = [
        column
        for column in (schema.outcome, *schema.covariates)
        if not (isinstance(column, Real) and (column.scale or column.typical)) and column.name not in known
    ]
    for middle, reach in _MIDDLES.items():
        typical = {
            column.name: tuple(column.low + (column.high - column.low) * (middle + half) for half in (-reach, reach))
            for column in unknown
            if isinstance(column, Real) and column is not schema.outcome
        }
        low, high = schema.outcome_bounds
        free = rehearsal.outcome_mean is None and schema.outcome in unknown
        mean = low + (high - low) * middle if free else rehearsal.outcome_mean
        yield replace(rehearsal, typical=known | typical, outcome_mean=mean)
