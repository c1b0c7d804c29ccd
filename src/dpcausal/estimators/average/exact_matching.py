"""Exact matching on discrete confounders, as in the multi-site paper: a baseline for comparison."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.estimators.average.stratification import MAX_MEANS, variance_within, within_strata
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.queries import Cut, StratumMatches
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.queries.query import outcome_tick
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.interval import NoiseTerm

_LARGEST_LOG = 100.0
"""Of a scale: beyond it any interval is the whole line."""

_WIDENING = 1.7
"""Widens the scale by exp(1.7 b²), because it carries a random factor exp(L), L Laplace noise of scale b. The 90 % and
95 % quantiles of the noise by itself need 1.3 b² and 2.0 b²."""


@dataclass(frozen=True)
class ExactMatching(BaseEstimator):
    """Each unit against the mean of the other arm in its stratum, averaged over all units.

    A baseline for comparison: `Stratification` answers the same question, with far less noise where strata are many.
    The paper calls it SmoothDPMatching with a positive delta, and GlobalDPMatching with delta 0
    (docs/papers/multi-site.md).

    Estimand:
        The average treatment effect, where units in strata without both arms count as units without an effect.

    Assumptions:
        As for `Stratification`.

    Privacy:
        One query. With a positive delta, noise is in proportion to the smooth sensitivity of the table, itself released
        with noise. With delta 0 it is in proportion to the global sensitivity, the outcome's whole range.

    Attributes:
        by: The covariates that define strata: names of listed ones, and `Cut`s of real ones.

    Reference:
        Koga, Chaudhuri and Page (2024), Differentially Private Multi-Site Treatment Effect Estimation, section III-A2.
        Corrected here: ties among matches are averaged, not broken by the order of the table; the smooth bound holds at
        every distance (the printed one is off by one where an arm of a stratum runs out); the sensitivity bound is two
        to five times smaller; the sampling variance is taken within arms.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Stratification, Treatment
        >>> arms, covariates = Treatment("treat", undeclared=0), [Real("age", 18, 90)]
        >>> schema = Schema(treatment=arms, outcome=Real("score", 0, 100, missing=50), covariates=covariates)
        >>> years = [Cut("age", range(19, 90))]
        >>> source = Rehearsal(schema, n=5_000)
        >>> for estimator in (ExactMatching(by=years), Stratification(by=years)):
        ...     print(round(estimator.estimate(source, epsilon=1.0, delta=1e-6).privacy_sd, 2))
        11.12
        0.3
    """

    also_called: ClassVar[str] = "cem exact coarsened_exact_matching"

    by: Sequence[str | Cut]

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; smooth sensitivity needs a positive delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        cuts = cuts_of(self.by)
        query = StratumMatches(cuts, "smooth" if delta else "global")
        release = source.release(query, guarantee)
        n, strata = source.n, math.prod(bins(cuts, source.schema))
        if delta:
            share = epsilon * float(query.shares["effect"])
            log_bound = min(max(release.value("log_sensitivity"), 0.0) * smoothness(share, delta), _LARGEST_LOG)
            bound = math.exp(log_bound) * outcome_tick(source.schema)
            estimate, scale = release.value("effect") / n, 2 * bound / share / n
            # The scale of the noise is known up to a random factor only, so the interval is widened.
            scale *= math.exp(_WIDENING * (release.scale("log_sensitivity") * smoothness(share, delta)) ** 2)
        else:
            estimate, scale = (part * (n + 1) / n for part in (release.value("effect"), release.scale("effect")))
        names = ", ".join(map(str, cuts))
        found = Effect(
            estimand="average treatment effect, units in strata without both arms counting as without an effect",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=estimate,
            sampling_sd=_sampling_sd(release, source, strata, query.weight_cap),
            noise=(NoiseTerm("laplace" if delta else release.family, scale),),
            n=n,
            method=f"exact matching within strata of {names}, noise by {'smooth' if delta else 'global'} sensitivity",
            guarantee=guarantee,
            assumptions=(*within_strata(cuts), *source.schema.data_handling),
            receipts=(release.receipt,),
            notes=(
                "a baseline for comparison: where strata are many, stratification needs far less noise",
                "the scale of the privacy noise is private too: it was estimated, with noise"
                if delta
                else "a positive delta would allow smooth sensitivity, which needs far less noise",
                *source.caveats,
            ),
        )
        return warned(found, source.schema, Signs(variance=_variance(release, source.n, strata)))


def _sampling_sd(release: Release, source: Source, strata: int, cap: int) -> float:
    """Return the standard error: one variance for all strata, times a factor for the arms' sizes, at most cap to 1."""
    low, high = source.schema.outcome_bounds
    variance = min(max(_variance(release, source.n, strata).value, 0.0), (high - low) ** 2 / 4)
    weight_square_sum = min(max(release.value("weight_square_sum"), 0.0), (1 + cap) ** 2 / cap * source.n)
    return math.sqrt(variance * weight_square_sum) / source.n


def _variance(release: Release, n: int, strata: int) -> Measured:
    """Return the outcome's variance within arms of strata, as if no arm of a stratum were empty."""
    return variance_within(release, n, min(2 * strata, n * MAX_MEANS))
