"""Noise for these estimators: of the family that needs less of it, which is kind to all of them.

It comes from an ordinary generator of random numbers and protects nobody; it has the size that protection takes.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from benchmarks.peers.study import Floats
from dpcausal.queries.privacy_curve import curve_sd


def gaussian_size(epsilon: float, delta: float) -> float:
    """Return the standard deviation of a Gaussian for sensitivity 1; infinite without a delta."""
    return float(curve_sd(epsilon, delta, Fraction(1))) if delta > 0 else math.inf


def number_sd(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of the noise on one number: Laplace's, or a Gaussian's where that is smaller."""
    return sensitivity * min(math.sqrt(2) / epsilon, gaussian_size(epsilon, delta))


def number(sensitivity: float, epsilon: float, delta: float, generator: Generator) -> float:
    """Noise on one number that moves by at most `sensitivity` between neighbours."""
    return float(numbers(1, sensitivity, epsilon, delta, generator)[0])


def numbers(count: int, sensitivity: float, epsilon: float, delta: float, generator: Generator) -> Floats:
    """Noise on numbers that together, in the sum of absolute values, move by at most `sensitivity`."""
    if math.sqrt(2) / epsilon <= gaussian_size(epsilon, delta):
        return generator.laplace(0, sensitivity / epsilon, count)
    return generator.normal(0, sensitivity * gaussian_size(epsilon, delta), count)


def vector(count: int, length: float, epsilon: float, delta: float, generator: Generator) -> Floats:
    """Noise on a vector that moves by at most `length`, in the Euclidean sense.

    Either every direction is alike and the noise's length has a Gamma law (Chaudhuri, Monteleoni and Sarwate 2011),
    with a standard deviation of sqrt(count + 1) / epsilon in each entry for length 1, or every entry is Gaussian.
    """
    if math.sqrt(count + 1) / epsilon <= gaussian_size(epsilon, delta):
        direction = generator.normal(size=count)
        return direction / np.linalg.norm(direction) * generator.gamma(count, length / epsilon)
    return generator.normal(0, length * gaussian_size(epsilon, delta), count)


def cube(count: int, largest: float, epsilon: float, generator: Generator) -> Floats:
    """Noise on a vector none of whose entries moves by more than `largest` (Hardt and Talwar 2010)."""
    return generator.gamma(count + 1, largest / epsilon) * generator.uniform(-1, 1, count)
