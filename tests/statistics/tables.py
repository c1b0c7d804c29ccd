"""Confounded tables with effects that vary, so that every estimand has a value of its own."""

from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa

import dpcausal as dpc
from dpcausal.arrays import Array
from dpcausal.schema import Protects

N = 4_000
LOW, HIGH = -1.6, 2.4
ARMS = ("usual care", "training")
EDGES = [-0.5, 0.0, 0.5]

Kind = Literal["plain", "prognostic", "low"]
"""In a prognostic table covariates explain most of the outcome, so that noise in a model of them costs most. In a low
one outcomes are near their lower bound, so that noise in the arms' sizes costs most."""


@cache
def columns(kind: Kind = "plain") -> dict[str, Array]:
    """Return a table: three of ten units are treated, and the effect of 0.3 + 0.4 a is larger where more are."""
    random = np.random.default_rng(21)
    a, b = random.uniform(-1, 1, (2, N))
    t = (random.random(N) < 1 / (1 + np.exp(0.8 - 0.8 * a + 0.5 * b))).astype(float)
    slope, noise = (4.0, 0.2) if kind == "prognostic" else (1.0, 0.4)
    y = slope * (0.2 * a + 0.15 * b) + (0.3 + 0.4 * a) * t + random.normal(0, noise, N)
    y = np.clip(y, LOW, HIGH)
    return {"t": t, "y": LOW + 0.05 * (y - LOW) if kind == "low" else y, "a": a, "b": b}


def table(kind: Kind = "plain") -> pa.Table:
    """Return the same for an engine."""
    return pa.table({name: column.astype(int) if name == "t" else column for name, column in columns(kind).items()})


@cache
def schema(protects: Protects = "record") -> dpc.Schema:
    """Return what is public about the table."""
    return dpc.Schema(
        treatment=dpc.Treatment("t", labels=ARMS, undeclared=0),
        outcome=dpc.Real("y", LOW, HIGH),
        covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)],
        protects=protects,
    )
