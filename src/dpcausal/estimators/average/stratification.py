"""Stratification on a short list of confounders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.calibration import calibrate
from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, compared_in, warned
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmTotals, Cut, StratumContrasts
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.release import Receipt, Release
from dpcausal.source import Source, guarantee_for, units_compared

_MIN_SHARE = 0.1
"""The least share of all units that strata count as. Below it there is no interval: a ratio of noisy numbers is then
far from normal."""

_NEARLY_ALL = 0.8
"""Where strata count as this share of all units or more, the estimand is the average treatment effect."""

MAX_MEANS = 0.5
"""The largest number of means, one for each arm of a stratum with units, over the number of units: half of the degrees
of freedom stay."""

_CAP_SHARE = 0.03
"""The share of the guarantee that the arms' sizes get, where they decide the cap."""

_FEW, _MANY = 2, 4
"""By how much the cap exceeds the odds of the larger arm: where noise would be as large as the sampling error, and
where it is smaller."""

_NOISE_OVER_SAMPLING = 0.5
"""Up to this ratio of noise to sampling error the larger cap is chosen. For this rule only, the outcome's standard
deviation within strata is a fifth of its range."""

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

    Privacy:
        One query, and a small one of the arms' sizes where these are private and no cap is given. Noise is Laplace with
        delta 0; with a positive delta it is Gaussian where that is smaller. It is the same for two strata and for ten
        thousand, in proportion to 1 + K and to the distance of the outcome's bounds. Strata must be public: listed
        values or public edges.

    Attributes:
        by: The covariates that define strata: names of listed ones, and `Cut`s of real ones.
            `dpcausal.planning.strata.propose_strata` proposes them.
        cap: K. A larger cap trims less and needs more noise. By default it follows the odds of the larger arm, of
            public arms, or of the arms' sizes as released for 3 % of epsilon. To pool over sites, give the same to all.

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
        >>> plan = Stratification(by=["ward", Cut("age", [40, 65])]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.76, 0.3)
    """

    also_called: ClassVar[str] = "strat subclassification stratified blocking cmh mantel_haenszel"

    by: Sequence[str | Cut]
    cap: int | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta, of which delta is used only where noise is smaller."""
        cuts = cuts_of(self.by)
        allowed = guarantee_for(source, epsilon, delta)
        query, second, asked = self._query(cuts, source, allowed)
        release = source.release(query, second)
        strata = release.sites * math.prod(bins(cuts, source.schema))  # each site has strata of its own
        units = units_compared(source, release)
        size = min(max(release.value("size"), units * _MIN_SHARE), units)
        estimate = release.value("effect") / size
        means = min(max(release.value("means"), 2.0), units * MAX_MEANS)
        variance = variance_within(release, units, means)
        effect = Effect(
            estimand=_estimand(size / units, query.cap),
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=estimate,
            sampling_sd=_sampling_sd(release, source, size, variance.value, query.cap),
            noise=(
                release.noise_term("effect", 1 / size),
                release.noise_term("size", abs(estimate) / size),
            ),
            n=source.n,
            method=f"stratification by {', '.join(map(str, cuts))}; {strata:,} strata, cap {query.cap}",
            guarantee=allowed if second.delta else guarantee_for(source, epsilon, 0.0),
            assumptions=(*within_strata(cuts), *source.schema.data_handling),
            receipts=(*asked, release.receipt),
            notes=(f"strata count as about {size:,.0f} of {units:,.0f} units (noisy)", *source.caveats),
            no_interval=_refusal(release.value("size"), units, release.value("means")),
        )
        return warned(effect, source.schema, Signs(variance=variance, compared=compared_in(release)))

    def _query(
        self, cuts: Sequence[Cut], source: Source, allowed: Guarantee
    ) -> tuple[StratumContrasts, Guarantee, tuple[Receipt, ...]]:
        """Return the query, its guarantee, and what was paid to choose its cap."""
        if self.cap is not None:
            query = StratumContrasts(cuts, self.cap)
            return query, narrower(query, source, allowed, "effect"), ()
        receipts: tuple[Receipt, ...] = ()
        if source.arm_sizes is not None:
            units = float(max(sum(source.arm_sizes), 2))
            rarer = min(source.arm_sizes) / units
        else:
            first, allowed = allowed.split(_CAP_SHARE, pure_first=True)
            release = source.release(ArmTotals(), first)
            units, receipts = units_compared(source, release), (release.receipt,)
            treated = release.value("size_1") / units
            # As much larger as noise may hide: where noise is large, the cap is that of even arms.
            noise = math.sqrt(release.variance("size_1")) / units
            rarer = max(min(treated, 1 - treated), noise) + noise
        query, second = _capped(cuts, source, allowed, units, rarer)
        return query, second, receipts


def _capped(
    cuts: Sequence[Cut], source: Source, allowed: Guarantee, units: float, rarer: float
) -> tuple[StratumContrasts, Guarantee]:
    """Return the query with the cap for arms of these sizes, and its guarantee."""
    rarer = min(max(rarer, 1 / _LARGEST_CAP), 0.5)
    odds = math.floor((1 - rarer) / rarer)
    low, high = source.schema.outcome_bounds
    sampling = (high - low) / 5 / math.sqrt(units * rarer * (1 - rarer))
    query = StratumContrasts(cuts, min(odds + _MANY, _LARGEST_CAP))
    second = narrower(query, source, allowed, "effect")
    noise = calibrate(query, source.schema, second)
    scale = (noise.scales[0] or 0.0) * noise.sensitivity.coordinates[0].tick / units
    if scale * (math.sqrt(2) if noise.family == "laplace" else 1.0) > _NOISE_OVER_SAMPLING * sampling:
        query = StratumContrasts(cuts, min(odds + _FEW, _LARGEST_CAP))
        second = narrower(query, source, allowed, "effect")
    return query, second


def _estimand(share: float, cap: int) -> str:
    """Return the estimand, given the share of units that strata count as."""
    less = f"a stratum counting for less where one arm outnumbers the other by more than {cap} to 1"
    if share >= _NEARLY_ALL:
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
