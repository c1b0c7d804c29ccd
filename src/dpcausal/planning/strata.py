"""Strata from public ranges and the number of units."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from dpcausal.queries import Cut
from dpcausal.queries.cuts import MOST_STRATA
from dpcausal.queries.features import covariates_named
from dpcausal.real import Real
from dpcausal.rehearsal import Rehearsal
from dpcausal.schema import Schema

_UNITS_PER_STRATUM = 3
"""How many units there are for each stratum. Public ranges are wide, so most strata are nearly empty and others hold
many more: with three, about nine units in ten are in strata with both arms."""

_FEWEST_BINS = 4
"""With fewer bins of a number too much confounding stays within them."""

_MOST_BINS = 50
"""More bins of a number than this add nothing."""

_UNITS_PER_COARSE_STRATUM = 16
"""Units for each stratum where not every confounder can be cut: fewer would leave most strata without both arms."""


def propose_strata(
    schema: Schema, n: int, covariates: Sequence[str], *, treated_share: float = 0.5
) -> tuple[str | Cut, ...]:
    """Return strata of these covariates, from public facts only: numbers in bins of one width, listed ones by value.

    Strata are as fine as the number of units allows. More of them need no more noise and leave less confounding within
    them; but units in strata without both arms drop out. Where arms are uneven, strata are fewer.

    Args:
        schema: What is public about the table.
        n: The number of units.
        covariates: The confounders. None is left out.
        treated_share: The expected share of treated units.

    Returns:
        The strata, for `Stratification`; empty where there are too few units to cut all of these covariates. Strata of
        some of them would leave the confounding by the others in: use regression or weighting instead.

    Example:
        >>> from dpcausal import Binary, Real, Treatment
        >>> covariates = [Binary("sex"), Real("age", 20, 80), Real("severity", 0, 24)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> for cut in propose_strata(schema, 240, ["sex", "age", "severity"]):
        ...     print(cut)
        sex
        age cut at 30, 40, 50, 60, 70
        severity cut at 4, 8, 12, 16, 20
        >>> propose_strata(schema, 90, ["sex", "age", "severity"])
        ()
    """
    if not covariates:
        return ()
    columns = covariates_named(covariates, schema)
    numbers = [column for column in columns if isinstance(column, Real)]
    listed = math.prod(len(column.values) for column in columns if not isinstance(column, Real))
    strata = min(n * 4 * treated_share * (1 - treated_share) / _UNITS_PER_STRATUM, MOST_STRATA) / listed
    if strata < max(_FEWEST_BINS ** len(numbers), 1):
        return ()
    bins = min(math.floor(strata ** (1 / len(numbers)) + 1e-9), _MOST_BINS) if numbers else 1
    return tuple(_cut(column, bins) if isinstance(column, Real) else column.name for column in columns)


def _cut(column: Real, bins: int) -> Cut:
    """Return bins of one width."""
    return Cut(column.name, [column.low + (column.high - column.low) * place / bins for place in range(1, bins)])


def coarse_strata(
    schema: Schema, n: int, covariates: Sequence[str], *, treated_share: float = 0.5
) -> tuple[str | Cut, ...]:
    """Return strata where `propose_strata` has none: numbers in two halves, and as many confounders as units carry.

    Confounders are taken in the order in which they are given: the most important first. What strata leave in is then
    much of the confounding: an analysis of last resort.

    Example:
        >>> from dpcausal import Binary, Category, Real, Treatment
        >>> covariates = [Real("age", 20, 80), Category("ward", list("abcdefgh")), Binary("sex")]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> [str(cut) for cut in coarse_strata(schema, 100, ["age", "ward", "sex"])]
        ['age cut at 50', 'sex']
    """
    strata = n * 4 * treated_share * (1 - treated_share) / _UNITS_PER_COARSE_STRATUM
    found: list[str | Cut] = []
    for column in covariates_named(covariates, schema):
        bins = 2 if isinstance(column, Real) else len(column.values)
        if bins <= strata:
            strata /= bins
            found.append(
                Cut(column.name, [(column.low + column.high) / 2]) if isinstance(column, Real) else column.name
            )
    return tuple(found)


def confounding_left(cuts: Sequence[Cut], confounders: Sequence[str], rehearsal: Rehearsal) -> float:
    """Return the confounding that strata are expected to leave in: within bins, and of confounders that are not cut."""
    cut = {each.name: each for each in cuts}
    left = [share_within(cut[name], rehearsal) if name in cut else 1.0 for name in confounders]
    return rehearsal.confounding * rehearsal.sd * sum(left) / len(left) if left else 0.0


def share_within(cut: Cut, rehearsal: Rehearsal) -> float:
    """Return the share of a covariate's variance within bins: confounding that is linear in it stays by that share.

    Numbers are taken to be normal around the middle of their range.
    """
    column = next(column for column in rehearsal.schema.covariates if column.name == cut.name)
    if not isinstance(column, Real):
        return 0.0
    normal = NormalDist()
    edges = [-math.inf, *(rehearsal.standardised(column, edge) for edge in cut.edges), math.inf]
    below = [0.0 if edge == -math.inf else 1.0 if edge == math.inf else normal.cdf(edge) for edge in edges]
    density = [0.0 if math.isinf(edge) else normal.pdf(edge) for edge in edges]
    between = sum(
        (density[place] - density[place + 1]) ** 2 / (below[place + 1] - below[place])
        for place in range(len(edges) - 1)
        if below[place + 1] > below[place]
    )
    return max(1 - between, 0.0)
