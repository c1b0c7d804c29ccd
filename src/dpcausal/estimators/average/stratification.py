"""Stratification on a short list of discrete confounders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.queries import Cut, StratumContrasts
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for, units_compared

_MIN_SHARE = 0.1
"""The least share of all units that strata count as. Below it there is no interval: a ratio of noisy numbers is then
far from normal."""

_MAX_MEANS = 0.5
"""The largest number of means, two for each stratum, over the number of units: half of the degrees of freedom stay."""


@dataclass(frozen=True)
class Stratification(BaseEstimator):
    """Difference in mean outcome between the arms within strata, averaged over strata.

    Estimand:
        The average treatment effect over strata that hold both arms. A stratum with t treated and c control units
        counts as min(t, K c) + min(c, K t): as all of its units while neither arm outnumbers the other by more than K
        to 1, and as fewer beyond. The effect notes how many units that trims.

    Assumptions:
        Within a stratum arms are comparable: the covariates that define strata are all confounders. The interval is
        conditional on the strata in the table, and assumes one variance of the outcome in all of them.

    Privacy:
        One query, with pure epsilon or Gaussian noise. The noise is the same for two strata and for ten thousand, in
        proportion to 1 + K and to the distance of the outcome's bounds. Strata must be public: listed values or public
        edges.

    Attributes:
        by: The covariates that define strata: names of listed ones, and `Cut`s of real ones.
        cap: K. A larger cap trims less and needs more noise.

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
        (0.82, 0.32)
    """

    also_called: ClassVar[str] = "strat subclassification stratified blocking cmh mantel_haenszel"

    by: Sequence[str | Cut]
    cap: int = 3

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace with delta 0, otherwise Gaussian."""
        guarantee = guarantee_for(source, epsilon, delta)
        cuts = cuts_of(self.by)
        query = StratumContrasts(cuts, self.cap)
        release = source.release(query, guarantee)
        strata = release.parts * math.prod(bins(cuts, source.schema))  # each site has strata of its own
        units = units_compared(source, release)
        size = min(max(release.value("size"), units * _MIN_SHARE), units)
        estimate = release.value("effect") / size
        effect = Effect(
            estimand=(
                "average treatment effect over strata with both arms, a stratum counting for less where one arm "
                f"outnumbers the other by more than {self.cap} to 1"
            ),
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=estimate,
            sampling_sd=_sampling_sd(release, source, size, strata, self.cap),
            noise=(
                release.noise_term("effect", 1 / size),
                release.noise_term("size", abs(estimate) / size),
            ),
            n=source.n,
            method=f"stratification by {', '.join(map(str, cuts))}; {strata:,} strata, cap {self.cap}",
            guarantee=guarantee,
            assumptions=(*within_strata(cuts), *source.schema.data_handling),
            receipts=(release.receipt,),
            notes=(f"strata count as about {size:,.0f} of {units:,.0f} units (noisy)", *source.caveats),
            no_interval=_refusal(release.value("size"), units, strata),
        )
        return warned(effect, source.schema, Signs(variance=variance_within(release, source, strata)))


def variance_within(release: Release, source: Source, strata: int) -> Measured:
    """Return the outcome's variance within arms of strata, noise included."""
    units = units_compared(source, release)
    freedom = units - min(2 * strata, units * _MAX_MEANS)
    return Measured(release.value("squares") / freedom, release.variance("squares") ** 0.5 / freedom)


def within_strata(cuts: Sequence[Cut]) -> tuple[str, ...]:
    """Return the assumptions of comparisons within strata."""
    return (
        f"within strata of {', '.join(cut.name for cut in cuts)} the arms are comparable: no residual confounding",
        NO_INTERFERENCE,
        "for the interval: the outcome has one variance in all strata, and strata are as in the table",
    )


def _refusal(size: float, units: float, strata: int) -> str:
    """Return why there is no interval; empty where there is one."""
    if size < units * _MIN_SHARE:
        return "few strata contain both arms, so noise dominates their size; use fewer or wider strata"
    if 2 * strata > units * _MAX_MEANS:
        return "too many strata for so few units to estimate the variance within them; use fewer or wider strata"
    return ""


def _sampling_sd(release: Release, source: Source, size: float, strata: int, cap: int) -> float:
    """Return the standard error: one variance for all arms and strata, times a factor for the sizes of arms.

    In balance that factor is 4 / size. It is between min(4, 1 + cap) / size and (1 + cap)² / cap / size.
    """
    low, high = source.schema.outcome_bounds
    variance = min(max(variance_within(release, source, strata).value, 0.0), (high - low) ** 2 / 4)
    weight_square_sum = min(
        max(release.value("weight_square_sum"), min(4, 1 + cap) * size), (1 + cap) ** 2 / cap * size
    )
    return math.sqrt(variance * weight_square_sum) / size
