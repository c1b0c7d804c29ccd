"""The multi-site paper's synthetic table."""

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.datasets import DataSet

Floats = NDArray[np.float64]


def cells(generator: Generator, n: int, size: int, imbalance: float | None = None) -> DataSet:
    """Return the multi-site paper's Synth: one covariate with `size` values, and outcomes within 0 and 1."""
    a = generator.uniform(-1, 1) if imbalance is None else imbalance
    b = generator.uniform(0, 0.4)
    cell = generator.integers(0, size, n)
    x = cell / max(size - 1, 1)
    arm = (generator.random(n) < sigmoid(a * (2 * x - 1))).astype(int)
    return DataSet(
        name="Synth",
        table=pa.table({"x": cell, "t": arm, "y": b * x + 0.5 * arm + generator.uniform(0, 0.1, n)}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1),
        covariates=(dpc.Category("x", list(range(size))),),
        truth=0.5,
    )


def sigmoid(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-values))
