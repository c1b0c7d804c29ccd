"""How many units lack a covariate: counted for a small part of epsilon, since what it confounds among them stays in.

One count of units that lack any covariate comes first. Only where it stands out of its noise is each of them counted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpcausal.estimators.narrower import noise_sd
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateCounts, MissingCovariates, Query
from dpcausal.queries.features import covariates_named
from dpcausal.queries.missing_covariates import MOST_COVARIATES
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Receipt, Release
from dpcausal.schema.columns import Category, Column, Indicator, indicator_of
from dpcausal.schema.expectations import MISSING
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RandomisedSource, Source, answered, innermost, is_scalable, is_within

LEAST_MISSING, MISSING_SDS = 0.01, 3.0
"""Whether a value is missing enters models where the share is above the first and so many sds of its noise."""

_ANY_LEAST = 0.005
"""The least share of units without any covariate for which each is counted."""

_ANY_PART, _EACH_PART = 1 / 30, 1 / 10
"""The most of epsilon that may go to counting whether any covariate is missing; and each, where some are."""

_WANTED, _WORST = 0.0025, 0.01
"""The sd of the noise in a share that is precise enough, and one beyond which nothing is asked."""

_LEAST_EPSILON = 2.0**-19
"""The smallest epsilon that a guarantee may have, as a power of two."""


@dataclass(frozen=True)
class MissingShares:
    """What is known of missing values.

    Attributes:
        rest: The guarantee that is left.
        found: The share of units that lack each covariate, as counted, where some lack any.
        most: The share that the interval allows for, of the same covariates: one sd of the noise more.
        certain: Those whose share stands out of the noise by itself.
    """

    rest: Guarantee
    found: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    certain: tuple[str, ...] = ()
    receipts: tuple[Receipt, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Which covariates lack values, in words."""
        shares = [f"{name} about {100 * self.found[name]:.0f} %" for name in self.certain]
        if not self.found:
            return ()
        said = f"units without a value: {', '.join(shares) or 'too few of each to tell of which'} (noisy)"
        return (f"{said}; what it confounds among them may stay in, and the interval allows for it",)


def missing_shares_of(source: Source, names: Sequence[str], guarantee: Guarantee, rest: Guarantee) -> MissingShares:
    """Return how many units lack each of these covariates, counted for a part of the rest.

    Nothing is asked where treatment was randomised, where answers are added up over sites, where noise would hide
    missing values, or where none of the covariates may be missing. If a schema has more covariates than a query
    counts, these alone are counted.
    """
    asked = may_be_missing(source.schema) if is_scalable(source) and not is_within(source, RandomisedSource) else ()
    names = [name for name in names if name in asked and name not in source.schema.required]
    if len(asked) > MOST_COVARIATES:
        asked = tuple(names)
    if not 1 <= len(names) <= len(asked) <= MOST_COVARIATES:
        return MissingShares(rest)
    each, whole = MissingCovariates(asked), MissingCovariates(asked, each=len(asked) == 1)
    release, rest = _counted(whole, source, guarantee, rest, _ANY_PART)
    if release is None:
        return MissingShares(rest)
    receipts: tuple[Receipt, ...] = (release.receipt,)
    share, sd = _share(release, release.names[0], source)
    if share <= max(_ANY_LEAST, MISSING_SDS * sd):
        return MissingShares(rest, most=_expected(source, names), receipts=receipts)
    if len(asked) > 1:
        any_missing = min(share + sd, 1.0)
        release, rest = _counted(each, source, guarantee, rest, _EACH_PART)
        if release is None:  # too noisy to tell which: it may be any
            of_all = dict.fromkeys(names, any_missing)
            return MissingShares(rest, of_all, of_all, receipts=receipts)
        receipts += (release.receipt,)
    counted = {name: _share(release, f"{name} is missing", source) for name in names}
    return MissingShares(
        rest,
        {name: share for name, (share, _) in counted.items()},
        {name: min(share + sd, 1.0) for name, (share, sd) in counted.items()},
        tuple(name for name, (share, sd) in counted.items() if share > max(LEAST_MISSING, MISSING_SDS * sd)),
        receipts,
    )


def may_be_missing(schema: Schema) -> tuple[str, ...]:
    """Return the covariates of which it is asked how many are missing, the same for all estimators.

    A declared value that counts in place of a missing one says what its absence means, unless there is an indicator
    too: it tells models who lacks a value, and not what that would be. Numbers without typical values are counted with
    where they are.
    """
    named, never = {column.name for column in schema.covariates}, schema.unit.added if schema.unit else ()
    return tuple(
        column.name
        for column in schema.covariates
        if not isinstance(column, Indicator)
        and not (isinstance(column, Real) and (column.typical is None or column.scale is not None))
        and (column.indicator or not says_what_missing_means(column))
        and column.name not in (*never, schema.entry)
        and (column.indicator or indicator_of(column).name not in named)
    )


def says_what_missing_means(column: Column) -> bool:
    """Return whether a column declares what counts in place of a missing value."""
    return column.lists_missing if isinstance(column, Category) else column.missing is not None


def missing_counted(query: Query) -> tuple[str, ...]:
    """Return the covariates of which a query counts missing values; none for another query."""
    return tuple(query.covariates) if isinstance(query, MissingCovariates) else ()


def missing_price(query: MissingCovariates, source: Source, guarantee: Guarantee, part: float) -> Guarantee | None:
    """Return what counting missing values takes, at most a part of a guarantee; None where noise would hide them.

    It is a power of two, so that other estimates from the same table find the counts stored. Only public numbers decide
    on it: the schema, the number of units and epsilon.
    """
    sd = noise_in_counts(query, source, Guarantee(epsilon=1.0, protects=guarantee.protects))
    wanted = min(part * guarantee.epsilon, sd / (_WANTED * max(source.n, 1)))
    epsilon = 2.0 ** math.floor(math.log2(max(wanted, _LEAST_EPSILON)))
    if epsilon > part * guarantee.epsilon or sd / epsilon > _WORST * source.n:
        return None
    return Guarantee(epsilon=epsilon, protects=guarantee.protects)


def _counted(
    query: MissingCovariates, source: Source, guarantee: Guarantee, rest: Guarantee, part: float
) -> tuple[Release | None, Guarantee]:
    """Return counts, stored or new, and what is left of the rest; none where noise would hide missing values."""
    price = missing_price(query, source, guarantee, part)
    if price is None:
        return None, rest
    chosen = stored_or_new(source, query, price, 1.0)
    return source.release(query, chosen), rest.after(price) if chosen == price else rest


def _expected(source: Source, names: Sequence[str]) -> Mapping[str, float]:
    """Return the shares that a rehearsal expects although nothing is counted: where an indicator is declared."""
    columns = covariates_named(names, source.schema) if isinstance(innermost(source), Rehearsal) else ()
    return {column.name: MISSING for column in columns if column.indicator}


def _share(release: Release, name: str, source: Source) -> tuple[float, float]:
    """Return a count as a share of all units, and the sd of the noise in it."""
    n = max(source.n, 1)
    return min(max(release.value(name) / n, 0.0), 1.0), math.sqrt(release.variance(name)) / n


def stored_or_new(source: Source, query: CovariateCounts | MissingCovariates, new: Guarantee, most: float) -> Guarantee:
    """Return a guarantee of stored counts with at most so many times the noise of new ones; that of new if none is.

    It is the first in the ledger, so that the same call gives the same again also where better counts came later.
    """
    limit = most * noise_in_counts(query, source, new) * (1 + 1e-9)
    stored = (each for each in answered(source, query) if noise_in_counts(query, source, each) <= limit)
    return next(stored, new)


def noise_in_counts(query: CovariateCounts | MissingCovariates, source: Source, guarantee: Guarantee) -> float:
    """Return the standard deviation of the noise in each count."""
    return noise_sd(query, source.schema, guarantee, query.own_names[0], source.rule)
