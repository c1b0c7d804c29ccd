"""Confounded tables with effects that vary, so that every estimand has a value of its own."""

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import dpcausal as dpc
from dpcausal.schema.schema import Protects
from dpcausal.utils.arrays import Array

N = 4_000
LOW, HIGH = -1.6, 2.4
ARMS = ("usual care", "training")
EDGES = [-0.5, 0.0, 0.5]
TYPICAL = 1.645 / 2.6
"""The score of b is its value, so that closed forms hold; a has no scale, as the column of entry."""

CLUSTERS = [f"village {place}" for place in range(8)]
WAVES = ["first", "second", "third"]
ENDS = ["censored", "died", "moved"]

Kind = Literal["plain", "prognostic", "low", "events", "missing", "skewed", "design", "low design"]
"""In a prognostic table covariates explain most of the outcome, so that noise in a model of them costs most. In a low
one outcomes are near their lower bound, so that noise in the arms' sizes costs most. In one of events the outcome is 1
for one unit of twelve, and else 0. In one with missing outcomes three of ten are, more where a is large and with
treatment. In a skewed one outcomes are lognormal, and the public bounds far wider than most of them. One of a design
has the columns that designs need: few clusters, the last half of them treated; the wave in which a unit was seen; a
value before; the treatment received; a second factor; and what ended follow-up."""


@cache
def columns(kind: Kind = "plain") -> dict[str, Array]:
    """Return a table: three of ten units are treated, and the effect of 0.3 + 0.4 a is larger where more are."""
    random = np.random.default_rng(21)
    a, b = random.uniform(-1, 1, (2, N))
    t = (random.random(N) < 1 / (1 + np.exp(0.8 - 0.8 * a + 0.5 * b))).astype(float)
    slope, noise = (4.0, 0.2) if kind == "prognostic" else (1.0, 0.4)
    y = slope * (0.2 * a + 0.15 * b) + (0.3 + 0.4 * a) * t + random.normal(0, noise, N)
    if kind == "events":
        y = (random.random(N) < 0.06 + 0.02 * a + (0.05 + 0.02 * a) * t).astype(float)
    y = np.clip(y, LOW, HIGH)
    if kind == "missing":
        y[random.random(N) < 1 / (1 + np.exp(1 - (1 + t) * a))] = np.nan
    if kind == "skewed":
        y = np.clip(np.exp(random.normal(-3.5 + 0.4 * t, 1.1)), LOW, HIGH)
    if "design" in kind:
        return _design(t, y, a, b, low=kind == "low design")
    return {"t": t, "y": _near_low(y) if kind == "low" else y, "a": a, "b": b}


def _near_low(outcomes: Array) -> Array:
    """Return outcomes in the lowest twentieth of their range."""
    near: Array = LOW + 0.05 * (outcomes - LOW)
    return near


def _design(t: Array, y: Array, a: Array, b: Array, *, low: bool) -> dict[str, Array]:
    random = np.random.default_rng(22)
    village = (random.choice(4, N, p=[0.4, 0.3, 0.2, 0.1]) + 4 * t).astype(int)
    wave, second, end = random.integers(0, 3, N), random.integers(0, 2, N), random.choice(3, N, p=[0.3, 0.5, 0.2])
    received = (random.random(N) < 0.15 + 0.5 * t + 0.1 * a).astype(int)
    before = np.clip(0.4 * a + random.normal(0, 0.3, N), LOW, HIGH)
    late = 0.2 * (wave == 2) * (1 + t)
    y = y + 0.3 * received + 0.2 * second * (1 + t) + late + random.normal(0, 0.15, 8)[village]
    y = np.clip(y - 0.4, LOW, HIGH)
    if low:
        y, before = _near_low(y), _near_low(before)
    listed: dict[str, Any] = {"village": village, "wave": wave, "second": second, "received": received, "end": end}
    return {"t": t, "y": y, "a": a, "b": b, "before": before, **listed}


_LISTED = {"village": CLUSTERS, "wave": WAVES, "end": ENDS}


def table(kind: Kind = "plain") -> pa.Table:
    """Return the same for an engine."""
    whole = {"t"} | ({"y"} if kind == "events" else set())
    return pa.table(
        {
            name: [_LISTED[name][place] for place in column]
            if name in _LISTED
            else column.astype(int)
            if name in whole
            else column
            for name, column in columns(kind).items()
        }
    )


@cache
def schema(protects: Protects = "record", kind: Kind = "plain", *, may_leave: bool = False) -> dpc.Schema:
    """Return what is public about a table.

    Args:
        protects: What one unit may change.
        kind: Which table.
        may_leave: Whether a unit with another value of the treatment, or without an outcome, would be outside the
            comparison, so that the number of compared units is private. There are no such units.
    """
    outcome: dpc.Binary | dpc.Real = dpc.Binary("y") if kind == "events" else dpc.Real("y", LOW, HIGH)
    return dpc.Schema(
        treatment=dpc.Treatment("t", labels=ARMS, undeclared=None if may_leave else 0),
        outcome=replace(outcome, missing=None if may_leave else outcome.missing_value),  # type: ignore[arg-type]
        covariates=[
            dpc.Real("a", -1, 1),
            dpc.Real("b", -1, 1, typical=(-TYPICAL, TYPICAL), transform="linear"),
            *(_of_designs() if "design" in kind else ()),
        ],
        protects=protects,
        entry="a",
    )


def _of_designs() -> tuple[dpc.Real | dpc.Binary | dpc.Category, ...]:
    return (
        dpc.Real("before", LOW, HIGH),
        *(dpc.Category(name, values) for name, values in _LISTED.items()),
        dpc.Binary("second"),
        dpc.Binary("received", missing=0),
    )
