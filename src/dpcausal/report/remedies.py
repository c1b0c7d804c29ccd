"""What would settle an inconclusive effect or reach a planned precision, with numbers.

All follows from the released estimate, its sampling error and its noise, so it costs no budget. Sampling variance falls
with the number of units, the variance of the noise with its square and with the square of epsilon.
"""

import math
from dataclasses import replace

from dpcausal.page.numbers import number, short
from dpcausal.report.scale import OutcomeScale
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.study.study import Study

_WEAK = 10.0
"""An epsilon above this guarantees so little that more units are the better advice."""
_NARROWEST = 2.0
"""Bounds that were chosen with care cannot be made narrower by more than this factor."""
_MOST_UNITS = 1e12
_NO_NOISE = 100.0
"""The largest epsilon of a guarantee, at which an estimator has next to no noise."""
_AS_ESTIMATED = 0.8
"""Noise in an estimated sampling error is taken to make it no larger than by this."""
_TIMES = (2, 3, 5, 8, 10, 20, 50, 100)
"""By how much a rehearsal tries more epsilon and more units."""


def remedies_for(  # noqa: PLR0913 (each is named where it is given)
    effect: Effect,
    interval: tuple[float, float],
    smallest: float,
    scale: OutcomeScale,
    *,
    schema: Schema | None,
    remaining: float | None,
    least_sampling: float,
) -> tuple[str, ...]:
    """Return what would settle it if the estimate and its errors stayed the same, cheapest first."""
    if not effect.sampling_sd and effect.privacy_sd:
        return ("More units or more epsilon. The sampling error is below the noise floor, so the number is unknown.",)
    variance = _allowed(effect, interval, abs(abs(effect.estimate) - smallest))
    units = _units(effect, variance)
    if units is None:
        return (_beyond_reach(effect, smallest, scale),)
    more_units = f"More units: about {number(units, 0)} instead of {number(effect.n, 0)}, at the same epsilon."
    times = _times_epsilon(effect, variance)
    if times is None and least_sampling**2 >= variance:
        return (f"{more_units} The sampling error alone is too large, so no epsilon would be enough.",)
    if times is None:
        unknown = "the sampling error was estimated at this epsilon, and may be smaller at a larger one."
        return (f"{more_units} Whether more epsilon would be enough is not known: {unknown}",)
    epsilon = _round_up(effect.guarantee.epsilon * times)
    budget = "" if remaining is None else f" ({short(remaining)} of the budget remains)"
    more_epsilon = (
        f"More epsilon: about {short(epsilon)} instead of {short(effect.guarantee.epsilon)}, as a new purchase{budget}."
    )
    affordable = epsilon <= min(_WEAK, math.inf if remaining is None else remaining)
    ordered = [more_epsilon, more_units] if affordable else [more_units, more_epsilon]
    return (*_tighter_bounds(schema, times), *ordered)


def left_in_decides(effect: Effect, smallest: float) -> bool:
    """Return whether confounding that may be left in prevents a conclusion, whatever the sample and the budget."""
    return effect.left_in > 0 and abs(abs(effect.estimate) - smallest) <= effect.bias_bound


def _beyond_reach(effect: Effect, smallest: float, scale: OutcomeScale) -> str:
    """Return why no number of units settles it."""
    if left_in_decides(effect, smallest):
        return (
            f"Confounding of up to {scale.size(effect.left_in)} may be left in, which neither more units nor "
            "more epsilon reduces: adjust for every declared confounder, or in finer strata, as a new "
            "purchase."
        )
    if effect.between_sd:
        return "The differences between sites alone are too large for a conclusion: add sites."
    return "The estimate is too close to the threshold: no realistic budget or number of units would settle it."


def least_sampling_sd(effect: Effect, study: Study | None) -> float:
    """Return the smallest sampling error that a larger epsilon may be expected to leave; 0 where that is not known.

    A rehearsal tells how much of an estimator's sampling error comes from noise, as that of noisy models does.
    """
    sampling = effect.sampling_sd
    if study is None or effect.sites or effect.n < 2 or not sampling:
        return 0.0
    if effect.sampling_is_a_bound or effect.privacy_sd > sampling:
        return 0.0
    now, later = (
        study.estimator.estimate(study.seen(study.rehearsal(effect.n)), epsilon=epsilon, delta=study.delta).sampling_sd
        for epsilon in (study.epsilon, _NO_NOISE)
    )
    return _AS_ESTIMATED * sampling * min(later / now, 1.0) if now and later else 0.0


def interval_remedies(effect: Effect, study: Study) -> tuple[str, ...]:
    """Return the epsilon and the number of units from which on a rehearsal of the study yields an interval."""
    if not study.rehearsed(effect.n).no_interval:
        units = number(effect.n, 0)
        return (
            f"A rehearsal with {units} units has an interval: check that the values in the table are those declared.",
        )
    stronger = (replace(study, epsilon=times * study.epsilon) for times in _TIMES if times * study.epsilon <= _WEAK)
    enough = next((each.epsilon for each in stronger if not each.rehearsed(effect.n).no_interval), None)
    found = []
    if enough is not None:
        now = short(study.epsilon)
        found.append(f"More epsilon: {short(enough)} instead of {now}, by rehearsal, as a new purchase.")
    larger = (times * effect.n for times in _TIMES)
    many = next((n for n in larger if not study.rehearsed(n).no_interval), None)
    if many is not None:
        now = number(effect.n, 0)
        found.append(f"More units: {number(many, 0)} instead of {now}, by rehearsal, at the same epsilon.")
    return tuple(found)


def planned_precision(effect: Effect, interval: tuple[float, float], planned: float, scale: OutcomeScale) -> str:
    """Return what would narrow an interval to the planned half-width; nothing where it is as narrow."""
    if (interval[1] - interval[0]) / 2 <= planned or not effect.sampling_sd:
        return ""
    variance = _allowed(effect, interval, planned)
    units, times = _units(effect, variance), _times_epsilon(effect, variance)
    if units is None:
        return ""
    either = ""
    if times is not None:
        either = f", or epsilon {short(_round_up(effect.guarantee.epsilon * times))} with these units"
    return f"For ± {scale.size(planned)}: about {number(units, 0)} units at this epsilon{either}."


def _allowed(effect: Effect, interval: tuple[float, float], half: float) -> float:
    """Return the variance of sampling and noise at which an interval has this half-width.

    It takes as many standard errors per half-width as now: slightly conservative where the share of noise is smaller.
    A bias stays.
    """
    now, half = (max(each - effect.bias_bound, 0.0) for each in ((interval[1] - interval[0]) / 2, half))
    error = math.hypot(effect.sampling_sd or 0.0, effect.between_sd, effect.privacy_sd) / now if now else 0.0
    return (half * error) ** 2 - effect.between_sd**2


def _units(effect: Effect, variance: float) -> float | None:
    """Return the units that reach a variance at this epsilon; None where no realistic number does."""
    if variance <= 0:
        return None
    square, privacy = (effect.sampling_sd or 0.0) ** 2, effect.privacy_sd
    units = effect.n * (square + math.sqrt(square**2 + 4 * privacy**2 * variance)) / (2 * variance)
    return None if units > _MOST_UNITS else _round_up(units) if units > 0 else None


def _times_epsilon(effect: Effect, variance: float) -> float | None:
    """Return by how much epsilon must grow to reach a variance with these units; None where no epsilon does."""
    left = variance - (effect.sampling_sd or 0.0) ** 2
    return effect.privacy_sd / math.sqrt(left) if left > 0 and effect.privacy_sd else None


def _tighter_bounds(schema: Schema | None, times: float) -> tuple[str, ...]:
    if schema is None or not isinstance(schema.outcome, Real) or times > _NARROWEST:
        return ()
    wide = schema.outcome.high - schema.outcome.low
    tighter = f"{schema.outcome.name} within a range of about {number(wide / times)} instead of {number(wide)}"
    only = "Only if public knowledge, not the table, justifies it."
    return (f"Tighter bounds: {tighter}, at the same epsilon, as a new purchase. {only}",)


def _round_up(value: float) -> float:
    """Round up to two significant digits.

    Example:
        >>> _round_up(1.234), _round_up(12_345), _round_up(2.0)
        (1.3, 13000.0, 2.0)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / unit, 9)) * unit:.10g}")
