"""Survival curves and what follows from them, as functions of counts, with their slopes.

Everything here is post-processing of released numbers, so it costs no privacy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcausal.arrays import Array

_STEP = 1e-30
"""The imaginary step of a derivative. Its error is of the size of its square, and nothing is subtracted (Squire and
Trapp 1998)."""

_LEAST = 1.0
"""The least number of units at risk, so that an empty arm has an answer like any other."""

_LEAST_EVENTS = 0.5
"""The least number of events behind a ratio of hazards, for the same reason."""

Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class Grid:
    """A public grid of times.

    Attributes:
        start: The time at which follow-up begins.
        times: The ends of its intervals, the horizon last.
        kinds: In how many ways follow-up can end: 1 where every time is that of an event; otherwise censoring, the
            event of interest, and those that compete with it.
    """

    start: float
    times: tuple[float, ...]
    kinds: int

    @property
    def counts(self) -> int:
        """The number of counts of one arm."""
        return len(self.times) * self.kinds + 1

    @property
    def widths(self) -> Array:
        """The length of each interval."""
        return np.diff((self.start, *self.times))


@dataclass(frozen=True)
class Measured:
    """Quantities of both arms, and how far each count moves them.

    Attributes:
        values: For each name, the quantity: an axis for the arms where it has two, and then for the times.
        slopes: Their derivatives by the counts, on further axes for strata, arms and counts.
    """

    values: dict[str, Array]
    slopes: dict[str, Array]


def measures(counts: Array, grid: Grid, included: Sequence[bool]) -> Measured:
    """Return survival, cumulative hazard, incidence and their means over time, and the log-rank statistic.

    Args:
        counts: The number of units by stratum, arm and count, in the order of `EventCounts.counts`.
        grid: The grid of times.
        included: Which strata are in the standard population.
    """
    keep = np.flatnonzero(included)
    local = [_with_slopes(counts[stratum], grid) for stratum in keep]
    sizes = np.maximum(counts[keep].sum(axis=(1, 2)), _LEAST)
    weights = sizes / sizes.sum()
    values: dict[str, Array] = {}
    slopes: dict[str, Array] = {}
    for name in local[0][0]:
        own = np.array([each[0][name] for each in local])
        own_slopes = np.array([each[1][name] for each in local])
        found = np.zeros((*own.shape[1:], *counts.shape))
        if name in ("observed", "expected"):
            values[name] = own.sum(axis=0)
            moved = own_slopes
        else:
            values[name] = np.tensordot(weights, own, axes=1)
            away = (own - values[name]) / sizes.sum()
            moved = _scaled(weights, own_slopes) + away.reshape(*away.shape, 1, 1)
        found[..., keep, :, :] = np.moveaxis(moved, 0, -3)
        slopes[name] = found
    _add_ratio(values, slopes)
    return Measured(values, slopes)


def _scaled(weights: Array, slopes: Array) -> Array:
    return weights.reshape(-1, *[1] * (slopes.ndim - 1)) * slopes


def _add_ratio(values: dict[str, Array], slopes: dict[str, Array]) -> None:
    """Add the log hazard ratio of Mantel and Haenszel, and the log-rank statistic, which has the same numerator."""
    one, other = (max(float(values[name]), _LEAST_EVENTS) for name in ("observed", "expected"))
    values["log_hazard_ratio"] = np.array(math.log(one / other))
    slopes["log_hazard_ratio"] = slopes["observed"] / one - slopes["expected"] / other
    values["log_rank"] = values["observed"] - values["expected"]
    slopes["log_rank"] = slopes["observed"] - slopes["expected"]


def _with_slopes(counts: Array, grid: Grid) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the quantities of one stratum, and their derivatives by its counts."""
    moved: Complex = counts.astype(complex) + _STEP * 1j * np.eye(counts.size).reshape(counts.size, *counts.shape)
    derivatives = {
        name: np.moveaxis(each.imag / _STEP, 0, -1).reshape(*each.shape[1:], *counts.shape)
        for name, each in _quantities(moved, grid).items()
    }
    values = {name: each[0].real for name, each in _quantities(counts[None].astype(complex), grid).items()}
    return values, derivatives


def _quantities(counts: Complex, grid: Grid) -> dict[str, Complex]:
    """Return the quantities of one stratum. Each line of counts has an axis for arms and one for counts."""
    shape = (*counts.shape[:-1], len(grid.times), grid.kinds)
    inside, beyond = counts[..., :-1].reshape(shape), counts[..., -1]
    leaving = inside.sum(axis=-1)
    censored = inside[..., 0] if grid.kinds > 1 else 0 * leaving
    events = inside[..., min(grid.kinds - 1, 1)]
    any_event = leaving - censored
    at_risk = beyond[..., None] + np.cumsum(leaving[..., ::-1], axis=-1)[..., ::-1]
    exposed = _at_least(at_risk - censored / 2, _LEAST)  # those who are censored, for half of the interval
    hazard = _within(any_event / exposed)
    survival = np.cumprod(1 - hazard, axis=-1)
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    incidence = np.cumsum(before * _within(events / exposed), axis=-1)
    until = np.concatenate([np.zeros_like(incidence[..., :1]), incidence[..., :-1]], axis=-1)
    time = _at_least(at_risk - leaving / 2, _LEAST / 2)  # of all at risk, in lengths of the interval
    control, treated = time[..., 0, :], time[..., 1, :]
    return {
        "survival": survival,
        "cumulative_hazard": np.cumsum(hazard, axis=-1),
        "incidence": incidence,
        "mean_time": ((before + survival) / 2 * grid.widths).sum(axis=-1),
        "time_lost": ((until + incidence) / 2 * grid.widths).sum(axis=-1),
        "observed": (events[..., 1, :] * control / (control + treated)).sum(axis=-1),
        "expected": (events[..., 0, :] * treated / (control + treated)).sum(axis=-1),
    }


def _at_least(numbers: Complex, least: float) -> Complex:
    return np.where(numbers.real < least, least, numbers)


def _within(hazards: Complex) -> Complex:
    return np.where(np.abs(hazards.real) > 1, np.sign(hazards.real), hazards)


def at_risk(counts: Array, grid: Grid) -> Array:
    """Return the number at risk at the start of each interval, on the last axis."""
    leaving = counts[..., :-1].reshape(*counts.shape[:-1], len(grid.times), grid.kinds).sum(axis=-1)
    found: Array = counts[..., -1:] + np.cumsum(leaving[..., ::-1], axis=-1)[..., ::-1]
    return found


def counts_behind(grid: Grid) -> Array:
    """Return how many counts add up to the number at risk at the start of each interval."""
    return np.arange(len(grid.times), 0, -1, dtype=float) * grid.kinds + 1.0


def martingale_residuals(counts: Array, grid: Grid) -> Array:
    """Return, for each count, the number of events of its units less what was to be expected in their time at risk.

    A unit's expected number is the cumulative hazard of its arm at the middle of its interval.
    """
    inside = counts[..., :-1].reshape(*counts.shape[:-1], len(grid.times), grid.kinds)
    leaving = inside.sum(axis=-1)
    censored = inside[..., 0] if grid.kinds > 1 else 0 * leaving
    hazard = (leaving - censored) / np.maximum(at_risk(counts, grid) - leaving / 2, 1e-12)
    cumulative = np.cumsum(hazard, axis=-1)
    expected = np.repeat((cumulative - hazard / 2)[..., None], grid.kinds, axis=-1)
    happened = np.array([0.0, *[1.0] * (grid.kinds - 1)]) if grid.kinds > 1 else np.ones(1)
    residuals = (happened - expected).reshape(*counts.shape[:-1], -1)
    return np.concatenate([residuals, -cumulative[..., -1:]], axis=-1)
