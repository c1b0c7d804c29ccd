"""What each estimator computes where there is no privacy noise, by NumPy alone, with textbook standard errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy import stats

from dpcausal.utils.arrays import Array
from tests.statistics.tables import EDGES, HIGH, LOW, Kind, columns

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


def one(
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
    return one(means[1] - means[0], sd, means=means)


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
        return one(medians[1] - medians[0], 0.9 * variance**0.5, 1.1 * variance**0.5)

    return reference


def below(edge: float) -> Callable[[], Reference]:
    """Return the difference between the arms' shares of outcomes below an edge."""

    def reference() -> Reference:
        t, y, _ = _read()
        shares = [float((y[t == arm] < edge).mean()) for arm in (0, 1)]
        sd = sum(share * (1 - share) / (t == arm).sum() for arm, share in enumerate(shares)) ** 0.5
        return one(shares[1] - shares[0], float(sd))

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
        return one(float(weights @ effects), float(weights**2 @ variances) ** 0.5)

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
        return one(float(treated - control), sd, means=(float(control), float(treated)))

    return reference


def followed_up(times: Sequence[float], ends: int, estimand: Estimand | None = None) -> Callable[[], Reference]:
    """Return the difference in restricted mean survival time, of units that are censored for half of their interval.

    Args:
        times: The ends of the intervals, the horizon last.
        ends: Which way to end follow-up is the event of interest; 0 for any but censoring, for survival time.
        estimand: Whose survival weights by the propensity are for; None without weights. The smallest standard error
            allows for the score being estimated.
    """
    edges = np.array([LOW, *times])

    def of_arm(counts: Array) -> float:
        inside = counts[: 3 * len(times)].reshape(-1, 3)
        leaving = inside.sum(axis=1)
        exposed = counts[-1] + np.cumsum(leaving[::-1])[::-1] - inside[:, 0] / 2
        survival = np.append(1.0, np.cumprod(1 - inside[:, 1:].sum(axis=1) / exposed))
        if ends:
            return float((survival[:-1] * inside[:, ends] / exposed).sum())
        return float((np.diff(edges) * (survival[1:] + survival[:-1]) / 2).sum())

    def reference() -> Reference:
        table = columns("design")
        t, interval = table["t"], np.searchsorted(times, table["y"], side="right")
        cell = np.where(interval < len(times), 3 * interval + table["end"], 3 * len(times)).astype(int)
        weights = _balancing(estimand)[1] if estimand else np.ones(len(t))
        means, influence = [], np.zeros(len(t))
        for arm, sign in ((0, -1), (1, 1)):
            own = t == arm
            counts = np.bincount(cell[own], weights=weights[own], minlength=3 * len(times) + 1)
            means.append(of_arm(counts.astype(float)))
            steps = np.eye(len(counts)) * 1e-3
            slopes = np.array([of_arm(counts + step) - of_arm(counts - step) for step in steps]) / 2e-3
            influence[own] = sign * (weights * slopes[cell])[own]
        return one(means[1] - means[0], *_errors(influence, estimand), means=(means[0], means[1]))

    return reference


def _errors(influence: Array, estimand: Estimand | None) -> tuple[float, float]:
    """Return the standard error for an estimated score, and that for known weights."""
    t, _, design = _read()
    known = float(np.linalg.norm(influence))
    if not estimand:
        return known, known
    scores = design * (t - propensity())[:, None]
    explained = scores @ np.linalg.lstsq(scores, influence, rcond=None)[0]
    return min(known, float(np.linalg.norm(influence - explained))), known


def weighted_median(bins: int, estimand: Estimand) -> Callable[[], Reference]:
    """Return the difference between weighted medians of grouped data, with the error that a density would give."""

    def reference() -> Reference:
        t, y, _ = _read()
        _, weights = _balancing(estimand)
        edges, medians, influence = np.linspace(LOW, HIGH, bins + 1), [], np.zeros(len(t))
        for arm, sign in ((0, -1), (1, 1)):
            own = t == arm
            below = np.array([np.average(y[own] < edge, weights=weights[own]) for edge in edges[:-1]] + [1.0])
            medians.append(float(np.interp(0.5, below, edges)))
            near = [float(np.interp(0.5 + side * 0.04, below, edges)) for side in (-1, 1)]
            share = weights * ((y < medians[-1]) - 0.5) / weights[own].sum()
            influence[own] = -sign * ((near[1] - near[0]) / 0.08 * share)[own]
        smallest, largest = _errors(influence, estimand)
        return one(medians[1] - medians[0], 0.9 * smallest, 1.1 * largest)

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
    return one(float(effects.mean()), variance**0.5, means=(float(control.mean()), float(treated.mean())))


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
    return one(float(effects.mean()), variance**0.5, means=(means[0], means[1]))


def _balancing(estimand: Estimand) -> tuple[Array, Array]:
    """Return what a unit counts as in the target population, and its weight."""
    t, *_ = _read()
    e = propensity()
    target = {"ATE": np.ones_like(e), "ATT": e, "ATC": 1 - e, "ATO": e * (1 - e)}[estimand]
    return target, target * np.where(t == 1, 1 / e, 1 / (1 - e))


def weighting(estimand: Estimand) -> Callable[[], Reference]:
    """Return Hájek's estimate. Its standard error is smaller where it allows for the score being estimated."""

    def reference() -> Reference:
        t, y, _ = _read()
        _, weights = _balancing(estimand)
        means = [float(np.average(y, weights=weights * (t == arm))) for arm in (0, 1)]
        influence = sum(
            sign * weights * (t == arm) * (y - means[arm]) / (weights * (t == arm)).sum()
            for arm, sign in ((0, -1), (1, 1))
        )
        return one(means[1] - means[0], *_errors(np.asarray(influence), estimand), means=(means[0], means[1]))

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
        return one(estimate, sd, means=means)

    return reference


def doubly_robust_over_all_units() -> Reference:
    """Return the mean over all units of scores whose residuals are weighted for arm and for having an outcome."""
    table = columns("missing")
    t, y = table["t"], table["y"]
    design, seen = np.column_stack([np.ones(len(t)), table["a"], table["b"]]), ~np.isnan(y)
    score = np.zeros(len(t))
    for arm, sign in ((0, -1), (1, 1)):
        own = (t == arm) & seen
        predicted = design @ np.linalg.lstsq(design[own], y[own])[0]
        of_arm = np.abs(1 - arm - _logistic(design, t, np.ones(len(t))))
        chance = of_arm * _logistic(design, seen.astype(float), (t == arm).astype(float))
        score += sign * (predicted + np.where(own, np.where(seen, y, 0) - predicted, 0) / chance)
    return one(float(score.mean()), float(score.std() / np.sqrt(len(t))))


def _logistic(design: Array, answers: Array, among: Array) -> Array:
    """Return everybody's probability by a logistic regression among some, by Newton's method."""
    at = np.zeros(design.shape[1])
    for _ in range(20):
        share = 1 / (1 + np.exp(-design @ at))
        curvature = (design.T * (among * share * (1 - share))) @ design
        at += np.linalg.solve(curvature, design.T @ (among * (answers - share)))
    fitted: Array = 1 / (1 + np.exp(-design @ at))
    return fitted


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
    return one(float(weights @ y), float(np.sqrt(weights**2 @ around)))


def _curve(design: Array, outcomes: Array, at: Array) -> Reference:
    """Return a least-squares curve at profiles, with its sandwich."""
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ outcomes
    around = design * (outcomes - design @ weights)[:, None]
    covariance = at @ inverse @ (around.T @ around) @ inverse @ at.T
    sd = np.sqrt(np.diag(covariance))
    return Reference(at @ weights, (sd, sd), mean_sd=float(np.sqrt(covariance.mean())))


def line_of(a: Sequence[float] | Array) -> Array:
    return np.column_stack([np.ones(len(a)), a])


def _groups_of(a: Sequence[float] | Array) -> Array:
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
        return _curve(line_of(columns()["a"]) * (t - e)[:, None], missed, line_of(at))

    return reference


def augmented_learner(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the DR-learner's line in a."""
    return lambda: _curve(line_of(columns()["a"]), _augmented(), line_of(at))


def adjusted_groups(at: Sequence[float]) -> Callable[[], Reference]:
    """Return the mean augmented score in each group of a."""
    return lambda: _curve(_groups_of(columns()["a"]), _augmented(), _groups_of(at))


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


def clusters() -> Reference:
    """Return the difference in means over persons, with the error of a ratio for clusters of unlike sizes."""
    table = columns("design")
    means, variance, equal = [], 0.0, 0.0
    for arm in (0, 1):
        own = table["t"] == arm
        _, place = np.unique(table["village"][own], return_inverse=True)
        sizes, totals = np.bincount(place), np.bincount(place, weights=table["y"][own])
        means.append(float(totals.sum() / sizes.sum()))
        residuals, shares = totals - means[-1] * sizes, sizes / sizes.sum()
        square = float(shares @ shares)
        left = 1 - 2 * float((shares**3).sum()) / square + square
        variance += float(residuals @ residuals) / float(sizes.sum()) ** 2 / left
        equal += 1 / square
    widened = float(stats.t.ppf(0.975, round(equal) - 2) / stats.norm.ppf(0.975))
    return one(means[1] - means[0], widened * variance**0.5, means=(means[0], means[1]))


def compliers(kind: Kind = "design") -> Callable[[], Reference]:
    """Return Wald's ratio, with the error of the outcome less the ratio times the treatment received."""

    def reference() -> Reference:
        table = columns(kind)
        t, y, received = table["t"], table["y"], table["received"]
        effect, share = (each[t == 1].mean() - each[t == 0].mean() for each in (y, received))
        rest = y - effect / share * received
        sd = sum(rest[t == arm].var(ddof=1) / (t == arm).sum() for arm in (0, 1)) ** 0.5
        return one(float(effect / share), float(sd / abs(share)))

    return reference


def two_stage_least_squares() -> Reference:
    """Return the coefficient of the treatment received, with the assignment as instrument, and its sandwich."""
    table = columns("design")
    ones = np.ones(len(table["t"]))
    regressors, instruments = (
        np.column_stack([table[name], ones, table["a"], table["b"]]) for name in ("received", "t")
    )
    inverse = np.linalg.inv(instruments.T @ regressors)
    found = inverse @ instruments.T @ table["y"]
    around = instruments * (table["y"] - regressors @ found)[:, None]
    return one(float(found[0]), float(np.sqrt((inverse @ (around.T @ around) @ inverse.T)[0, 0])))


def adjusted_compliers() -> Reference:
    """Return the ratio of two regression-adjusted effects, with a sandwich for each arm and the effects' own spread."""
    table = columns("design")
    t, design = table["t"], np.column_stack([np.ones(len(table["t"])), table["a"], table["b"]])

    def effects(response: Array) -> tuple[float, Array]:
        apart, influence = np.zeros(len(t)), np.zeros(len(t))
        for arm, sign in ((0, -1), (1, 1)):
            own = t == arm
            fitted = np.linalg.lstsq(design[own], response[own], rcond=None)[0]
            apart += sign * design @ fitted
            reach = np.linalg.solve(design[own].T @ design[own], design.mean(axis=0)) @ design[own].T
            influence[own] += sign * reach * (response[own] - design[own] @ fitted)
        return float(apart.mean()), influence + (apart - apart.mean()) / len(t)

    (effect, of_effect), (share, of_share) = effects(table["y"]), effects(table["received"])
    influence = of_effect - effect / share * of_share
    return one(effect / share, float(np.linalg.norm(influence)) / share)


def change(low: float, high: float, kind: Kind = "design") -> Callable[[], Reference]:
    """Return the difference in mean change from before, within bounds, with Welch's standard error."""

    def reference() -> Reference:
        table = columns(kind)
        moved = np.clip(table["y"] - table["before"], low, high)
        arms = moved[table["t"] == 0], moved[table["t"] == 1]
        return one(float(arms[1].mean() - arms[0].mean()), sum(arm.var(ddof=1) / len(arm) for arm in arms) ** 0.5)

    return reference


def _cells(kind: Kind, factor: str, weights: Sequence[Sequence[float]]) -> Reference:
    """Return a sum over levels of a factor and arms of weighted means."""
    table = columns(kind)
    estimate, variance = 0.0, 0.0
    for level, of_arms in enumerate(weights):
        for arm, weight in enumerate(of_arms):
            own = table["y"][(table[factor] == level) & (table["t"] == arm)]
            estimate += weight * float(own.mean())
            variance += weight**2 * float(own.var(ddof=1)) / len(own)
    return one(estimate, variance**0.5)


def waves(first: int, second: int, kind: Kind = "design") -> Callable[[], Reference]:
    """Return how much more the treated arm's mean changes from one wave to another, of units seen once."""
    signs = {first: -1.0, second: 1.0}
    return lambda: _cells(kind, "wave", [(-signs.get(wave, 0.0), signs.get(wave, 0.0)) for wave in range(3)])


def factorial(kind: Kind = "design") -> Callable[[], Reference]:
    """Return the main effect of the treatment: the mean of its effects at both levels of the second factor."""
    return lambda: _cells(kind, "second", [(-0.5, 0.5), (-0.5, 0.5)])


def interaction() -> Reference:
    """Return the effect of the treatment at the second level of the factor less that at the first."""
    return _cells("design", "second", [(1, -1), (-1, 1)])


def skewed() -> Reference:
    """Return the difference between the arms' means of skewed outcomes as they are, with Welch's standard error."""
    table = columns("skewed")
    arms = table["y"][table["t"] == 0], table["y"][table["t"] == 1]
    sd = sum(arm.var(ddof=1) / len(arm) for arm in arms) ** 0.5
    means = float(arms[0].mean()), float(arms[1].mean())
    return one(means[1] - means[0], sd, means=means)
