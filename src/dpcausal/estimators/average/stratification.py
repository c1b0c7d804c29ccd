"""Stratification on a short list of confounders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.plausibility import Measured, Signs, compared_in, warned
from dpcausal.estimators.quantile_strata import (
    Difference,
    LeftWithin,
    QuantileStrata,
    bins_for,
    numbers_without_edges,
)
from dpcausal.estimators.two_means import arm_sizes_of, mean_difference
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmTotals, Cut, StratumContrasts
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.cuts import MOST_STRATA, bins, cuts_of
from dpcausal.queries.features import Estimand
from dpcausal.release import Receipt, Release
from dpcausal.results.effect import Effect
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for, scaled, units_compared
from dpcausal.uncertainty.derivatives import within

_MIN_SHARE = 0.1
"""The least share of all units that strata count as. Below it there is no interval: a ratio of noisy numbers is then
far from normal."""

_NEARLY_ALL = 0.8
"""Where strata count as this share of all units or more, the estimand is the average treatment effect."""

MAX_MEANS = 0.5
"""The largest number of means, one for each arm of a stratum with units, over the number of units: half of the degrees
of freedom stay."""

_ARMS_SHARE, _MOST_FOR_ARMS = 0.03, 0.2
"""The least and the largest share of the guarantee that sizes and means of the arms get, where they are asked."""

_NOISE_OF_ARMS = 0.3
"""The noise in the difference between both arms' means, over that in the effect within strata of usual caps."""

_FEW, _MANY = 2, 4
"""By how much the cap exceeds the odds of the larger arm: where noise would be as large as the sampling error, and
where it is smaller."""

_NOISE_OVER_SAMPLING = 0.5
"""Up to this ratio of noise to sampling error the larger cap is chosen. For this rule only, the outcome's standard
deviation within strata is a tenth of its range."""

_LARGEST_CAP = 100


@dataclass(frozen=True)
class Stratification(BaseEstimator):
    """Difference in mean outcome between the arms within strata, averaged over strata.

    Estimand:
        The average treatment effect over strata that hold both arms. A stratum with t treated and c control units
        counts as min(t, K c) + min(c, K t): as all of its units while neither arm outnumbers the other by more than K
        to 1, and as fewer beyond. The effect notes how many units that leaves. Where it is less than four fifths, the
        estimand is called what it is: the effect in the overlap population of strata.

    Assumptions:
        Within a stratum arms are comparable: the covariates that define strata are all confounders, and numbers are cut
        finely. No shape of the outcome or of the propensity is assumed. The interval is conditional on the strata in
        the table, and assumes one variance of the outcome in all of them.

        A number without edges is cut at quantiles. Some confounding stays within its bins: of all that strata removed,
        the share of a normal number's variance within bins, if each covariate has an equal part. The estimate is
        corrected by that. The interval allows for an error of three quarters of what it would be if numbers had all of
        the confounding.

    Privacy:
        One query of strata. Noise is Laplace with delta 0; with a positive delta it is Gaussian where that is smaller.
        It is the same for two strata and for ten thousand, in proportion to 1 + K and to the distance of the outcome's
        bounds. Strata must be public: listed values, given edges, or quantiles that were released. Quantiles come from
        counts of all numbers of the schema, for 10 % of epsilon, once for a data set. A small query of the arms' sizes
        and means comes first where a number is cut at quantiles, or sizes are private and no cap is given.

    Attributes:
        by: The covariates that define strata, by name, or a number with given edges as a `Cut`.
        cap: K. A larger cap trims less and needs more noise. By default it follows the odds of the larger arm, of
            public arms, or of the arms' sizes as released for 3 % of epsilon or more. To pool over sites, give the same
            to all.
        bins: Into how many bins each number without edges is cut. By default as many as leave eight units to a stratum,
            at most 40.

    Reference:
        Subclassification on discrete covariates. The ratio cap, which bounds the influence of one unit, replaces the
        smooth sensitivity of Koga, Chaudhuri and Page (2024), section III-A2, and needs no delta.

    Example:
        >>> from dpcausal import Category, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(
        ...     treatment=Treatment("treat"),
        ...     outcome=Real("score", 0, 100),
        ...     covariates=[Category("ward", ["a", "b", "c"]), Real("age", 18, 90)],
        ... )
        >>> for by in (["ward", "age"], ["ward", Cut("age", [40, 65])]):
        ...     plan = Stratification(by=by).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        ...     print(round(plan.sampling_sd, 2), round(plan.privacy_sd, 2))
        0.69 0.36
        0.76 0.32
    """

    also_called: ClassVar[str] = "strat subclassification stratified blocking cmh mantel_haenszel"
    estimates_average: ClassVar[bool] = True

    by: Sequence[str | Cut]
    cap: int | None = None
    bins: int | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta, of which delta is used only where noise is smaller."""
        allowed = guarantee_for(source, epsilon, delta)
        source, strata, arms, rest, asked, notes = self._strata(source, allowed)
        query, second = self._query(strata.cuts, source, rest, arms)
        release = source.release(query, second)
        count = release.sites * math.prod(bins(strata.cuts, source.schema))  # each site has strata of its own
        units = units_compared(source, release)
        size = within(release.value("size"), units * _MIN_SHARE, units)
        inside = release.estimates(
            ["effect within strata"],
            lambda value: [value("effect") / within(value("size"), units * _MIN_SHARE, units)],
        )
        left = LeftWithin.of(strata, arms.difference, inside.values[0], source)
        means = min(max(release.value("means"), 2.0), units * MAX_MEANS)
        variance = variance_within(release, units, means)
        target: Estimand = "ATE" if size / units >= _NEARLY_ALL else "ATO"
        effect = Effect(
            estimand=_estimand(target, query.cap),
            target=target,
            defining={"cap": query.cap},
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=inside.values[0] - left.confounding,
            sampling_sd=_sampling_sd(release, source, size, variance.value, query.cap),
            noise=(*inside.noise_along([1 + left.ratio]), *left.noise),
            n=source.n,
            method=f"stratification by {', '.join(map(str, strata.cuts))}; {count:,} strata, cap {query.cap}",
            guarantee=spent(allowed, (*asked, release.receipt)),
            assumptions=(*within_strata(strata.cuts), *left.assumptions, *source.schema.data_handling),
            receipts=(*asked, release.receipt),
            notes=(
                f"strata count as about {size:,.0f} of {units:,.0f} units (noisy)",
                *left.notes,
                *notes,
                *source.caveats,
            ),
            no_interval=_hidden(strata.hidden) or _refusal(release.value("size"), units, release.value("means")),
        ).with_left_in(left.bound)
        return warned(effect, source.schema, Signs(variance=variance, compared=compared_in(release)))

    def advice_for_sites(self, schema: Schema) -> str:
        """Return what to change where it would choose strata or a cap at each site; empty where it does not."""
        if self.cap is None:
            return "give the estimator a cap: the odds of the larger arm where arms differ most, and 2 to 4 more."
        if numbers := numbers_without_edges(cuts_of(self.by), schema, self.bins):
            return f"give public edges, so that strata are the same everywhere: Cut({numbers[0]!r}, [...])."
        return ""

    def _strata(
        self, source: Source, allowed: Guarantee
    ) -> tuple[Source, QuantileStrata, "_Arms", Guarantee, tuple[Receipt, ...], tuple[str, ...]]:
        """Return the source with its strata and the arms' sizes; the guarantee that is left, what was asked, and notes.

        Of a number that many units lack, these have strata of their own.
        """
        cuts = cuts_of(self.by)
        numbers = numbers_without_edges(cuts, source.schema, self.bins)
        listed = [cut.name for cut in cuts if not cut.edges and cut.name not in numbers]
        if not numbers:
            return self._listed(source, cuts, listed, allowed)
        found = with_scales(source, [*numbers, *listed], allowed)
        planned = QuantileStrata.of(
            cuts, source.schema, found.scales, self.bins or bins_for(cuts, source.schema, source.n)
        )
        share = min(max((_NOISE_OF_ARMS * planned.ratio) ** (2 / 3), _ARMS_SHARE), _MOST_FOR_ARMS)
        first, rest = found.rest.split(share, pure_first=True)
        release = source.release(ArmTotals(), first)
        arms = _Arms.of(release, source)
        count = self.bins or bins_for(cuts, source.schema, arms.units, arms.rarer)
        strata = QuantileStrata.of(cuts, source.schema, found.scales, count)
        strata = _with_missing(strata, found, len(numbers) + len(listed), source.schema)
        view = scaled(source, {}, found.indicated) if found.indicated else source
        return view, strata, arms, rest, (*found.receipts, release.receipt), found.notes

    def _listed(
        self, source: Source, cuts: tuple[Cut, ...], listed: Sequence[str], allowed: Guarantee
    ) -> tuple[Source, QuantileStrata, "_Arms", Guarantee, tuple[Receipt, ...], tuple[str, ...]]:
        """Return strata without numbers at quantiles; arms are asked for their sizes, and where values are missing."""
        found = with_scales(source, listed, allowed) if listed else ScaledCovariates(source, (), allowed)
        strata = _with_missing(QuantileStrata(cuts), found, len(listed), source.schema)
        if not strata.lacking and (self.cap is not None or source.arm_sizes is not None):
            return source, strata, _Arms.public(source), found.rest, found.receipts, found.notes
        first, rest = found.rest.split(_ARMS_SHARE, pure_first=True)
        release = source.release(ArmTotals(), first)
        return found.source, strata, _Arms.of(release, source), rest, (*found.receipts, release.receipt), found.notes

    def _query(
        self, cuts: Sequence[Cut], source: Source, allowed: Guarantee, arms: "_Arms"
    ) -> tuple[StratumContrasts, Guarantee]:
        """Return the query and its guarantee."""
        if self.cap is None:
            return _capped(cuts, source, allowed, arms)
        query = StratumContrasts(cuts, self.cap)
        return query, narrower(query, source, allowed, "effect")


def _with_missing(strata: QuantileStrata, found: ScaledCovariates, places: int, schema: Schema) -> QuantileStrata:
    """Return strata in which units that lack a value are apart, and what that leaves in.

    Each covariate that is apart doubles the strata: there are as many as a query takes.
    """
    doubled = int(math.log2(MOST_STRATA / math.prod(bins(strata.cuts, schema))))  # edges are of plain numbers
    apart = tuple(map(Cut, found.covariates[places:][:doubled]))
    stays = sum(found.lacking.values()) / len(strata.cuts)
    return replace(strata, cuts=(*strata.cuts, *apart), lacking=min(stays, 0.5))


@dataclass(frozen=True)
class _Arms:
    """The arms without strata.

    Attributes:
        rarer: The share of the smaller arm; where it is noisy, as much larger as noise may hide.
        difference: The difference between their mean outcomes, where it was asked.
    """

    units: float
    rarer: float
    difference: Difference | None = None

    @classmethod
    def public(cls, source: Source) -> "_Arms":
        """Return arms of public sizes, or those of a given cap, which needs no sizes."""
        sizes = source.arm_sizes or (source.n, source.n)
        units = float(max(sum(sizes), 2))
        return cls(units, min(sizes) / units)

    @classmethod
    def of(cls, release: Release, source: Source) -> "_Arms":
        """Return the arms as released."""
        sizes = arm_sizes_of(release, source)
        units = units_compared(source, release)
        # Where noise is large, the cap is that of even arms.
        hides = math.sqrt(release.variance("size_1")) / units if "size_1" in release.names else 0.0
        rarer = max(min(sizes) / units, hides) + hides
        difference = mean_difference(release, source)
        return cls(units, min(rarer, 0.5), Difference(difference.values[0], difference.noise_along((1.0,))))


def _capped(cuts: Sequence[Cut], source: Source, allowed: Guarantee, arms: _Arms) -> tuple[StratumContrasts, Guarantee]:
    """Return the query with the cap for arms of these sizes, and its guarantee."""
    rarer = min(max(arms.rarer, 1 / _LARGEST_CAP), 0.5)
    odds = math.floor((1 - rarer) / rarer)
    low, high = source.schema.outcome_bounds
    sampling = (high - low) / 10 / math.sqrt(arms.units * rarer * (1 - rarer))
    query = StratumContrasts(cuts, min(odds + _MANY, _LARGEST_CAP))
    second = narrower(query, source, allowed, "effect")
    noise = calibrate(query, source.schema, second, source.rule)
    scale = (noise.scales[0] or 0.0) * noise.sensitivity.coordinates[0].tick / arms.units
    if scale * (math.sqrt(2) if noise.family == "laplace" else 1.0) > _NOISE_OVER_SAMPLING * sampling:
        query = StratumContrasts(cuts, min(odds + _FEW, _LARGEST_CAP))
        second = narrower(query, source, allowed, "effect")
    return query, second


def _estimand(target: Estimand, cap: int) -> str:
    """Return the estimand in words."""
    less = f"a stratum counting for less where one arm outnumbers the other by more than {cap} to 1"
    if target == "ATE":
        return f"average treatment effect over strata with both arms, {less}"
    return f"average effect in the overlap population of strata: strata with both arms, {less}"


def variance_within(release: Release, units: float, means: float) -> Measured:
    """Return the outcome's variance within arms of strata, noise included, given the number of arms with units."""
    freedom = units - means
    return Measured(release.value("squares") / freedom, release.variance("squares") ** 0.5 / freedom)


def within_strata(cuts: Sequence[Cut]) -> tuple[str, ...]:
    """Return the assumptions of comparisons within strata."""
    return (
        f"within strata of {', '.join(cut.name for cut in cuts)} the arms are comparable: no residual confounding",
        NO_INTERFERENCE,
        "for the interval: the outcome has one variance in all strata, and strata are as in the table",
    )


def _hidden(names: Sequence[str]) -> str:
    """Return why there is no interval where numbers could not be cut at quantiles; empty where all were."""
    if not names:
        return ""
    return f"noise hides where values of {', '.join(names)} are; declare typical values, or give edges"


def _refusal(size: float, units: float, means: float) -> str:
    """Return why there is no interval; empty where there is one."""
    if size < units * _MIN_SHARE:
        return "few strata contain both arms, so noise dominates their size; use fewer or wider strata"
    if means > units * MAX_MEANS:
        return "too many strata for so few units to estimate the variance within them; use fewer or wider strata"
    return ""


def _sampling_sd(release: Release, source: Source, size: float, variance: float, cap: int) -> float:
    """Return the standard error: one variance for all arms and strata, times a factor for the sizes of arms.

    In balance that factor is 4 / size. It is between min(4, 1 + cap) / size and (1 + cap)² / cap / size.
    """
    low, high = source.schema.outcome_bounds
    within = min(max(variance, 0.0), (high - low) ** 2 / 4)
    weight_square_sum = min(
        max(release.value("weight_square_sum"), min(4, 1 + cap) * size), (1 + cap) ** 2 / cap * size
    )
    return math.sqrt(within * weight_square_sum) / size
