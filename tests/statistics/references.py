"""What each estimator computes where there is no privacy noise, by NumPy alone, with textbook standard errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from dpcausal.utils.arrays import Array
from dpcausal.vault.numerics.learners import quadratic_average
from tests.statistics.tables import EDGES, HIGH, LOW, columns

Estimand = Literal["ATE", "ATT", "ATC", "ATO"]


@dataclass(frozen=True)
class Reference:
    """An estimate and its standard error; one number, or one for each profile.

    Attributes:
        estimate: The estimate.
        sd: The standard error: the smallest and the largest that is right. They differ where one of two textbook
            formulas may be used.
        means: The mean outcome without and with treatment; None where the estimand has none.
        mean_sd: The standard error of the mean over profiles; 0 where it is not looked at.
    """

    estimate: Array
    sd: tuple[Array, Array]
    means: tuple[float, float] | None = None
    mean_sd: float = 0.0


def _one(
    estimate: float, sd: float, largest: float | None = None, means: tuple[float, float] | None = None
) -> Reference:
    return Reference(np.array([estimate]), (np.array([sd]), np.array([sd if largest is None else largest])), means)


def _read() -> tuple[Array, Array, Array]:
    table = columns()
    return table["t"], table["y"], np.column_stack([np.ones(len(table["t"])), table["a"], table["b"]])


@cache
def propensity(features: int = 3) -> Array:
    """Return the propensity of a logistic regression, by Newton's method."""
    t, _, design = _read()
    design, at = design[:, :features], np.zeros(features)
    for _ in range(20):
        score = 1 / (1 + np.exp(-design @ at))
        at += np.linalg.solve((design.T * (score * (1 - score))) @ design, design.T @ (t - score))
    fitted: Array = 1 / (1 + np.exp(-design @ at))
    return fitted


@cache
def predictions() -> tuple[Array, Array]:
    """Return the outcomes that a least-squares regression in each arm predicts for all units."""
    t, y, design = _read()
    control, treated = (design @ np.linalg.lstsq(design[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1))
    return control, treated


def difference_in_means() -> Reference:
    """Return the difference between the arms' means, with Welch's standard error."""
    t, y, _ = _read()
    arms = y[t == 0], y[t == 1]
    sd = sum(arm.var(ddof=1) / len(arm) for arm in arms) ** 0.5
    means = float(arms[0].mean()), float(arms[1].mean())
    return _one(means[1] - means[0], sd, means=means)


def median(bins: int) -> Callable[[], Reference]:
    """Return the difference between the arms' medians of grouped data, with the error that a density would give."""

    def reference() -> Reference:
        t, y, _ = _read()
        edges = np.linspace(LOW, HIGH, bins + 1)
        medians, variance = [], 0.0
        for arm in (0, 1):
            own = y[t == arm]
            below = np.array([(own < edge).mean() for edge in edges[:-1]] + [1.0])
            medians.append(float(np.interp(0.5, below, edges)))
            # Over half a standard deviation of the outcome, as wide as the interval is here about.
            near = [float(np.interp(0.5 + side * 0.02, below, edges)) for side in (-1, 1)]
            variance += ((near[1] - near[0]) / 0.04) ** 2 / 4 / len(own)
        return _one(medians[1] - medians[0], 0.9 * variance**0.5, 1.1 * variance**0.5)

    return reference


def strata(cap: float) -> Callable[[], Reference]:
    """Return the difference in means within strata of a, weighted by what they count as with this cap."""

    def reference() -> Reference:
        t, y, _ = _read()
        stratum = np.digitize(columns()["a"], EDGES)
        counts, effects, variances = [], [], []
        for each in range(len(EDGES) + 1):
            arms = y[(stratum == each) & (t == 0)], y[(stratum == each) & (t == 1)]
            c, treated = map(len, arms)
            counts.append(min(treated, cap * c) + min(c, cap * treated))
            effects.append(arms[1].mean() - arms[0].mean())
            variances.append(sum(arm.var(ddof=1) / len(arm) for arm in arms))
        weights = np.array(counts) / sum(counts)
        return _one(float(weights @ effects), float(weights**2 @ variances) ** 0.5)

    return reference


def mean_times(times: Sequence[float], *, by_strata: bool = False) -> Callable[[], Reference]:
    """Return the difference in means of outcomes that are moved to the middle of their interval: all are events.

    With strata of a, it is the mean over strata in proportion to their sizes.
    """

    def reference() -> Reference:
        t, y, _ = _read()
        edges = np.array([LOW, *times])
        middles = np.append((edges[1:] + edges[:-1]) / 2, edges[-1])
        moved = middles[np.searchsorted(times, y, side="right")] - LOW
        stratum = np.digitize(columns()["a"], EDGES) if by_strata else np.zeros(len(y))
        shares, means, variances = [], [], []
        for each in np.unique(stratum):
            arms = [moved[(stratum == each) & (t == arm)] for arm in (0, 1)]
            shares.append(float(np.mean(stratum == each)))
            means.append([arm.mean() for arm in arms])
            variances.append(sum(arm.var() / len(arm) for arm in arms))
        control, treated = np.array(shares) @ np.array(means)
        effects = np.diff(means, axis=1)[:, 0]
        between = np.array(shares) @ (effects - (treated - control)) ** 2 / len(y)
        sd = float(np.array(shares) ** 2 @ variances + between) ** 0.5
        return _one(float(treated - control), sd, means=(float(control), float(treated)))

    return reference


def regression_adjustment() -> Reference:
    """Return the mean difference between predictions, with a sandwich for each arm and the effects' own spread."""
    t, y, design = _read()
    control, treated = predictions()
    effects, variance = treated - control, 0.0
    for arm, predicted in ((0, control), (1, treated)):
        own = design[t == arm]
        reach = np.linalg.solve(own.T @ own, design.mean(axis=0)) @ own.T
        variance += float(reach**2 @ (y - predicted)[t == arm] ** 2)
    variance += effects.var() / len(t)
    return _one(float(effects.mean()), variance**0.5, means=(float(control.mean()), float(treated.mean())))


def over_all_units() -> Reference:
    """Return the mean difference over all units between predictions of regressions among those with an outcome."""
    table = columns("missing")
    t, y = table["t"], table["y"]
    design = np.column_stack([np.ones(len(t)), table["a"], table["b"]])
    means, effects, variance = [], np.zeros(len(t)), 0.0
    for arm, sign in ((0, -1), (1, 1)):
        own = (t == arm) & ~np.isnan(y)
        slopes = np.linalg.lstsq(design[own], y[own])[0]
        reach = np.linalg.solve(design[own].T @ design[own], design.mean(axis=0)) @ design[own].T
        variance += float(reach**2 @ (y[own] - design[own] @ slopes) ** 2)
        effects += sign * design @ slopes
        means.append(float((design @ slopes).mean()))
    variance += effects.var() / len(t)
    return _one(float(effects.mean()), variance**0.5, means=(means[0], means[1]))


def _balancing(estimand: Estimand) -> tuple[Array, Array]:
    """Return what a unit counts as in the target population, and its weight."""
    t, *_ = _read()
    e = propensity()
    target = {"ATE": np.ones_like(e), "ATT": e, "ATC": 1 - e, "ATO": e * (1 - e)}[estimand]
    return target, target * np.where(t == 1, 1 / e, 1 / (1 - e))


def weighting(estimand: Estimand) -> Callable[[], Reference]:
    """Return Hájek's estimate. Its standard error is smaller where it allows for the score being estimated."""

    def reference() -> Reference:
        t, y, design = _read()
        e, (_, weights) = propensity(), _balancing(estimand)
        means = [float(np.average(y, weights=weights * (t == arm))) for arm in (0, 1)]
        influence = sum(
            sign * weights * (t == arm) * (y - means[arm]) / (weights * (t == arm)).mean()
            for arm, sign in ((0, -1), (1, 1))
        )
        scores = design * (t - e)[:, None]
        explained = scores @ np.linalg.lstsq(scores, influence, rcond=None)[0]
        known, estimated = (float(np.sqrt((each**2).sum()) / len(t)) for each in (influence, influence - explained))
        return _one(means[1] - means[0], min(known, estimated), known, (means[0], means[1]))

    return reference


def doubly_robust(estimand: Estimand) -> Callable[[], Reference]:
    """Return the mean augmented score, with the standard error of its influence function."""

    def reference() -> Reference:
        t, y, _ = _read()
        control, treated = predictions()
        target, weights = _balancing(estimand)
        if estimand == "ATT":
            score, target = (2 * t - 1) * weights * (y - control), t
        else:
            score = target * (treated - control) + (2 * t - 1) * weights * (y - np.where(t == 1, treated, control))
        estimate = float(score.sum() / target.sum())
        sd = float(np.sqrt(((score - estimate * target) ** 2).sum()) / target.sum())
        means = None
        if estimand == "ATE":
            mean = float((control + (1 - t) * weights * (y - control)).mean())
            means = (mean, mean + estimate)
        return _one(estimate, sd, means=means)

    return reference


def matching() -> Reference:
    """Return each unit's outcome against that of the nearest unit of the other arm by the score of a."""
    t, y, _ = _read()
    score = propensity(2)
    uses = np.ones(len(t))
    for arm in (0, 1):
        seekers, servers = np.flatnonzero(t == arm), np.flatnonzero(t != arm)
        order = servers[np.argsort(score[servers])]
        place = np.searchsorted(score[order], score[seekers])
        below, above = order[np.maximum(place - 1, 0)], order[np.minimum(place, len(order) - 1)]
        nearest = np.where(np.abs(score[below] - score[seekers]) <= np.abs(score[above] - score[seekers]), below, above)
        uses += np.bincount(nearest, minlength=len(t))
    weights = (2 * t - 1) * uses / len(t)
    design = np.column_stack([np.ones(len(t)), columns()["a"]])
    around = np.zeros(len(t))
    for arm in (0, 1):
        own = t == arm
        fitted = design[own] @ np.linalg.lstsq(design[own], y[own], rcond=None)[0]
        around[own] = (y[own] - fitted).var()
    return _one(float(weights @ y), float(np.sqrt(weights**2 @ around)))


def _curve(design: Array, outcomes: Array, at: Array) -> Reference:
    """Return a least-squares curve at profiles, with its sandwich."""
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ outcomes
    around = design * (outcomes - design @ weights)[:, None]
    covariance = at @ inverse @ (around.T @ around) @ inverse @ at.T
    sd = np.sqrt(np.diag(covariance))
    return Reference(at @ weights, (sd, sd), mean_sd=float(np.sqrt(covariance.mean())))


def _line(a: Sequence[float] | Array) -> Array:
    return np.column_stack([np.ones(len(a)), a])


def _cells(a: Sequence[float] | Array) -> Array:
    return np.eye(len(EDGES) + 1)[np.digitize(a, EDGES)]


def _augmented() -> Array:
    t, y, _ = _read()
    e, (control, treated) = propensity(), predictions()
    scores: Array = treated - control + t * (y - treated) / e - (1 - t) * (y - control) / (1 - e)
    return scores


def residual_learner(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the R-learner's line in a."""

    def reference() -> Reference:
        t, y, _ = _read()
        e, (control, treated) = propensity(), predictions()
        missed = y - e * treated - (1 - e) * control
        return _curve(_line(columns()["a"]) * (t - e)[:, None], missed, _line(at))

    return reference


def augmented_learner(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the DR-learner's line in a."""
    return lambda: _curve(_line(columns()["a"]), _augmented(), _line(at))


def adjusted_groups(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the mean augmented score in each group of a."""
    return lambda: _curve(_cells(columns()["a"]), _augmented(), _cells(at))


def groups(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the difference in means in each group of a, with Welch's standard error."""

    def reference() -> Reference:
        t, y, _ = _read()
        group = np.digitize(columns()["a"], EDGES)
        found = []
        for each in np.digitize(at, EDGES):
            arms = [y[(group == each) & (t == arm)] for arm in (0, 1)]
            sd = sum(arm.var(ddof=1) / len(arm) for arm in arms) ** 0.5
            found.append((arms[1].mean() - arms[0].mean(), sd))
        estimates, sds = np.array(found).T
        return Reference(estimates, (sds, sds), mean_sd=float(np.sqrt((sds**2).sum()) / len(sds)))

    return reference


def blocks(count: int, at: Sequence[float]) -> Callable[[], Reference]:
    """Return the mean over blocks of neighbouring units of a ridge regression in each arm, at b = 0."""

    def reference() -> Reference:
        t, y, design = _read()
        profiles = np.column_stack([np.ones(len(at)), at, np.zeros(len(at))])
        found = []
        for block in np.array_split(np.arange(len(t)), count):
            slopes = []
            for arm in (0, 1):
                own = block[t[block] == arm]
                ridge = np.diag([1e-6, 0.1, 0.1])
                slopes.append(np.linalg.solve(design[own].T @ design[own] + ridge, design[own].T @ y[own]))
            found.append(profiles @ (slopes[1] - slopes[0]))
        sd = np.std(found, axis=0, ddof=1) / count**0.5
        return Reference(np.mean(found, axis=0), (sd, sd))

    return reference


def kernel(functions: Array, at: Array, ridge: float, limit: float) -> Reference:
    """Return the minimum of the log-cosh loss with a ridge on the functions' weights, by Newton's method.

    Args:
        functions: The functions of all units.
        at: The functions of the profiles.
        ridge: The ridge as a share of the number of units.
        limit: Where the loss turns linear, in half ranges of the outcome.
    """
    t, y, _ = _read()
    e, (control, treated) = propensity(), predictions()
    half = (HIGH - LOW) / 2
    missed, regressors = (y - e * treated - (1 - e) * control) / half, functions * (t - e)[:, None]
    weights = np.zeros(functions.shape[1])
    for _ in range(50):
        bent = np.tanh((missed - regressors @ weights) / limit)
        gradient = -limit * regressors.T @ bent + ridge * len(t) * weights
        bend = (regressors.T * (1 - bent**2)) @ regressors + ridge * len(t) * np.eye(len(weights))
        weights -= np.linalg.solve(bend, gradient)
    nothing = np.zeros(len(at))
    return Reference(half * at @ weights, (nothing, nothing))


def block_averages(count: int) -> Callable[[], Reference]:
    """Return the mean over blocks of neighbouring units of the vault's own learner of an average."""

    def found() -> Reference:
        t, y, design = _read()
        split = np.array_split(np.arange(len(t)), count)
        each = [quadratic_average(design[own, 1:], t[own], y[own], np.zeros((1, 2)))[0] for own in split]
        return _one(float(np.mean(each)), float(np.std(each)) / (count - 1) ** 0.5)

    return found
