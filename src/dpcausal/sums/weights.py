"""Weights with which the noise of an estimate is small, chosen from public numbers before anything is read.

The bound is computed from whatever weights a query has, so a bad choice costs accuracy and never privacy.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.certificates import POWERS, Norm
from dpcausal.sums.description import Sums
from dpcausal.sums.evaluation import Units, evaluate
from dpcausal.sums.numbers import GRID
from dpcausal.utils.arrays import Array, Int64s

_PAIRS, _STEPS = 8_000, 300
"""How many pairs of units are drawn, and how many steps lead to the best weights."""

_TINY = 1e-12

_LEAST_SHARE = 0.01
"""What each sum counts for at least, as a share of all: noise must not drown what a formula hardly uses."""


def drawn_moves(description: Sums, domain: Domain, norm: Norm) -> Array:
    """Return how far pairs of drawn units move sums, to the power of the norm: a line for each pair.

    There is a column for each weight, and so for the sums of all cells together. Units are drawn from a public seed;
    most of their values are at an end of their range, where units move sums furthest.
    """
    rng = np.random.default_rng(0)  # which units to look at; noise is never drawn here
    before = {name: _drawn(rng, name, description, domain) for name in ("treatment", "arm", *description.columns)}
    after = {name: _changed(rng, name, line, description, domain) for name, line in before.items()}
    (old, old_cell), (new, new_cell) = (_added(description, units) for units in (before, after))
    if domain.leaves and not description.everyone:
        gone = rng.random(_PAIRS) < 0.25
        new, new_cell = np.where(gone, 0, new), np.where(gone, -1, new_cell)
    power, inside = POWERS[norm], len(description.numbers)
    moved = np.abs(old - new) ** power
    both = np.abs(old) ** power + np.abs(new) ** power
    moved[:inside] = np.where(old_cell == new_cell, moved[:inside], both[:inside])
    return np.unique(moved.T, axis=0)


def _drawn(rng: np.random.Generator, name: str, description: Sums, domain: Domain) -> Int64s:
    if name in domain.codes:
        return rng.integers(0, domain.codes[name] if name != "treatment" or description.everyone else OUTSIDE, _PAIRS)
    ends = rng.choice(np.array([-GRID, 0, GRID]), _PAIRS, p=[0.4, 0.2, 0.4])
    return np.where(rng.random(_PAIRS) < 0.75, ends, rng.integers(-GRID, GRID + 1, _PAIRS))


def _changed(rng: np.random.Generator, name: str, line: Int64s, description: Sums, domain: Domain) -> Int64s:
    """Return a column after a change: the same for some units, another for others."""
    if name not in domain.changes:
        return line
    return np.where(rng.random(_PAIRS) < 0.4, line, _drawn(rng, name, description, domain))


def _added(description: Sums, units: Units) -> tuple[Array, Int64s]:
    """Return what each unit adds to each sum, and its cell, -1 for none."""
    added = evaluate([*description.numbers.values(), *description.whole.values()], units).astype(float)
    cell = np.zeros(_PAIRS, dtype=np.int64)
    for codes, count in zip(evaluate(list(description.cells), units), description.cells.values(), strict=True):
        cell = np.where((cell < 0) | (codes >= count), -1, cell * count + codes)
    added[: len(description.numbers), cell < 0] = 0
    return added, cell


def best_weights(moved: Array, variances: ArrayLike, norm: Norm) -> Array:
    """Return the weights w with the least sum of variances times w², of those with which no pair moves further than 1.

    In the powers of 1/w the problem is convex. Its dual has a number for each pair of units, which is multiplied, step
    by step, by how far that pair moves.

    Example:
        A unit moves either of two sums by 1, never both; or a third together with the first.

        >>> moves = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        >>> best_weights(moves, [8.0, 1.0, 1.0], "l1").round(2).tolist()
        [1.5, 1.0, 3.0]
    """
    power = POWERS[norm]
    if not moved.any():
        return np.ones(moved.shape[1])
    most = np.where(moved.max(axis=0) > 0, moved.max(axis=0), 1.0)
    moved, costs = moved / most, np.asarray(variances) * most ** (2 / power)
    costs = np.maximum(costs, _LEAST_SHARE * costs.sum())
    dual = np.full(len(moved), 1 / len(moved))

    def powers(dual: Array) -> Array:
        """Return the best powers of 1/w for a dual, but for a factor."""
        return np.asarray((costs / np.maximum(dual @ moved, _TINY)) ** (power / (power + 2)))

    for _ in range(_STEPS):
        dual *= moved @ powers(dual)
        dual /= dual.sum()
    best = powers(dual)
    return np.asarray((most * (moved @ best).max() / best) ** (1 / power))
