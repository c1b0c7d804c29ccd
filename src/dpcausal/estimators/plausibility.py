"""Warnings that a table may not match its schema, from numbers that were released anyway.

Post-processing: nothing here queries the data, so nothing here costs privacy. A warning is no proof, and a table
without one may still be wrong.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.utils.text import format_number

_WITHIN = 4.0
"""A number equals a value where it is within so many standard deviations of its noise. Laplace noise stays within in
996.5 of 1,000 cases, and Gaussian noise in 99,994 of 100,000."""

_MEAN, _RISK, _VARIANCE, _VARIANCE_ALONE, _SIZE = 0.04, 0.02, 0.02, 0.0005, 0.05
"""A sign counts only where noise could hide no more than this: of the range in a mean, in a risk, of the squared range
in a variance, in a variance without means to support it, and of all units in an arm's size."""

_AT_BOUNDS = 0.01
"""All outcomes are at their bounds where their variance is within this share of the largest that is possible."""

_LOWEST = 0.01
"""A mean at the lower bound counts only where noise could hide no more than this share: some outcomes are rare."""

_OUTSIDE = 0.1
"""A share of units in neither arm that is worth a warning."""

_FAR = 2.0
"""A width is far from the planned one where it is so many times as large or as small."""

_SURELY = 6.0
"""A variance of fewer standard deviations of the noise in it may be large by luck, which lets an interval be given."""

_FREE = "This warning uses released numbers only and cost no privacy."
_CELLS = "cells that do not match the declaration (decimal or thousands signs, units, spelling)"
_LOOK = "Where the table is, run: dpcausal check STUDY --table TABLE"
_REMEDY = "where the table is, run: dpcausal check STUDY --table TABLE"


@dataclass(frozen=True)
class Measured:
    """A released number."""

    value: float
    noise_sd: float

    def is_at(self, value: float) -> bool:
        """Return whether it equals a value, within its noise."""
        return abs(self.value - value) <= _WITHIN * self.noise_sd

    def resolves(self, size: float) -> bool:
        """Return whether noise could hide no more than this size."""
        return _WITHIN * self.noise_sd <= size


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What the releases behind an effect show about the table.

    Attributes:
        sizes: Each arm's number of units, control first.
        means: Each arm's mean outcome, control first.
        variance: The outcome's variance within arms or strata.
        compared: The number of units in the comparison, where it was released without the arms' sizes.
        unread: Covariates whose values all equal that of an unreadable cell, within noise.
        spreads: The variances of numbers without a scale that a model rests on, by their names.
    """

    sizes: tuple[Measured, ...] = ()
    means: tuple[Measured, ...] = ()
    variance: Measured | None = None
    compared: Measured | None = None
    unread: tuple[str, ...] = ()
    spreads: Mapping[str, Measured] = field(default_factory=dict)


def compared_in(release: Release) -> Measured | None:
    """Return the number of units in the comparison as a release holds it; None where it is public."""
    if "compared" not in release.names:
        return None
    return Measured(release.value("compared"), release.variance("compared") ** 0.5)


def warned(effect: Effect, schema: Schema, signs: Signs) -> Effect:
    """Return the effect with a warning for each sign of a problem. A rehearsal has none.

    Covariates that may not have been read join those that the effect may not be adjusted for.
    """
    if effect.rehearsed:
        return effect
    effect = replace(effect, unadjusted=tuple(dict.fromkeys((*effect.unadjusted, *signs.unread))))
    found = (
        *_of_outcomes(effect, schema, signs),
        *_of_bounds(schema, signs),
        *_of_one_bound(effect, schema, signs),
        *_of_covariates(schema, signs),
        *_of_sizes(effect, signs),
        *_of_outside(effect, schema, signs),
        *_of_range(effect, schema),
    )
    remedy = "declare between which values most of it lies (typical=), or tighter bounds"
    return warned_of_spreads(with_warnings(effect, *found), signs.spreads, remedy)


def warned_of_spreads(effect: Effect, spreads: Mapping[str, Measured], remedy: str) -> Effect:
    """Return the effect with a warning for each variance that may be large by luck; none without an interval."""
    if effect.rehearsed or effect.no_interval:
        return effect
    texts = (
        f"{name} varies by hardly more than the noise in its variance, which may seem large by luck: the interval may "
        f"be far too narrow, and around a wrong estimate. To be sure, {remedy}"
        for name, spread in spreads.items()
        if spread.value < _SURELY * spread.noise_sd
    )
    return with_warnings(effect, *texts)


def with_warnings(effect: Effect, *texts: str) -> Effect:
    """Return the effect with more warnings, each once."""
    return replace(effect, warnings=tuple(dict.fromkeys((*effect.warnings, *(f"{text}. {_FREE}" for text in texts)))))


def _of_outcomes(effect: Effect, schema: Schema, signs: Signs) -> tuple[str, ...]:
    """Warn where all outcomes may equal the value that is declared for an unreadable cell.

    Both means must equal it, and no variance may be visible. Where noise could hide a variance, a mean in the middle is
    a sign all the same, unless bounds are symmetric about 0: changes and differences are centred by their nature.
    """
    low, high = schema.outcome_bounds
    variance, missing = signs.variance, missing_outcome(schema)
    if (
        variance is None
        or schema.outcome in schema.required_columns
        or abs(effect.estimate) > _WITHIN * effect.privacy_sd
    ):
        return ()
    resolved = variance.resolves((_VARIANCE if signs.means else _VARIANCE_ALONE) * (high - low) ** 2)
    if variance.value > (3 if resolved else 2) * variance.noise_sd or not (resolved or (signs.means and low != -high)):
        return ()
    most = _RISK if isinstance(schema.outcome, Binary) else _MEAN * (high - low)
    if not all(mean.is_at(missing) and mean.resolves(most) for mean in signs.means):
        return ()
    where = (
        f"both arms' means are {format_number(missing)}, the value of an unreadable cell, and " if signs.means else ""
    )
    cause = f"Unless this is by design, the usual cause is {_CELLS}, each of which counts as {format_number(missing)}"
    return (f"{where}outcomes do not vary beyond noise. {cause}. The effect is then meaningless: {_REMEDY}",)


def _of_bounds(schema: Schema, signs: Signs) -> tuple[str, ...]:
    """Warn where all outcomes that are numbers may equal one of their bounds: no other values vary as much."""
    variance, (low, high) = signs.variance, schema.outcome_bounds
    if isinstance(schema.outcome, Binary) or variance is None or not signs.means:
        return ()
    most = sum((high - mean.value) * (mean.value - low) for mean in signs.means) / len(signs.means)
    if not variance.resolves(_VARIANCE * (high - low) ** 2) or variance.value <= _WITHIN * variance.noise_sd:
        return ()
    if most - variance.value > max(2 * variance.noise_sd, _AT_BOUNDS * most):
        return ()
    bounds = f"{low:,g} or {high:,g}"
    cause = "the usual cause is another scale in the table, so that values beyond the bounds were moved to them"
    two = "If it has two values, declare it as Binary"
    return (f"every outcome equals {bounds}, within noise. {two}; else {cause}: {_REMEDY}",)


def _of_one_bound(effect: Effect, schema: Schema, signs: Signs) -> tuple[str, ...]:
    """Warn where all outcomes may equal one bound, as where a share is declared and the table holds percentages."""
    outcome, variance, (low, high) = schema.outcome, signs.variance, schema.outcome_bounds
    if not signs.means or abs(effect.estimate) > _WITHIN * effect.privacy_sd:
        return ()
    if variance is not None and variance.value > 3 * variance.noise_sd:
        return ()
    values, most, cause = (f"{low:,g}", f"{high:,g}"), _MEAN, "another scale in the table"
    cause += ", so that values beyond the bounds were moved to them"
    if isinstance(outcome, Binary):
        no, yes = outcome.values
        values, most, cause = (f"{no}", f"{yes}"), _RISK, "values in the table that are not the two declared"
    has_own_warning = outcome not in schema.required_columns
    for bound, value, share, unless in (
        (low, values[0], _LOWEST, "other values are rare"),
        (high, values[1], most, "this is by design"),
    ):
        if has_own_warning and bound == missing_outcome(schema):
            continue
        if all(mean.is_at(bound) and mean.resolves(share * (high - low)) for mean in signs.means):
            return (
                f"every outcome equals {value}, within noise. Unless {unless}, the usual cause is {cause}: {_REMEDY}",
            )
    return ()


def missing_outcome(schema: Schema) -> float:
    """Return the value that an unreadable outcome counts as."""
    outcome = schema.outcome
    if isinstance(outcome, Binary):
        return float(outcome.values.index(outcome.missing_value))
    return float(outcome.missing_value)


def _of_covariates(schema: Schema, signs: Signs) -> tuple[str, ...]:
    missing = {column.name: column.missing_value for column in schema.covariates}
    return tuple(
        f"every {name} equals {missing[name]}, within noise. The usual cause is {_CELLS}, each of which counts as "
        f"{missing[name]}. The effect is then not adjusted for {name}: {_REMEDY}"
        for name in signs.unread
    )


def _of_sizes(effect: Effect, signs: Signs) -> tuple[str, ...]:
    return tuple(
        f"almost no unit is in the arm {arm}, within noise. The usual cause is a treatment that is not spelled as "
        f"declared, or outcomes that cannot be read: {_REMEDY}"
        for arm, size in zip(effect.arms, signs.sizes, strict=False)
        if size.resolves(_SIZE * effect.n) and (size.value < 2 or size.is_at(0.0))
    )


def _of_outside(effect: Effect, schema: Schema, signs: Signs) -> tuple[str, ...]:
    """Warn where many units are outside, although the two arms that are compared are all that are declared."""
    inside = signs.compared
    if len(signs.sizes) == 2:
        inside = Measured(sum(size.value for size in signs.sizes), math.hypot(*(size.noise_sd for size in signs.sizes)))
    if inside is None or len(schema.treatment.arms) != 2 or not schema.units_may_be_outside:
        return ()
    share = min(1 - inside.value / effect.n, 1.0)
    if not inside.resolves(_SIZE * effect.n) or share <= _OUTSIDE or inside.is_at(effect.n):
        return ()
    required = " or ".join(column.name for column in schema.required_columns)
    lacking = f"units that lack {required}; " if required else ""
    causes = f"{lacking}arms that are missing or not declared; {_CELLS}"
    return (f"about {100 * share:.0f} % of units are outside the comparison. Causes may be: {causes}. {_LOOK}",)


def _of_range(effect: Effect, schema: Schema) -> tuple[str, ...]:
    low, high = schema.outcome_bounds
    if abs(effect.estimate) <= high - low:
        return ()
    beyond = (
        f"the estimate is beyond {format_number(high - low)}, the largest difference that outcomes in bounds can have"
    )
    return (f"{beyond}: it is mostly noise. Use more epsilon, more units or another estimator",)


def warned_of_width(effect: Effect, planned: float, *, informed: bool) -> Effect:
    """Return the effect with a warning where its interval is much wider or narrower than planned.

    Args:
        informed: Whether the plan had an expectation of the outcome. Otherwise it took outcomes as spread evenly over
            their bounds, which few are: then only a wider interval is a sign.
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
        f"± {format_number(planned)}). Either the plan expected another outcome, another share of treated units or "
        f"less confounding, or the table has {_CELLS}: {_REMEDY}",
    )
