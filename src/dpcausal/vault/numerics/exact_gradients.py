"""Derivatives of losses added up over rows in integers, so that no sum depends on how rows are ordered or divided."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpcausal.vault.engines import Batch, ExactInts

Vector = NDArray[np.float64]

GRADIENT_TICKS = 2.0**52
"""Ticks to 1 of what a row adds to a gradient."""

CURVATURE_TICKS = 2.0**36
"""The same for curvatures, which only decide on the solver's next step and not on where it stops."""

_AT_ONCE = 2**10
_HALF = 32


def predictor(at: Vector, lines: NDArray[np.float64] | NDArray[np.int64]) -> Vector:
    """The sum of lines times coefficients, in an order that does not depend on the other rows.

    Coefficients are taken in two parts. The first has so few digits that, where lines are whole numbers up to 2^20, its
    products and their sums are exact; the other is so small that its rounding does not matter.
    """
    unit = math.ldexp(1.0, math.frexp(float(np.abs(at).sum()))[1] - 32)
    main = np.rint(at / unit) * unit
    large, small = np.zeros(lines.shape[1]), np.zeros(lines.shape[1])
    for first, second, line in zip(main, at - main, lines, strict=True):
        large += first * line
        small += second * line
    return large + small


def derivative_sums(lines: Vector, pull: Vector, bend: Vector) -> NDArray[np.int64]:
    """Over up to 1,024 rows: the sum of pull times lines; below it the sum of bend times products of two lines.

    Args:
        lines: Regressors within -1 and 1, one line a regressor.
        pull: The derivative of each row's loss by its predictor, within -1 and 1.
        bend: The second derivative, from 0 to 1.
    """
    gradient = np.rint(lines * pull * GRADIENT_TICKS).astype(np.int64).sum(axis=1)  # below 2^62
    bent = np.rint(lines * np.sqrt(bend) * CURVATURE_TICKS**0.5)  # products add up to less than 2^53: no rounding
    return np.vstack([gradient, (bent @ bent.T).astype(np.int64)])


def over_blocks(batch: Batch, kernel: Callable[[Batch], NDArray[np.int64]]) -> ExactInts:
    """The sum of a kernel over blocks of at most 1,024 rows, exact beyond 64 bits; of no rows too."""
    blocks = [kernel(block) for block in _blocks(batch)]
    high, low = sum(block >> _HALF for block in blocks), sum(block & (2**_HALF - 1) for block in blocks)
    total: ExactInts = np.asarray(high).astype(object) * 2**_HALF + np.asarray(low).astype(object)
    return total


def _blocks(batch: Batch) -> Iterator[Batch]:
    size = len(next(iter(batch.values())))
    for start in range(0, max(size, 1), _AT_ONCE):
        yield {name: column[start : start + _AT_ONCE] for name, column in batch.items()}


def as_floats(total: ExactInts) -> Vector:
    """A gradient, and below it the curvature, from their sums in ticks."""
    sums: Vector = total.astype(float)
    return np.vstack([sums[:1] / GRADIENT_TICKS, sums[1:] / CURVATURE_TICKS])
