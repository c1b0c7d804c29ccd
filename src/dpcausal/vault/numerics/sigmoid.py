"""The logistic function, the same to the last bit wherever a row stands in a batch and whatever machine it is on."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MAX_EXPONENT = 40
_STEPS = 2**11
_BITS = 192


def sigmoid(exponents: Array) -> Array:
    """1 / (1 + exp(-exponent)), to within 2^-52; beyond ±40 as at ±40.

    Libraries take exponentials of several numbers at once, and their last bits may depend on how many. This looks the
    function up at the nearest place of a table and goes on from there by Taylor's series, in steps that floating point
    takes alike for every number.
    """
    within = np.clip(exponents, -_MAX_EXPONENT, _MAX_EXPONENT)
    places = np.rint(within * _STEPS)
    rest = within - places / _STEPS
    value = _table()[places.astype(np.int64) + _MAX_EXPONENT * _STEPS]
    slope = value * (1 - value)
    series: Array = value + rest * slope * (1 + rest / 2 * (1 - 2 * value + rest / 3 * (1 - 6 * slope)))
    return series


@cache
def _table() -> Array:
    """The function at every place from -40 to 40, to the nearest number; made in integers, which no machine rounds."""
    one = 1 << _BITS
    growth = term = one
    order = 0
    while term:
        order += 1
        term //= order * _STEPS
        growth += term
    powers = [one]  # of exp(-1 / _STEPS)
    for _ in range(_MAX_EXPONENT * _STEPS):
        powers.append(powers[-1] * one // growth)
    lower = [power / (one + power) for power in reversed(powers)]
    upper = [one / (one + power) for power in powers[1:]]
    return np.array(lower + upper)
