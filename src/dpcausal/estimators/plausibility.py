"""Signs, in what was released anyway, that a table does not read as its schema declares.

Post-processing: nothing here asks a question, so nothing here costs privacy. No sign is a proof, and a table without
signs may still be wrong.
"""

import math
from dataclasses import dataclass, replace

from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.schema import Schema
from dpcausal.text import format_number

_WITHIN = 4.0
"""A number is at a value where it is no further off than so many standard deviations of its noise. Laplace noise stays
within in 996.5 of 1,000 cases, and Gaussian noise in 99,994 of 100,000."""

_MEAN, _RISK, _VARIANCE, _VARIANCE_ALONE, _SIZE = 0.04, 0.02, 0.02, 0.0005, 0.05
"""A sign counts where noise could hide no more than this: of the range in a mean, or in a risk, of the squared range in
a variance, in one without means beside it, and of all units in an arm's size."""

_FAR = 2.0
"""A width is far from the planned one where it is so many times as large, or as small."""

_FREE = "Read off the released numbers: this cost no privacy."
_CELLS = "cells that do not read as declared (decimal or thousands signs, units, spelling)"
_REMEDY = "where the table is, run: dpcausal check STUDY --table TABLE"


@dataclass(frozen=True)
class Measured:
    """A released number.

    Attributes:
        value: The number, noise included.
        noise_sd: The standard deviation of the privacy noise in it.
    """

    value: float
    noise_sd: float

    def is_at(self, value: float) -> bool:
        """Whether it is at a value, as far as noise tells."""
        return abs(self.value - value) <= _WITHIN * self.noise_sd

    def tells(self, size: float) -> bool:
        """Whether noise could hide no more than this size."""
        return _WITHIN * self.noise_sd <= size


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What the releases behind an effect tell of the table besides.

    Attributes:
        sizes: Each arm's number of units, control first.
        means: Each arm's mean outcome, control first.
        variance: The outcome's variance within arms or strata.
        unread: Covariates that are all what an unreadable cell counts as, as far as noise tells.
    """

    sizes: tuple[Measured, ...] = ()
    means: tuple[Measured, ...] = ()
    variance: Measured | None = None
    unread: tuple[str, ...] = ()


def warned(effect: Effect, schema: Schema, signs: Signs) -> Effect:
    """Return the effect with a warning for each sign that something is wrong. A rehearsal has none."""
    if effect.rehearsed:
        return effect
    found = (
        *_of_outcomes(effect, schema, signs),
        *_of_covariates(schema, signs),
        *_of_sizes(effect, signs),
        *_of_range(effect, schema),
    )
    return with_warnings(effect, *found)


def with_warnings(effect: Effect, *texts: str) -> Effect:
    """Return the effect with more warnings, each once."""
    return replace(effect, warnings=tuple(dict.fromkeys((*effect.warnings, *(f"{text}. {_FREE}" for text in texts)))))


def _of_outcomes(effect: Effect, schema: Schema, signs: Signs) -> tuple[str, ...]:
    """Whether all outcomes are the one that an unreadable cell counts as.

    Both means have to be there and no variance may be seen. Where noise could hide a variance, a mean in the middle is
    a sign all the same, unless bounds lie evenly about 0: changes and differences are centred by their nature.
    """
    low, high = schema.outcome_bounds
    variance, missing = signs.variance, missing_outcome(schema)
    if variance is None or abs(effect.estimate) > _WITHIN * effect.privacy_sd:
        return ()
    tells = variance.tells((_VARIANCE if signs.means else _VARIANCE_ALONE) * (high - low) ** 2)
    if variance.value > (3 if tells else 2) * variance.noise_sd or not (tells or (signs.means and low != -high)):
        return ()
    most = _RISK if isinstance(schema.outcome, Binary) else _MEAN * (high - low)
    if not all(mean.is_at(missing) and mean.tells(most) for mean in signs.means):
        return ()
    where = (
        f"both arms' means are {format_number(missing)}, which an unreadable cell counts as, and "
        if signs.means
        else ""
    )
    cause = f"Unless that is so by design, the usual cause: {_CELLS}, each of which counts as {format_number(missing)}"
    return (f"{where}outcomes do not differ, as far as noise tells. {cause}. The effect means nothing then: {_REMEDY}",)


def missing_outcome(schema: Schema) -> float:
    """What an outcome that cannot be read counts as."""
    outcome = schema.outcome
    if isinstance(outcome, Binary):
        return float(outcome.values.index(outcome.missing_value))
    return float(outcome.missing_value)


def _of_covariates(schema: Schema, signs: Signs) -> tuple[str, ...]:
    missing = {column.name: column.missing_value for column in schema.covariates}
    return tuple(
        f"every {name} is {missing[name]}, as far as noise tells. The usual cause: {_CELLS}, each of which counts as "
        f"{missing[name]}. The effect is not adjusted for {name} then: {_REMEDY}"
        for name in signs.unread
    )


def _of_sizes(effect: Effect, signs: Signs) -> tuple[str, ...]:
    return tuple(
        f"hardly any unit is in the arm {arm}, as far as noise tells. The usual cause is a treatment that is spelled "
        f"otherwise than declared: {_REMEDY}"
        for arm, size in zip(effect.arms, signs.sizes, strict=False)
        if size.tells(_SIZE * effect.n) and (size.value < 2 or size.is_at(0.0))
    )


def _of_range(effect: Effect, schema: Schema) -> tuple[str, ...]:
    low, high = schema.outcome_bounds
    if abs(effect.estimate) <= high - low:
        return ()
    beyond = (
        f"the estimate is beyond {format_number(high - low)}, the largest difference that outcomes in bounds can have"
    )
    return (f"{beyond}: it is mostly noise. Use more epsilon, more units or another estimator",)


def warned_of_width(effect: Effect, planned: float, *, informed: bool) -> Effect:
    """Return the effect with a warning where its interval is far from as wide as planned.

    Args:
        effect: The effect.
        planned: The half width that was to be expected.
        informed: Whether somebody said what to expect of the outcome. Otherwise outcomes were taken to be spread evenly
            over their bounds, which hardly any are: then only a wider interval is a sign.
    """
    if effect.rehearsed or effect.no_interval or not math.isfinite(planned):
        return effect
    low, high = effect.interval()
    times = (high - low) / 2 / planned
    if 1 / _FAR <= times <= _FAR or (times < 1 and not informed):
        return effect
    return with_warnings(
        effect,
        f"the interval is {times:.2g} times as wide as planned (± {format_number((high - low) / 2)}, planned "
        f"± {format_number(planned)}). Either the plan expected another outcome, another share of treated units or less "
        f"confounding, or the table has {_CELLS}: {_REMEDY}",
    )
