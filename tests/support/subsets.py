"""The best set of sites by trying every set."""

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def subsets(sites: int) -> Array:
    """Return every set of sites but the empty one, a set a line."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=sites))[1:])


def brute_force(sizes: Array, variances: Array, sets: Array) -> Array:
    """Return the weights of the best of these sets, as the paper's Algorithm 3 finds it."""
    found = (sets @ (sizes**2 * variances)) / (sets @ sizes) ** 2
    chosen = sets[int(np.argmin(found))] * sizes
    weights: Array = chosen / chosen.sum()
    return weights
