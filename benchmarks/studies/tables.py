"""What the studies share."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sigmoid(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-values))
