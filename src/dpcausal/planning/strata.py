"""Proposed strata, and the confounding that strata with given edges leave in."""

import math
from collections.abc import Sequence

from dpcausal.estimators.quantile_strata import bins_for, share_within
from dpcausal.queries import Cut
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import covariates_named
from dpcausal.rehearsal import Rehearsal
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema

_FEWEST_BINS = 4
"""With fewer bins of a number too much confounding stays within them."""

_UNITS_PER_STRATUM = 3
"""Units for each stratum of listed values alone: with three, about nine in ten are in strata with both arms."""


def propose_strata(schema: Schema, n: int, covariates: Sequence[str], *, treated_share: float = 0.5) -> tuple[str, ...]:
    """Return all covariates as strata where there are units enough: listed ones by value, numbers in four bins or more.

    `Stratification` cuts numbers at quantiles, as finely as the number of units allows.

    Returns:
        The strata, for `Stratification`; empty where there are too few units for four bins of every number. Strata of
        some of them would leave the confounding by the others in: use regression or weighting instead.

    Example:
        >>> from dpcausal import Binary, Real, Treatment
        >>> covariates = [Binary("sex"), Real("age", 20, 80), Real("severity", 0, 24)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> propose_strata(schema, 400, ["sex", "age", "severity"])
        ('sex', 'age', 'severity')
        >>> propose_strata(schema, 200, ["sex", "age", "severity"])
        ()
    """
    if not covariates:
        return ()
    columns = covariates_named(covariates, schema)
    if any(isinstance(column, Real) for column in columns):
        fits = bins_for(cuts_of(covariates), schema, n, treated_share) >= _FEWEST_BINS
    else:
        strata = math.prod(len(column.values) for column in columns if not isinstance(column, Real))
        fits = strata <= n * 4 * treated_share * (1 - treated_share) / _UNITS_PER_STRATUM
    return tuple(covariates) if fits else ()


def propose_some_strata(
    schema: Schema, n: int, covariates: Sequence[str], *, treated_share: float = 0.5
) -> tuple[str, ...]:
    """Return strata of some covariates, for tables with too few units for strata of all of them.

    Covariates are taken in their order as long as there are units enough. Numbers are only where they declare typical
    values: where units are few, noise hides where to cut the others.

    Example:
        >>> from dpcausal import Binary, Real, Treatment
        >>> columns = [Real("age", 20, 80, typical=(30, 70)), Binary("sex"), Real("severity", 0, 24), Binary("smoker")]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=columns)
        >>> propose_some_strata(schema, 200, [column.name for column in columns])
        ('age', 'sex', 'smoker')
    """
    chosen: tuple[str, ...] = ()
    for column in covariates_named(covariates, schema):
        if not isinstance(column, Real) or column.typical:
            chosen = propose_strata(schema, n, (*chosen, column.name), treated_share=treated_share) or chosen
    return chosen


def confounding_left(cuts: Sequence[Cut], confounders: Sequence[str], rehearsal: Rehearsal) -> float:
    """Return the confounding that strata are expected to leave in: within given edges, each with an equal part.

    Confounders that are not cut may have all of it. What stays within bins at quantiles is corrected for, and in the
    interval.
    """
    cut = {each.name: each for each in cuts}
    left = [_left_by(cut[name], rehearsal) for name in confounders if name in cut]
    share = sum(left) / len(left) if len(left) == len(confounders) else 1.0
    return rehearsal.confounding * rehearsal.sd * share if confounders else 0.0


def _left_by(cut: Cut, rehearsal: Rehearsal) -> float:
    """Return the share of the confounding by a covariate that is expected to stay within edges: as it is normal."""
    if not cut.edges:
        return 0.0
    numbers = {column.name: column for column in rehearsal.schema.covariates if isinstance(column, Real)}
    return share_within([rehearsal.standardised(numbers[cut.name], edge) for edge in cut.edges])
