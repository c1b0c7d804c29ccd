"""The scales of covariates for models, from one query of a data set that later estimators use again for nothing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from dpcausal.estimators.missing_covariates import (
    LEAST_MISSING,
    MISSING_SDS,
    may_be_missing,
    missing_shares_of,
    noise_in_counts,
    says_what_missing_means,
    stored_or_new,
)
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.scale_fit import SKEW_SD, FittedScale, fit_scale, typical_scale
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateCounts
from dpcausal.queries.covariate_counts import COARSE, EACH
from dpcausal.queries.features import covariates_named, design_names
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Receipt, Release
from dpcausal.schema.columns import indicator_of
from dpcausal.schema.expectations import MISSING
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, has_declared_scales, innermost, is_scalable, scaled

_SHARES, _USUAL = (0.025, 0.05, 0.1, 0.2), 0.1
"""The shares of an estimator's epsilon that may go to the counts, where they are not stored yet; and from which on it
is enough that scales can be found."""

_PRECISE = 1 / 80
"""Below the usual share, the least one is chosen with noise in each count of at most this share of all units."""

_ENOUGH = 2.0
"""Stored counts are used again where their noise is at most so many times that of new ones."""

_MOST_INDICATED = 60
"""Indicators are added up to so many features. The bound of products of more may take so many steps that a vault
refuses the query, after counts are paid for: nobody can know before how many covariates lack values."""

_FINDABLE = 0.05
"""Where values spread over a third of the range, their scale is found in noise of at most this share of all units.
In more noise counts are not worth their price, and are not asked for."""


@dataclass(frozen=True)
class ScaledCovariates:
    """What models are given in place of a source and its covariates.

    Attributes:
        covariates: The covariates of the models: those given, and indicators of missing values after them.
        rest: The guarantee that is left for the models.
        scales: The scales found or declared, by covariate; also those that do not stand out of the noise.
        indicated: The covariates of which models are told who lacks a value.
        lacking: The share of units without a value that intervals allow for, by covariate.
        receipts: The receipt of the counts, where they were needed.
        notes: What readers should know: covariates between plain bounds, and those that may be missing unseen.
    """

    source: Source
    covariates: tuple[str, ...]
    rest: Guarantee
    scales: Mapping[str, FittedScale] = field(default_factory=dict)
    indicated: tuple[str, ...] = ()
    lacking: Mapping[str, float] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] = ()
    notes: tuple[str, ...] = ()


def with_scales(
    source: Source, covariates: Sequence[str], guarantee: Guarantee, most: int = _MOST_INDICATED
) -> ScaledCovariates:
    """Return a source whose covariates are seen by their scores, and what is left of a guarantee.

    Numbers that declare `typical` need no query for their scale. For all others of the schema together there is one,
    `CovariateCounts`, for a tenth of epsilon and delta: less where units are many, a fifth where they are few, and none
    where even that would be too noisy to find where values are. A stored answer to it is used again for nothing. The
    answer that this same call paid for counts as its own: the call then has the same rest as the first time, and gives
    the same again. Where answers are added up over sites, there are scales of numbers that declare `typical` only.

    Of all other covariates `MissingCovariates` counts missing values for a small part of epsilon: not where
    treatment was randomised, where answers are added up over sites, or where noise would hide them.
    """
    columns = {column.name: column for column in covariates_named(covariates, source.schema)}  # before any is spent
    used = [column for column in columns.values() if isinstance(column, Real) and column.scale is None]
    declared = has_declared_scales(source)
    scales = {column.name: typical_scale(column) for column in used if column.typical and declared}
    asked = counted_numbers(source.schema) if is_scalable(source) else ()
    release, rest = None, guarantee
    if any(column.name in asked for column in used):
        release, rest = _counts(source, CovariateCounts(asked), guarantee)
    if release:
        counted, inner = [column for column in used if column.name in asked], innermost(source)
        if isinstance(inner, Rehearsal):
            scales |= _expected(release, counted, inner)
        else:
            scales |= fits(release, counted, source.n)
    missing = missing_shares_of(source, covariates, guarantee, rest)
    plain = [column for column in used if column.name not in scales or not scales[column.name].found]
    counts = {name: fit.missing_share for name, fit in scales.items() if _is_lacking(name, fit, source.schema)}
    lacking = [columns[name] for name in (*counts, *missing.certain)]
    room = max(most - len(design_names(covariates, source.schema)), 0)  # the interval allows for the others
    indicators = [each.name for each in lacking if not (each.indicator or says_what_missing_means(each))][:room]
    known = {name: fit.scale for name, fit in scales.items() if fit.found}
    asked = may_be_missing(source.schema) if missing.receipts else ()
    return ScaledCovariates(
        scaled(source, known, indicators) if scales or indicators else source,
        (*covariates, *(indicator_of(columns[name]).name for name in indicators)),
        missing.rest,
        scales,
        tuple(indicators),
        {**counts, **missing.most},
        ((release.receipt,) if release else ()) + missing.receipts,
        (
            *((_between_bounds(plain, source),) if plain else ()),
            *_unseen([each for each in used if each.name in scales and each.name not in asked], source.schema),
            *missing.notes,
        ),
    )


def _between_bounds(columns: Sequence[Real], source: Source) -> str:
    """Return a note on numbers that have no scale."""
    if is_scalable(source):
        return f"too noisy to find where values are: {_listed(columns)} between declared bounds"
    return (
        f"answers are added up over sites, so {_listed(columns)} enter models between their declared bounds; declare "
        "typical values"
    )


def _unseen(columns: Sequence[Real], schema: Schema) -> tuple[str, ...]:
    """Return a note on numbers whose missing values nobody counts: those with typical values, which need no query."""
    totals = schema.unit.added if schema.unit else ()
    silent = [
        column
        for column in columns
        if column.typical
        and column.missing is None
        and not column.indicator
        and column.name not in (*schema.required, *totals)
    ]
    if not silent:
        return ()
    said = "units without a value count as the middle of the scale, and are not counted"
    declare = "declares" if len(silent) == 1 else "declare"
    return (f"{_listed(silent)} {declare} typical values: {said}; if there are many, declare an indicator",)


def counted_numbers(schema: Schema) -> tuple[str, ...]:
    """Return the numbers whose counts are asked for: those that have no scale and declare no typical values.

    The column of entry has no scale, and a number cannot have an indicator whose name is another column's.
    """
    named = {column.name: column for column in schema.covariates}
    return tuple(
        column.name
        for column in schema.covariates
        if isinstance(column, Real)
        and column.typical is None
        and column.scale is None
        and column.name != schema.entry
        and (column.indicator or indicator_of(column).name not in named)
    )


def _counts(source: Source, query: CovariateCounts, guarantee: Guarantee) -> tuple[Release | None, Guarantee]:
    """Return counts of covariates, stored or new, and the guarantee that is left; none where noise would hide all.

    Where new ones would drown, stored ones are not used either: this call may have come before them, and must give the
    same again.
    """
    for share in _SHARES:
        new, rest = _shared(source, query, guarantee, share)
        limit = _FINDABLE if share >= _USUAL else _PRECISE
        if noise_in_counts(query, source, new) <= limit * source.n:
            chosen = stored_or_new(source, query, new, _ENOUGH)
            return source.release(query, chosen), rest if chosen == new else guarantee
    return None, guarantee


def _shared(source: Source, query: CovariateCounts, guarantee: Guarantee, share: float) -> tuple[Guarantee, Guarantee]:
    """Return the guarantee of new counts for a share of what may be spent, and what that leaves."""
    first, rest = guarantee.split(share)
    new = narrower(query, source, first, query.own_names[0])
    if first.delta > 0 and new.delta == 0:
        rest = guarantee.split(share, pure_first=True)[1]
    return new, rest


def fits(release: Release, columns: Sequence[Real], n: int) -> dict[str, FittedScale]:
    """Return the scales of columns from counts of these and perhaps others."""
    sd, found = math.sqrt(release.variance(release.names[0])), {}
    for column in columns:
        start = release.names.index(f"{column.name}: coarse 0")
        unit = _fitted(release.values[start : start + EACH], sd, n)
        width = column.high - column.low
        found[column.name] = replace(
            unit,
            low=column.low,
            high=column.high,
            location=column.low + width * unit.location,
            spread=width * unit.spread,
            transform=column.transform,
        )
    return found


def _expected(release: Release, columns: Sequence[Real], rehearsal: Rehearsal) -> dict[str, FittedScale]:
    """Return the scales that a rehearsal expects to be found: fitting each of its many answers would take long.

    Nothing is known of a number's skewness before counts are, so that its size is that of the prior; nor how many
    values are missing, but that some are where an indicator is declared.
    """
    found = math.sqrt(release.variance(release.names[0])) <= _FINDABLE * rehearsal.n
    scales = {}
    for column in columns:
        half = (column.high - column.low) / 2
        scales[column.name] = FittedScale(
            column.low,
            column.high,
            location=column.low + half * (1 + rehearsal.covariate_middle(column)),
            spread=half * rehearsal.covariate_spread(column),
            skewness=0.0,
            found=found,
            transform=column.transform,
            skewness_sd=SKEW_SD,
            missing_share=MISSING if column.indicator else 0.0,
        )
    return scales


@lru_cache(maxsize=512)
def _fitted(counts: tuple[float, ...], sd: float, n: int) -> FittedScale:
    """Return the scale of a number between 0 and 1; the prices of a stored answer ask for the same one again."""
    coarse, fine = np.array(counts[:COARSE]), np.array(counts[COARSE:-1])
    return fit_scale(Real("number", 0, 1), coarse, fine, counts[-1], sd, n)


def _is_lacking(name: str, fit: FittedScale, schema: Schema) -> bool:
    """Return whether more units than noise explains lack a number and are compared all the same."""
    never = name in schema.required or (schema.unit is not None and name in schema.unit.added)
    return not never and fit.missing_share > max(LEAST_MISSING, MISSING_SDS * fit.missing_sd)


def _listed(columns: Sequence[Real]) -> str:
    return ", ".join(column.name for column in columns)
