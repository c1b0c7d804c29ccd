"""Exact matching on discrete confounders, as in the multi-site paper: kept to compare with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.effect import Effect
from dpcausal.estimators.average.stratification import variance_within, within_strata
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.plausibility import Signs, warned
from dpcausal.interval import NoiseTerm
from dpcausal.queries import Cut, StratumMatches
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.queries.query import outcome_tick
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for


@dataclass(frozen=True)
class ExactMatching(BaseEstimator):
    """Each unit against the mean of the other arm in its stratum, averaged over all units.

    `Stratification` answers the same question, with a fraction of the noise where strata are many; this is here to
    compare with.

    Estimand:
        The average treatment effect, where units in strata without both arms count as units without an effect.

    Assumptions:
        As for `Stratification`.

    Privacy:
        One query. With a positive delta, noise is in proportion to the smooth sensitivity of the table, itself released
        with noise. With delta 0 it is in proportion to the largest move in any table, the outcome's whole range.

    Attributes:
        by: The covariates that tell strata apart: names of listed ones, and `Cut`s of real ones.

    Reference:
        Koga, Chaudhuri and Page (2024), Differentially Private Multi-Site Treatment Effect Estimation, section III-A2.
        Corrected here: ties among matches are averaged over instead of broken by the order of the table; the smooth
        bound holds at every distance (the printed one is off by one where an arm of a stratum runs out) and for strata
        that no unit is in; the bound on moves is two to five times smaller; the sampling variance is taken within arms.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Stratification, Treatment
        >>> arms, covariates = Treatment("treat", undeclared=0), [Real("age", 18, 90)]
        >>> schema = Schema(treatment=arms, outcome=Real("score", 0, 100), covariates=covariates)
        >>> years = [Cut("age", range(19, 90))]
        >>> source = Rehearsal(schema, n=5_000)
        >>> for estimator in (ExactMatching(by=years), Stratification(by=years)):
        ...     print(round(estimator.estimate(source, epsilon=1.0, delta=1e-6).privacy_sd, 2))
        11.12
        0.87
    """

    by: Sequence[str | Cut]

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """The effect, for epsilon and delta in all; smooth sensitivity needs a positive delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        cuts = cuts_of(self.by)
        query = StratumMatches(cuts, "smooth" if delta else "global")
        release = source.release(query, guarantee)
        n, strata = source.n, math.prod(bins(cuts, source.schema))
        if delta:
            share = epsilon * float(query.shares["effect"])
            bound = math.exp(release.value("log_sensitivity") * smoothness(share, delta)) * outcome_tick(source.schema)
            estimate, scale = release.value("effect") / n, 2 * bound / share / n
            # The size of the noise is itself known up to a random factor, for which the interval is widened.
            scale *= math.exp(1.7 * (release.scale("log_sensitivity") * smoothness(share, delta)) ** 2)
        else:
            estimate, scale = (part * (n + 1) / n for part in (release.value("effect"), release.scale("effect")))
        names = ", ".join(map(str, cuts))
        found = Effect(
            estimand="average treatment effect, units in strata without both arms counting as without an effect",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=estimate,
            sampling_sd=_sampling_sd(release, source, strata, query.weight_cap),
            noise=(NoiseTerm("laplace" if delta else release.family, scale),),
            n=n,
            method=f"exact matching within strata of {names}, noise by {'smooth' if delta else 'global'} sensitivity",
            guarantee=guarantee,
            assumptions=(*within_strata(cuts), *source.schema.data_handling),
            receipts=(release.receipt,),
            notes=(
                "kept for comparison: where strata are many, stratification needs far less noise",
                "the size of the privacy noise is private too: it was estimated, with noise"
                if delta
                else "a positive delta would allow smooth sensitivity, which needs far less noise",
                *source.caveats,
            ),
        )
        return warned(found, source.schema, Signs(variance=variance_within(release, source, strata)))


def _sampling_sd(release: Release, source: Source, strata: int, cap: int) -> float:
    """One variance for all arms and strata, times what the sizes of arms, at most cap to 1, make of it."""
    low, high = source.schema.outcome_bounds
    variance = min(max(variance_within(release, source, strata).value, 0.0), (high - low) ** 2 / 4)
    weight_square_sum = min(max(release.value("weight_square_sum"), 0.0), (1 + cap) ** 2 / cap * source.n)
    return math.sqrt(variance * weight_square_sum) / source.n
