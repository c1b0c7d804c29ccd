"""The expected precision of estimators and the cost of more, by rehearsal and from public numbers only."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.guarantee import Guarantee
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.real import Real
from dpcausal.uncertainty.interval import beyond
from dpcausal.utils.validation import is_number

Size = TypeVar("Size", int, float)

MOST_TRIED = 20
"""The largest number of numeric confounders to try."""

EPSILONS = tuple(round(10 ** (place / 6), 2) for place in range(-6, 7))
"""The epsilons of a curve of widths, from 0.1 to 10."""

_EPSILONS = [*(digits * 10.0**power for power in range(-4, 1) for digits in range(10, 100)), 100.0]
_NUMBERS = [*range(10, 1000), *(digits * 10**power for power in range(1, 7) for digits in range(100, 1000))]
"""The values that a search may find: round numbers, up to a billion units."""

_STEPS = 10
"""In so many steps a search looks for the first value that will not do."""


def half_width(effect: Effect, level: float = 0.95) -> float:
    """Return half the width of an effect's interval, the ± around its estimate; infinite where it has no interval."""
    if effect.no_interval:
        return math.inf
    low, high = effect.limits(level)
    return (high - low) / 2


def smallest_detectable(effect: Effect, power: float = 0.8) -> float:
    """Return the smallest true effect whose 95 % interval excludes 0 with this probability.

    The estimate must exceed the half width of the interval. So the true effect must exceed it by the one-sided quantile
    of the error, sampling and privacy noise together. For a normal error the sum is the usual 2.8 standard errors.
    """
    return half_width(effect) + half_width(effect, 2 * power - 1)


def wrong_sign(effect: Effect, size: float) -> float:
    """Return the probability that an estimate has the wrong sign where the true effect is of this size.

    That is the probability that the error, sampling and privacy noise together, exceeds the effect on the other side;
    with a bias up to the bound, where there is one.
    """
    return beyond(_known(effect, size) - effect.bias_bound, effect.sampling_sd or 0.0, effect.noise)


def type_s_error(effect: Effect, size: float, level: float = 0.95) -> float:
    """Return the probability that an estimate whose interval excludes 0 has the wrong sign (Gelman and Carlin 2014).

    It takes the interval to come out as wide as expected.
    """
    size, half = _known(effect, size), half_width(effect, level)
    wrong, right = (
        beyond(half - effect.bias_bound - sign * size, effect.sampling_sd or 0.0, effect.noise) for sign in (-1, 1)
    )
    return wrong / (wrong + right)


def _known(effect: Effect, size: float) -> float:
    """Return how far a true effect is from 0, if errors are known."""
    if effect.no_interval:
        raise RefusedError(
            expected="a plan with an interval",
            got=f"none: {effect.no_interval}",
            hint="plan another estimator, more units or more epsilon.",
        )
    if not (is_number(size) and size != 0):
        raise QueryError(
            expected="the size of an effect, in the outcome's units, other than 0",
            got=repr(size),
            hint="give the smallest effect that would matter, or plan.smallest_detectable.",
        )
    return abs(size)


def epsilon_for(width: float, estimator: Estimator, rehearsal: Rehearsal, delta: float) -> float | None:
    """Return the smallest epsilon, to two digits, with which to expect the estimate ± `width`; None if none is enough.

    None is enough where the sampling error alone is wider: then only more units help.
    """

    def narrow(epsilon: float) -> bool:
        return _within(estimator.estimate(rehearsal, epsilon=epsilon, delta=delta), width)

    least = _least(_EPSILONS, narrow)
    return None if least is None else float(f"{least:.2g}")


def _least(values: Sequence[Size], will_do: Callable[[Size], bool]) -> Size | None:
    """Return the smallest value from which on all will do, found in about 20 steps; None if none of these will do.

    Some estimators refuse an interval in between, so a value does not count if a larger one of these steps will not do,
    unless none beyond that one will: so many units may be too many for a limit that an estimator holds to.
    """
    step = len(values) // _STEPS + 1
    tops = (top for top in range(len(values) - 1, -1, -step) if will_do(values[top]))
    top = next(tops, -1)
    if top < 0:
        return None
    while top >= step and will_do(values[top - step]):
        top -= step
    return values[bisect_left(values, x=True, lo=max(top - step, 0), hi=top, key=will_do)]


def _within(effect: Effect, width: float) -> bool:
    """Return whether an effect has an interval that is narrow enough."""
    half = half_width(effect)
    return half <= width and math.isfinite(half)


def units_for(width: float, estimator: Estimator, rehearsal: Rehearsal, guarantee: Guarantee) -> int | None:
    """Return the smallest number of units, to three digits, with which to expect ± `width`; None beyond a billion."""

    def narrow(n: int) -> bool:
        expected = replace(rehearsal, n=n)
        return _within(estimator.estimate(expected, epsilon=guarantee.epsilon, delta=guarantee.delta), width)

    return _least(_NUMBERS, narrow)


def max_confounders(rehearsal: Rehearsal, guarantee: Guarantee) -> int:
    """Return the most numeric confounders for which a regression adds less privacy noise than sampling error."""

    def drowned(count: int) -> bool:
        covariates = [Real(f"confounder {place}", 0, 1) for place in range(count)]
        source = replace(rehearsal, schema=replace(rehearsal.schema, covariates=covariates, required=()), typical=())
        regression = RegressionAdjustment(covariates=[column.name for column in covariates])
        effect = regression.estimate(source, epsilon=guarantee.epsilon, delta=guarantee.delta)
        return effect.sampling_sd is None or effect.privacy_sd >= effect.sampling_sd

    return bisect_left(range(1, MOST_TRIED + 1), x=True, key=drowned)


def width_curve(estimator: Estimator, rehearsal: Rehearsal, delta: float) -> list[tuple[float, float]]:
    """Return the expected half widths at several epsilons; only those at which there is an interval."""
    effects = ((at, estimator.estimate(rehearsal, epsilon=at, delta=delta)) for at in EPSILONS)
    return [(at, half_width(effect)) for at, effect in effects if not effect.no_interval]
