"""Derivatives of formulas, exact to machine precision: an estimator writes down its formula and nothing more.

A formula is a function of plain numbers or arrays. It may add, multiply, divide, take powers with whole exponents and
use analytic functions such as `np.log`. Where it needs a bound it uses `within`; a comparison looks at real parts.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcausal.utils.arrays import Array

Numbers = Any
"""What a formula computes with: numbers or arrays, real ones for its value and complex ones for its derivatives."""

_STEP = 1e-30
"""The imaginary step of a derivative. Its error is of the size of its square, and nothing is subtracted (Squire and
Trapp 1998)."""


def slopes(formula: Callable[[Numbers], Numbers], at: ArrayLike) -> Array:
    """Return the derivatives of a formula's values by its numbers: on the axes of the values, then on those of `at`.

    Args:
        formula: It takes numbers in the shape of `at`.

    Example:
        >>> slopes(lambda each: [each[0] / each[1], each[0] ** 2], [3.0, 2.0])
        array([[ 0.5 , -0.75],
               [ 6.  ,  0.  ]])
    """
    place = np.array(at, dtype=complex)
    found = np.empty((*np.shape(formula(place)), place.size))
    for each in range(place.size):
        moved = place.copy()
        moved.flat[each] += 1j * _STEP
        found[..., each] = np.imag(formula(moved)) / _STEP
    return found.reshape((*found.shape[:-1], *place.shape))


def within(numbers: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Return numbers, and where one is beyond a bound, the bound.

    Derivatives stay those of the numbers: noise that a bound cuts off in this answer is noise all the same.

    Example:
        >>> within(7.0, 0.0, 5.0), slopes(lambda each: within(each, 0.0, 5.0), 7.0)
        (5.0, array(1.))
    """
    if isinstance(numbers, float):
        return min(max(numbers, low), high)
    bounded = np.clip(np.real(numbers), np.real(low), np.real(high))
    return bounded + 1j * np.imag(numbers) if np.iscomplexobj(numbers) else bounded
