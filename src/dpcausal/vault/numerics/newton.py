"""The minimum of a penalised loss, to within a distance that is certified."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Derivatives = Callable[[Vector], tuple[Vector, Vector]]

_STEPS = 12


def minimise(derivatives: Derivatives, dimensions: int, tolerance: float, bend: float = 1.0) -> Vector:
    """Where the gradient is no longer than `tolerance`, by Newton steps of a length that cannot overshoot.

    The loss is a sum over units of functions whose third derivative along any direction is at most `bend` times the
    second, plus a ridge, plus perhaps a linear term: for log(1 + exp(-predictor)), with features of length at most 1,
    bend is 1. For such functions a step shortened to log(1 + d) / d of the Newton step, d its length times bend, always
    descends, and converges from anywhere (Sun and Tran-Dinh 2019, generalised self-concordance). So the loop ends for
    every table. Twelve steps are always taken, and more where covariates nearly tell the arms apart.
    """
    at = np.zeros(dimensions)
    taken = 0
    while True:
        gradient, curvature = derivatives(at)
        if taken >= _STEPS and np.linalg.norm(gradient) <= tolerance:
            return at
        step = np.linalg.solve(curvature, gradient)
        length = bend * float(np.linalg.norm(step))
        at = at - step * (np.log1p(length) / length if length > 0 else 1.0)
        taken += 1
