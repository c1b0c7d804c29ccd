"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Floating-point numbers."""

Int64s = NDArray[np.int64]
"""Integers of 64 bits; sums of them that must be exact stay within 2^63."""
