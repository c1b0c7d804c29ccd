"""Adjustment for a short list of discrete confounders: compare like with like, stratum by stratum."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.queries import Cut, StratumContrasts
from dpcausal.queries.cuts import bins, cuts_of
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for, units_compared


@dataclass(frozen=True)
class Stratification(BaseEstimator):
    """Difference in mean outcome between the arms within strata, averaged over strata.

    Estimand:
        The average treatment effect over strata that hold both arms. A stratum with t treated and c control units
        counts as min(t, K c) + min(c, K t): as all of its units while neither arm outnumbers the other by more than K
        to 1, and as fewer beyond. Where that trims, the effect says by how much.

    Assumptions:
        Within a stratum arms are comparable: the covariates that tell strata apart are all confounders. The interval
        takes strata as they are found in the table, and outcomes as equally spread in all of them.

    Privacy:
        One query, pure epsilon or Gaussian. The noise is the same for two strata and for ten thousand, in proportion to
        1 + K and to the distance of the outcome's bounds. Strata must be public: listed values or public edges.

    Attributes:
        by: The covariates that tell strata apart: names of listed ones, and `Cut`s of real ones.
        cap: K. A larger cap trims less and needs more noise.

    Reference:
        Subclassification on discrete covariates. The ratio cap, which bounds what one unit can move, stands in place of
        the smooth sensitivity of Koga, Chaudhuri and Page (2024), section III-A2, and needs no delta.

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

    by: Sequence[str | Cut]
    cap: int = 3

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """The effect, for epsilon and delta in all; delta 0 gives Laplace noise, a positive delta Gaussian noise."""
        guarantee = guarantee_for(source, epsilon, delta)
        cuts = cuts_of(self.by)
        query = StratumContrasts(cuts, self.cap)
        release = source.release(query, guarantee)
        strata = release.parts * math.prod(bins(cuts, source.schema))  # each site has strata of its own
        units = units_compared(source, release)
        size = min(max(release.value("size"), units / 10), units)
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
            no_interval=_EMPTY if release.value("size") < units / 10 else _FINE if 2 * strata > units / 2 else "",
        )
        return warned(effect, source.schema, Signs(variance=variance_within(release, source, strata)))


def variance_within(release: Release, source: Source, strata: int) -> Measured:
    """The outcome's variance within arms of strata, as noise left it."""
    units = units_compared(source, release)
    freedom = units - min(2 * strata, units / 2)
    return Measured(release.value("squares") / freedom, release.variance("squares") ** 0.5 / freedom)


def within_strata(cuts: Sequence[Cut]) -> tuple[str, ...]:
    """What comparisons within strata rest on."""
    return (
        f"within strata of {', '.join(cut.name for cut in cuts)} the arms are comparable: no confounding is left",
        "one unit's outcome does not depend on another unit's arm",
        "for the interval: outcomes are equally spread in all strata, and strata are as found in the table",
    )


_EMPTY = "hardly any stratum holds both arms, so noise decides what strata count as; use fewer or wider strata"
_FINE = "strata are too many to tell from so few units how outcomes spread within them; use fewer or wider strata"


def _sampling_sd(release: Release, source: Source, size: float, strata: int, cap: int) -> float:
    """One variance for all arms and strata, times what the sizes of arms make of it.

    In balance the second factor is 4 / size. It lies between min(4, 1 + cap) / size and (1 + cap)² / cap / size.
    """
    low, high = source.schema.outcome_bounds
    variance = min(max(variance_within(release, source, strata).value, 0.0), (high - low) ** 2 / 4)
    weight_square_sum = min(
        max(release.value("weight_square_sum"), min(4, 1 + cap) * size), (1 + cap) ** 2 / cap * size
    )
    return math.sqrt(variance * weight_square_sum) / size
