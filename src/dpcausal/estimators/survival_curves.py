"""Survival curves and what follows from them, as functions of counts, with their slopes.

Everything here is post-processing of released numbers, so it costs no privacy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.uncertainty.derivatives import Numbers, slopes, within
from dpcausal.utils.arrays import Array

_LEAST = 1.0
"""The least number of units at risk, so that an empty arm has an answer like any other."""

_LEAST_EVENTS = 0.5
"""The least number of events behind a ratio of hazards, for the same reason."""


@dataclass(frozen=True)
class Grid:
    """A public grid of times.

    Attributes:
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
class SurvivalQuantities:
    """Quantities of both arms, and how far each count moves them.

    Attributes:
        values: For each name, the quantity: an axis for the arms where it has two, and then for the times.
        slopes: Their derivatives by the counts, on further axes for strata, arms and counts.
    """

    values: dict[str, Array]
    slopes: dict[str, Array]


def measures(counts: Array, grid: Grid, included: Sequence[bool]) -> SurvivalQuantities:
    """Return survival, cumulative hazard, incidence and their means over time, and the log-rank statistic.

    Args:
        counts: The number of units by stratum, arm and count, in the order of `EventCounts.counts`.
    """
    keep = np.flatnonzero(included).tolist()
    local = [_quantities(counts[stratum], grid) for stratum in keep]
    values = {name: np.asarray(each) for name, each in _standardised(local).items()}
    moved = np.zeros((sum(each.size for each in values.values()), *counts.shape))
    for place, stratum in enumerate(keep):

        def formula(own: Numbers, place: int = place) -> Numbers:
            all_strata = [*local[:place], _quantities(own, grid), *local[place + 1 :]]
            return np.concatenate([np.ravel(each) for each in _standardised(all_strata).values()])

        moved[:, stratum] = slopes(formula, counts[stratum])
    ends = np.cumsum([each.size for each in values.values()])[:-1]
    parts = zip(values.items(), np.split(moved, ends), strict=True)
    return SurvivalQuantities(values, {name: part.reshape(*each.shape, *counts.shape) for (name, each), part in parts})


def _standardised(strata: Sequence[Mapping[str, Numbers]]) -> dict[str, Numbers]:
    """Return the quantities of all strata: averages by their sizes, and sums of what the log-rank statistic counts.

    The log hazard ratio is that of Mantel and Haenszel; the log-rank statistic has the same numerator.
    """
    sizes = np.array([each["size"] for each in strata])
    every = {name: np.array([each[name] for each in strata]) for name in strata[0] if name != "size"}
    observed, expected = every.pop("observed").sum(axis=0), every.pop("expected").sum(axis=0)
    one, other = (within(each, _LEAST_EVENTS, np.inf) for each in (observed, expected))
    return {
        **{name: np.tensordot(sizes / sizes.sum(), each, axes=1) for name, each in every.items()},
        "log_hazard_ratio": np.log(one / other),
        "log_rank": observed - expected,
    }


def _quantities(counts: Numbers, grid: Grid) -> dict[str, Numbers]:
    """Return the quantities of one stratum, given its counts on an axis for arms and one for counts."""
    shape = (*counts.shape[:-1], len(grid.times), grid.kinds)
    inside, beyond = counts[..., :-1].reshape(shape), counts[..., -1]
    leaving = inside.sum(axis=-1)
    censored = inside[..., 0] if grid.kinds > 1 else 0 * leaving
    events = inside[..., min(grid.kinds - 1, 1)]
    any_event = leaving - censored
    at_risk = beyond[..., None] + np.cumsum(leaving[..., ::-1], axis=-1)[..., ::-1]
    exposed = _bounded(at_risk - censored / 2, _LEAST, np.inf)  # those who are censored, for half of the interval
    hazard = _bounded(any_event / exposed, -1.0, 1.0)
    survival = np.cumprod(1 - hazard, axis=-1)
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    incidence = np.cumsum(before * _bounded(events / exposed, -1.0, 1.0), axis=-1)
    until = np.concatenate([np.zeros_like(incidence[..., :1]), incidence[..., :-1]], axis=-1)
    time = _bounded(at_risk - leaving / 2, _LEAST / 2, np.inf)  # of all at risk, in lengths of the interval
    control, treated = time[..., 0, :], time[..., 1, :]
    return {
        "size": within(counts.sum(), _LEAST, np.inf),
        "survival": survival,
        "cumulative_hazard": np.cumsum(hazard, axis=-1),
        "incidence": incidence,
        "mean_time": ((before + survival) / 2 * grid.widths).sum(axis=-1),
        "time_lost": ((until + incidence) / 2 * grid.widths).sum(axis=-1),
        "observed": (events[..., 1, :] * control / (control + treated)).sum(axis=-1),
        "expected": (events[..., 0, :] * treated / (control + treated)).sum(axis=-1),
    }


def _bounded(numbers: Numbers, low: float, high: float) -> Numbers:
    """Return numbers, and beyond a bound the bound: it does not move, such as where an interval has nobody at risk."""
    bounded = np.clip(numbers.real, low, high)
    return np.where(bounded == numbers.real, numbers, bounded)


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
