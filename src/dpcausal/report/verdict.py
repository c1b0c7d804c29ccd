"""What an effect lets one conclude, and where it lets nothing, the cheapest thing that would."""

import math
from dataclasses import dataclass
from typing import Literal

from dpcausal.effect import Effect
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.text import format_number

Kind = Literal["higher", "lower", "no worthwhile difference", "inconclusive", "no interval", "rehearsal"]

_WEAK = 10.0
"""Beyond this an epsilon promises so little that more units are the better advice."""
_NARROWEST = 2.0
"""Nobody who chose bounds with care can make them more than so many times narrower."""


@dataclass(frozen=True)
class Verdict:
    """What may be concluded.

    Attributes:
        kind: The conclusion in a word.
        text: The conclusion in a sentence.
        remedies: Where it is inconclusive, what would settle it, cheapest first.
    """

    kind: Kind
    text: str
    remedies: tuple[str, ...] = ()


def verdict_on(
    effect: Effect, *, smallest: float = 0.0, schema: Schema | None = None, left: float | None = None
) -> Verdict:
    """What an effect's 95 % interval lets one conclude.

    Args:
        effect: The effect.
        smallest: The smallest effect that would be worthwhile, chosen before anything was released.
        schema: What is public about the table, where it is known.
        left: The epsilon that the data set's budget has left, where it is known.
    """
    control, treated = effect.arms
    if effect.rehearsed:
        return Verdict("rehearsal", "Nothing was asked of any table yet: the widths are what to expect.")
    if effect.no_interval:
        return Verdict("no interval", f"No conclusion: no interval could be shown to cover ({effect.no_interval}).")
    low, high = effect.interval()
    beyond = f" by more than {format_number(smallest)}, the smallest effect called worthwhile" if smallest else ""
    if low > smallest:
        return Verdict("higher", f"Mean {effect.outcome} is higher with {treated} than with {control}{beyond}.")
    if high < -smallest:
        return Verdict("lower", f"Mean {effect.outcome} is lower with {treated} than with {control}{beyond}.")
    if smallest and -smallest < low and high < smallest:
        says = f"No worthwhile difference: the interval lies within {format_number(smallest)} on either side of 0."
        return Verdict("no worthwhile difference", says)
    holds = _held(low, high, smallest)
    says = (
        f"Inconclusive at this budget: the interval from {format_number(low)} to {format_number(high)} holds {holds}."
    )
    return Verdict("inconclusive", says, _remedies(effect, smallest, schema, left))


def _held(low: float, high: float, smallest: float) -> str:
    """What an interval holds that would have to be outside."""
    if low <= 0 <= high:
        return "0" if not smallest else "0, and effects that would be worthwhile"
    return (
        f"effects smaller and larger than {format_number(smallest)}, the smallest called worthwhile; it does not hold 0"
    )


def _remedies(effect: Effect, smallest: float, schema: Schema | None, left: float | None) -> tuple[str, ...]:
    """What would settle it if the estimate and its errors stayed as they are, cheapest first."""
    if not effect.sampling_sd and effect.privacy_sd:
        return (
            "More units or more epsilon: the sampling error cannot be seen under noise, so nobody can say how many.",
        )
    low, high = effect.interval()
    wanted, half = abs(abs(effect.estimate) - smallest), (high - low) / 2
    sampling, between, privacy = effect.sampling_sd or 0.0, effect.between_sd, effect.privacy_sd
    # As many standard errors per half width as now: a few too many where there is less noise, which errs to be safe.
    error = math.hypot(sampling, between, privacy) / half if half else 0.0
    room = (wanted * error) ** 2 - between**2
    if room <= 0 or effect.n * _times(sampling, privacy, room) > 1e12:
        alone = "Differences between sites alone are" if between else "The estimate is so close that any error is"
        more = "more sites would help" if between else "no budget and no number of units that exists would settle it"
        return (f"{alone} too large for a conclusion: {more}.",)
    units = (
        f"More units: about {_round_up(effect.n * _times(sampling, privacy, room)):,.0f} in place of {effect.n:,}, "
        f"at the same epsilon."
    )
    if room <= sampling**2:
        return (f"{units} Sampling error alone is too large: no epsilon would do.",)
    times = privacy / math.sqrt(room - sampling**2)
    epsilon = _round_up(effect.guarantee.epsilon * times)
    has = "" if left is None else f" (the budget has {left:g} left)"
    more = f"More epsilon: about {epsilon:g} in place of {effect.guarantee.epsilon:g}, paid anew{has}."
    affordable = epsilon <= min(_WEAK, math.inf if left is None else left)
    ordered = [more, units] if affordable else [units, more]
    return (*_tighter(schema, times), *ordered)


def _tighter(schema: Schema | None, times: float) -> tuple[str, ...]:
    if schema is None or not isinstance(schema.outcome, Real) or times > _NARROWEST:
        return ()
    wide = schema.outcome.high - schema.outcome.low
    narrower = f"within a range of about {format_number(wide / times)} in place of {format_number(wide)}"
    price = "at the same epsilon, paid anew. Only where public knowledge, not the table, allows it"
    return (f"Tighter bounds: {schema.outcome.name} {narrower}, {price}.",)


def _times(sampling: float, privacy: float, room: float) -> float:
    """How many times as many units bring the variance down to `room`: sampling falls with n, noise with its square."""
    return (sampling**2 + math.sqrt(sampling**4 + 4 * privacy**2 * room)) / (2 * room)


def _round_up(value: float) -> float:
    """A number with two digits, not below the other.

    Example:
        >>> _round_up(1.234), _round_up(12_345), _round_up(2.0)
        (1.3, 13000.0, 2.0)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / unit, 9)) * unit:.10g}")
