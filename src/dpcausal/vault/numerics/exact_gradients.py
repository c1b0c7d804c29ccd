"""Exact sums of gradients over rows, the logistic function, and a Newton solver with a certified stop.

Sums are added in integers, so that none depends on how rows are ordered or divided.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.engines import Batch, ExactInts

Derivatives = Callable[[Array], tuple[Array, Array]]
"""From coefficients to the gradient and the curvature of a loss."""

GRADIENT_TICKS = 2.0**52
"""Ticks to 1 of what a row adds to a gradient."""

CURVATURE_TICKS = 2.0**36
"""The same for curvatures, which only decide on the solver's next step and not on where it stops."""

_AT_ONCE = 2**10
_HALF = 32
_MAX_EXPONENT = 40
_PLACES_TO_ONE = 2**11
_BITS = 192
_FEWEST_PASSES = 8
_SHORTER = 0.9


def predictor(at: Array, lines: Array | Int64s) -> Array:
    """Return the sum of lines times coefficients, in an order that does not depend on the other rows.

    Coefficients are taken in two parts. The first has so few digits that, where lines are whole numbers up to 2^20, its
    products and their sums are exact; the other is so small that its rounding does not matter. For lines of an integer
    type the other is two such parts, so that a product of matrices, which may add up in any order, is exact.
    """
    main = _in_few_digits(at)
    if lines.dtype.kind == "i":
        second = _in_few_digits(at - main)
        parts = np.array([main, second, _in_few_digits(at - main - second)]) @ lines.astype(np.float64)
        whole: Array = parts[0] + (parts[1] + parts[2])
        return whole
    large, small = np.zeros(lines.shape[1]), np.zeros(lines.shape[1])
    for first, second, line in zip(main, at - main, lines, strict=True):
        large += first * line
        small += second * line
    return large + small


def _in_few_digits(numbers: Array) -> Array:
    """Return numbers as multiples of a power of two, 2^32 of which are above the sum of their sizes."""
    unit = math.ldexp(1.0, math.frexp(float(np.abs(numbers).sum()))[1] - 32)
    rounded: Array = np.rint(numbers / unit) * unit
    return rounded


def derivative_sums(lines: Array, pull: Array, bend: Array) -> Int64s:
    """Return, over up to 1,024 rows, the sum of pull times lines; below it, of bend times products of two lines.

    Args:
        lines: Regressors within -1 and 1, one line a regressor.
        pull: The derivative of each row's loss by its predictor, within -1 and 1.
        bend: The second derivative, from 0 to 100.
    """
    pulled = lines * (pull * GRADIENT_TICKS)
    gradient = np.rint(pulled, out=pulled).astype(np.int64).sum(axis=1)  # below 2^62
    bent = np.multiply(lines, np.sqrt(bend) * CURVATURE_TICKS**0.5, out=pulled)
    np.rint(bent, out=bent)  # products add up to less than 2^53: no rounding
    return np.vstack([gradient, (bent @ bent.T).astype(np.int64)])


def over_blocks(batch: Batch, kernel: Callable[[Batch], Int64s]) -> ExactInts:
    """Return the sum of a kernel over blocks of at most 1,024 rows, exact beyond 64 bits; of no rows too."""
    blocks = [kernel(block) for block in _blocks(batch)]
    high, low = sum(block >> _HALF for block in blocks), sum(block & (2**_HALF - 1) for block in blocks)
    total: ExactInts = np.asarray(high).astype(object) * 2**_HALF + np.asarray(low).astype(object)
    return total


def _blocks(batch: Batch) -> Iterator[Batch]:
    size = len(next(iter(batch.values())))
    for start in range(0, max(size, 1), _AT_ONCE):
        yield {name: column[start : start + _AT_ONCE] for name, column in batch.items()}


def as_floats(total: ExactInts) -> Array:
    """Return a gradient, and below it the curvature, from their sums in ticks."""
    sums: Array = total.astype(float)
    return np.vstack([sums[:1] / GRADIENT_TICKS, sums[1:] / CURVATURE_TICKS])


def sigmoid(exponents: Array) -> Array:
    """Return 1 / (1 + exp(-exponent)), to within 2^-52; beyond ±40 as at ±40.

    Libraries take exponentials of several numbers at once, and their last bits may depend on how many. This looks the
    function up at the nearest place of a table and goes on from there by Taylor's series, in steps that floating point
    takes alike for every number.
    """
    within = np.clip(exponents, -_MAX_EXPONENT, _MAX_EXPONENT)
    places = np.rint(within * _PLACES_TO_ONE)
    rest = within - places / _PLACES_TO_ONE
    value = _sigmoid_table()[places.astype(np.int64) + _MAX_EXPONENT * _PLACES_TO_ONE]
    slope = value * (1 - value)
    series: Array = value + rest * slope * (1 + rest / 2 * (1 - 2 * value + rest / 3 * (1 - 6 * slope)))
    return series


@cache
def _sigmoid_table() -> Array:
    """Return the function at every place from -40 to 40, to the nearest number; made in integers, without rounding."""
    one = 1 << _BITS
    growth = term = one
    order = 0
    while term:
        order += 1
        term //= order * _PLACES_TO_ONE
        growth += term
    powers = [one]  # of exp(-1 / _PLACES_TO_ONE)
    for _ in range(_MAX_EXPONENT * _PLACES_TO_ONE):
        powers.append(powers[-1] * one // growth)
    lower = [power / (one + power) for power in reversed(powers)]
    upper = [one / (one + power) for power in powers[1:]]
    return np.array(lower + upper)


def minimise(derivatives: Derivatives, dimensions: int, tolerance: float, bend: float = 1.0) -> Array:
    """Return where the gradient is no longer than `tolerance`, by Newton steps, from 0 on.

    The loss is a sum over units of functions whose third derivative along any direction is at most `bend` times the
    second, plus a ridge, plus perhaps a linear term: for log(1 + exp(-predictor)), with features of length at most 1,
    bend is 1. Whole steps are taken as long as each shortens the gradient by a tenth. When one does not, it is taken
    back, and from there on steps are shortened to log(1 + d) / d of the Newton step, d its length times bend. For such
    functions these always descend, and converge from anywhere (Sun and Tran-Dinh 2019, generalised self-concordance).
    So the loop ends for every table. The derivatives are asked for eight times, and more where covariates nearly tell
    the arms apart.
    """
    at, whole, asked = np.zeros(dimensions), True, 1
    gradient, curvature = derivatives(at)
    while asked < _FEWEST_PASSES or np.linalg.norm(gradient) > tolerance:
        step = np.linalg.solve(curvature, gradient)
        length = 0.0 if whole else bend * float(np.linalg.norm(step))
        there = at - step * (np.log1p(length) / length if length > 0 else 1.0)
        slope, bent = derivatives(there)
        asked += 1
        if whole and np.linalg.norm(slope) > max(_SHORTER * float(np.linalg.norm(gradient)), tolerance):
            whole = False
        else:
            at, gradient, curvature = there, slope, bent
    return at
