"""Coarse strata, where units do not carry finer ones of every confounder."""

from collections.abc import Sequence

from dpcausal.queries import Cut
from dpcausal.queries.features import covariates_named
from dpcausal.real import Real
from dpcausal.schema import Schema

_UNITS_PER_STRATUM = 16
"""Units for each stratum where not every confounder can be cut: fewer would leave most strata without both arms."""


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
    strata = n * 4 * treated_share * (1 - treated_share) / _UNITS_PER_STRATUM
    found: list[str | Cut] = []
    for column in covariates_named(covariates, schema):
        bins = 2 if isinstance(column, Real) else len(column.values)
        if bins <= strata:
            strata /= bins
            found.append(
                Cut(column.name, [(column.low + column.high) / 2]) if isinstance(column, Real) else column.name
            )
    return tuple(found)
