"""The conclusion that an effect allows and, where it allows none, the cheapest way to reach one."""

import math
from dataclasses import dataclass
from typing import Literal

from dpcausal.effect import Effect
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.text import format_number

Kind = Literal["higher", "lower", "no worthwhile difference", "inconclusive", "no interval", "rehearsal"]

_WEAK = 10.0
"""An epsilon above this guarantees so little that more units are the better advice."""
_NARROWEST = 2.0
"""Bounds that were chosen with care cannot be made narrower by more than this factor."""


@dataclass(frozen=True)
class Verdict:
    """A conclusion.

    Attributes:
        kind: The conclusion in a word.
        text: The conclusion in a sentence.
        remedies: If it is inconclusive, what would settle it, cheapest first.
    """

    kind: Kind
    text: str
    remedies: tuple[str, ...] = ()


def verdict_on(
    effect: Effect,
    interval: tuple[float, float] | None,
    *,
    smallest: float = 0.0,
    schema: Schema | None = None,
    remaining: float | None = None,
) -> Verdict:
    """Draw the conclusion that an effect's 95 % interval allows.

    Args:
        effect: The effect.
        interval: Its 95 % interval, if it has one.
        smallest: The smallest worthwhile effect, chosen before anything was released.
        schema: The table's schema, if known.
        remaining: The remaining epsilon of the budget, if known.
    """
    control, treated = effect.arms
    if effect.rehearsed:
        return Verdict("rehearsal", "This is a rehearsal: no table was queried, and the widths are expected ones.")
    if interval is None:
        return Verdict("no interval", f"No conclusion: there is no valid interval ({effect.no_interval}).")
    low, high = interval
    beyond = f" by more than {format_number(smallest)}, the smallest worthwhile effect" if smallest else ""
    if low > smallest:
        return Verdict("higher", f"{_subject(effect)} is higher with {treated} than with {control}{beyond}.")
    if high < -smallest:
        return Verdict("lower", f"{_subject(effect)} is lower with {treated} than with {control}{beyond}.")
    if smallest and -smallest < low and high < smallest:
        text = f"No worthwhile difference: the interval is within ± {format_number(smallest)}."
        return Verdict("no worthwhile difference", text)
    contains = _undecided(low, high, smallest)
    text = (
        f"Inconclusive at this budget: the interval {format_number(low)} to {format_number(high)} contains {contains}."
    )
    return Verdict("inconclusive", text, _remedies(effect, interval, smallest, schema, remaining))


def _subject(effect: Effect) -> str:
    """Return what the arms differ in, as the beginning of a sentence."""
    return f"The {effect.quantity}" if effect.quantity else f"Mean {effect.outcome}"


def _undecided(low: float, high: float, smallest: float) -> str:
    """Return what an interval contains that a conclusion would have to exclude."""
    if low <= 0 <= high:
        return "0" if not smallest else "0 and worthwhile effects"
    return f"effects below and above {format_number(smallest)}, the smallest worthwhile effect, but not 0"


def _remedies(
    effect: Effect, interval: tuple[float, float], smallest: float, schema: Schema | None, remaining: float | None
) -> tuple[str, ...]:
    """Return what would settle it if the estimate and its errors stayed the same, cheapest first."""
    if not effect.sampling_sd and effect.privacy_sd:
        return ("More units or more epsilon. The sampling error is below the noise floor, so the number is unknown.",)
    low, high = interval
    distance, half = abs(abs(effect.estimate) - smallest), (high - low) / 2
    sampling, between, privacy = effect.sampling_sd or 0.0, effect.between_sd, effect.privacy_sd
    # As many standard errors per half-width as now: slightly conservative where the share of noise is smaller.
    error = math.hypot(sampling, between, privacy) / half if half else 0.0
    variance = (distance * error) ** 2 - between**2
    if variance <= 0 or effect.n * _times(sampling, privacy, variance) > 1e12:
        if between:
            return ("The differences between sites alone are too large for a conclusion: add sites.",)
        return ("The estimate is too close to the threshold: no realistic budget or number of units would settle it.",)
    units = (
        f"More units: about {_round_up(effect.n * _times(sampling, privacy, variance)):,.0f} instead of {effect.n:,}, "
        "at the same epsilon."
    )
    if variance <= sampling**2:
        return (f"{units} The sampling error alone is too large, so no epsilon would be enough.",)
    times = privacy / math.sqrt(variance - sampling**2)
    epsilon = _round_up(effect.guarantee.epsilon * times)
    budget = "" if remaining is None else f" ({remaining:g} of the budget remains)"
    more = f"More epsilon: about {epsilon:g} instead of {effect.guarantee.epsilon:g}, as a new purchase{budget}."
    affordable = epsilon <= min(_WEAK, math.inf if remaining is None else remaining)
    ordered = [more, units] if affordable else [units, more]
    return (*_tighter_bounds(schema, times), *ordered)


def _tighter_bounds(schema: Schema | None, times: float) -> tuple[str, ...]:
    if schema is None or not isinstance(schema.outcome, Real) or times > _NARROWEST:
        return ()
    wide = schema.outcome.high - schema.outcome.low
    narrower = f"a range of about {format_number(wide / times)} instead of {format_number(wide)}"
    price = "at the same epsilon, as a new purchase. Only if public knowledge, not the table, justifies it"
    return (f"Tighter bounds: {schema.outcome.name} within {narrower}, {price}.",)


def _times(sampling: float, privacy: float, variance: float) -> float:
    """Return by how much n must grow to reach a variance: sampling variance falls with n, noise with its square."""
    return (sampling**2 + math.sqrt(sampling**4 + 4 * privacy**2 * variance)) / (2 * variance)


def _round_up(value: float) -> float:
    """Round up to two significant digits.

    Example:
        >>> _round_up(1.234), _round_up(12_345), _round_up(2.0)
        (1.3, 13000.0, 2.0)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / unit, 9)) * unit:.10g}")
