"""What to look for in released numbers: scores, learned from examples, that tell one table's releases from another's.

Whatever is learned here, a lower bound made with it holds: the examples it was learned from are not the ones it is
tested on. A better score only makes the bound larger.
"""

from collections.abc import Callable, Iterator

import numpy as np

from dpcausal.utils.arrays import Array

Score = Callable[[Array], Array]
"""From transcripts, one line each, to one number each: the larger, the more it looks like the first table."""

_BINS = 24


def learned_scores(one: Array, other: Array) -> Iterator[tuple[str, Score]]:
    """Return scores worth trying: each number by itself, all as if independent, and all as they vary together."""
    for place in range(one.shape[1]):
        yield f"number {place}", _coordinate(place, 1.0)
        yield f"minus number {place}", _coordinate(place, -1.0)
    yield "all numbers, as if independent", _independent(one, other)
    if np.abs(np.vstack([one, other])).max() < 1e100:  # whose squares are finite
        yield "the best straight line", _line(one, other)


def _coordinate(place: int, sign: float) -> Score:
    return lambda transcripts: sign * transcripts[:, place]


def _independent(one: Array, other: Array) -> Score:
    """Return the sum over numbers of the logarithm of how much more often a number falls there for the first table.

    Where numbers carry independent noise this is close to the best score there is.
    """
    both = np.vstack([one, other])
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1])) for column in both.T]
    tables = []
    for place, at in enumerate(edges):
        counts = [
            np.bincount(np.searchsorted(at, part[:, place], side="right"), minlength=len(at) + 1) + 0.5
            for part in (one, other)
        ]
        tables.append(np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()))

    def score(transcripts: Array) -> Array:
        parts = [
            table[np.searchsorted(at, column, side="right")]
            for at, table, column in zip(edges, tables, transcripts.T, strict=True)
        ]
        total: Array = np.sum(parts, axis=0)
        return total

    return score


def _line(one: Array, other: Array) -> Score:
    """Return Fisher's linear discriminant, which finds differences of numbers that share their noise."""
    middle = (one.mean(axis=0) + other.mean(axis=0)) / 2
    spread = np.vstack([one, other]).std(axis=0)
    spread[spread == 0] = 1.0
    within = sum(np.cov((part - middle).T / spread[:, None]) for part in (one, other))
    within = np.atleast_2d(within) + 1e-12 * np.eye(len(spread))
    direction = np.linalg.lstsq(within, (one.mean(axis=0) - other.mean(axis=0)) / spread, rcond=None)[0]
    return lambda transcripts: (transcripts - middle) / spread @ direction
