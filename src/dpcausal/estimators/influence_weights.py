"""How much a private score's weights leave of its information, from the means and variances of its features.

`BoundedInfluenceLogistic` divides a unit's loss by the length of its features. Only numbers make units differ in it:
the constant and listed values have the same length in all. Numbers count as independent and normal here. Then means of
1 / length and of its square are integrals in one dimension, over u of exp(-u^2 length^2), whose means are known.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.queries.logistic import Perturbation
from dpcausal.utils.arrays import Array

_STEP, _STEPS = 0.05, 200
_PLACES = _STEP * (np.arange(_STEPS) + 0.5)
"""Where the integrals are taken: features have a squared length of at least 1/4, so that beyond 10 there is nothing."""

_LEAST_VARIANCE = 1e-6
"""What a smaller variance of a feature counts as."""


@dataclass(frozen=True)
class InfluenceWeights:
    """What weights make of each feature's sum of squares.

    Attributes:
        information: The weighted part of it, the constant's first.
        loss: How much larger the sampling variance of a coefficient is than without weights, as a share.
    """

    information: Array
    loss: Array

    @classmethod
    def of(cls, perturbation: Perturbation, means: Array, variances: Array) -> Self:
        """Return those of features, without the constant, that have these means and variances."""
        if perturbation.sizes is None:
            return cls(np.ones(len(means) + 1), np.zeros(len(means) + 1))
        is_number = perturbation.sizes == 1.0
        middle, spread = np.zeros(len(means) + 1), np.ones(len(means) + 1)
        # Features are between -1 and 1: noise may say otherwise.
        middle[1:], spread[1:] = np.clip(means, -1.0, 1.0), np.clip(variances, _LEAST_VARIANCE, 1.0)
        wide = 1 + 2 * np.outer(_PLACES**2, spread)
        factors = np.exp(-np.outer(_PLACES**2, middle**2) / wide) / np.sqrt(wide)
        whole = np.exp(-(_PLACES**2) * perturbation.fixed) * np.where(is_number, factors, 1.0).prod(axis=1)
        # Given this factor a number is normal again, nearer to 0 and narrower: its square around its own mean.
        squares = np.where(is_number, (1 / wide) + (middle * (1 / wide - 1)) ** 2 / spread, 1.0)
        first = 2 / math.sqrt(math.pi) * _STEP * whole @ squares
        second = 2 * _STEP * (_PLACES * whole) @ squares
        return cls(first, np.maximum(second / first**2 - 1, 0.0))
