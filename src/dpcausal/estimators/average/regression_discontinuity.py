"""The effect of a treatment that a cutoff decides on, at the cutoff."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.interval_policy import ARM_NOISE_SDS
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Signs, warned
from dpcausal.queries import CutoffMoments
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RequiringSource, Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.utils.text import format_number


@dataclass(frozen=True)
class RegressionDiscontinuity(BaseEstimator):
    """The jump of the mean outcome at a cutoff: local linear regressions on both sides of it (sharp design).

    A running variable decides on the treatment: those at or above a cutoff get it, and those below do not. The cutoff
    and the bandwidth, the distance up to which units count, are public: choose them before the data are seen.

    Estimand:
        The mean effect of the treatment on units at the cutoff.

    Assumptions:
        Every unit at or above the cutoff is treated and none below is (with `treated_below` the other way round). The
        estimator goes by the side of the cutoff, not by the column of the treatment: where the two differ, it estimates
        the effect of the side. Units cannot choose their side. Without treatment and with it, the mean outcome goes on
        without a jump through the cutoff, and is linear in the running variable within the bandwidth on each side. The
        interval does not allow for curvature: halve the bandwidth to see whether it matters.

    Privacy:
        One query: noisy sums over units within the bandwidth. Units further away add nothing.

    Interval:
        From the residual variance on each side, taken to be the same all over it, and the privacy noise in every sum.
        There is none where noise hides how many units a side has or how far they are spread.

    Attributes:
        running: The covariate, a number, that decides on the treatment.
        cutoff: The value from which on a unit is above the cutoff.
        bandwidth: The distance from the cutoff up to which units count, in the units of the running variable.
        treated_below: Whether units below the cutoff are the treated ones.

    Reference:
        Hahn, Todd and van der Klaauw (2001), Identification and estimation of treatment effects with a
        regression-discontinuity design; Imbens and Lemieux (2008). The kernel is uniform. Proof of privacy:
        docs/proofs/sums.md.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> risk = Real("risk", 0, 40, typical=(2, 25))
        >>> statins = Schema(treatment=Treatment("statin"), outcome=Real("ldl", 0, 8), covariates=[risk])
        >>> design = RegressionDiscontinuity(running="risk", cutoff=10, bandwidth=5)
        >>> plan = design.estimate(Rehearsal(statins, n=50_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 3), round(plan.privacy_sd, 3)
        (0.053, 0.012)
    """

    identified_by_design: ClassVar[bool] = True
    also_called: ClassVar[str] = (
        "rd rdd rdrobust sharp_rd regression_discontinuity_design local_linear local_linear_regression cutoff threshold"
    )

    running: str
    cutoff: float
    bandwidth: float
    treated_below: bool = False

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator with a cutoff in the middle of the first number, and a bandwidth of a quarter of it."""
        number = next((column for column in schema.covariates if isinstance(column, Real)), None)
        return (
            cls(number.name, (number.low + number.high) / 2, (number.high - number.low) / 4)
            if number
            else cls("", 0, 1)
        )

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query = CutoffMoments(self.running, self.cutoff, self.bandwidth, self.treated_below)
        guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), "product_1")
        source = RequiringSource(source, query.required)
        release = source.release(query, guarantee)
        low, high = source.schema.outcome_bounds
        sides = [_Side.of(release, arm, (high - low) / 2) for arm in (0, 1)]
        arms = source.schema.treatment.labels_or_values
        means = release.estimates(
            arms,
            lambda value: [(low + high) / 2 + _Line.of(release, arm, value).at_cutoff for arm in (0, 1)],
            np.diag([side.sampling_variance for side in sides]),
        )
        sizes = release.estimates(arms, lambda value: [value("size_0"), value("size_1")])
        at = f"{self.running} = {format_number(self.cutoff)}"
        treated = "below" if self.treated_below else "at or above"
        effect = Effect(
            estimand=f"effect at the cutoff: mean effect of treatment on units with {at}",
            arms=arms,
            outcome=source.schema.outcome.title,
            estimate=sides[1].line.at_cutoff - sides[0].line.at_cutoff,
            sampling_sd=means.sampling_sd((-1.0, 1.0)),
            noise=means.noise_along((-1.0, 1.0)),
            n=source.n,
            method=f"regression discontinuity at {at}, linear within {format_number(self.bandwidth)} on each side",
            guarantee=guarantee,
            assumptions=(
                f"all units {treated} the cutoff are treated and no others (sharp design)",
                f"units cannot choose their side of {at}",
                f"mean outcomes without and with treatment have no jump at {at}",
                f"mean outcomes are linear in {self.running} on each side, within {format_number(self.bandwidth)}",
                "the interval does not allow for curvature within the bandwidth",
                "cutoff and bandwidth were chosen without looking at the data",
                NO_INTERFERENCE,
                *source.schema.data_handling,
                *source.schema.covariate_handling([self.running]),
            ),
            receipts=(release.receipt,),
            notes=source.caveats,
            sampling_is_a_bound=any(side.floored for side in sides),
            no_interval=next((side.refusal for side in sides if side.refusal), ""),
            arm_means=means,
            arm_sizes=sizes,
            quantity=f"mean of {source.schema.outcome.title} at the cutoff",
        )
        return warned(effect, source.schema, Signs())


class _Line(NamedTuple):
    """The regression on one side of the cutoff, from released sums.

    Distances are measured from the middle of the side's window, where the cutoff is at -1, and outcomes from the middle
    of their range.

    Attributes:
        variance: The variance of the distances, which noise may make negative.
        slope: How far the outcome rises with the distance.
    """

    size: Numbers
    centre: Numbers
    variance: Numbers
    spread: Numbers
    outcome: Numbers
    slope: Numbers

    @classmethod
    def of(cls, release: Release, arm: int, value: ValueOf) -> "_Line":
        """Fit the regression of one side."""
        size = within(value(f"size_{arm}"), max(release.variance(f"size_{arm}") ** 0.5, 3.0), math.inf)
        centre = within(value(f"distance_{arm}") / size, -1.0, 1.0)
        variance = 1 - value(f"spread_{arm}") / size - centre**2
        spread = within(variance, max(_spread_sd(release, arm, size.real), 1e-3), 1.0)
        outcome = value(f"total_{arm}") / size
        return cls(
            size, centre, variance, spread, outcome, (value(f"product_{arm}") / size - centre * outcome) / spread
        )

    @property
    def at_cutoff(self) -> Numbers:
        """The mean outcome at the cutoff."""
        return self.outcome - self.slope * self.centre - self.slope


def _spread_sd(release: Release, arm: int, size: float) -> float:
    """Return the standard deviation of the noise in the variance of the distances."""
    spread, sizes, distance = (release.variance(f"{name}_{arm}") ** 0.5 for name in ("spread", "size", "distance"))
    return math.hypot(spread, sizes, 2 * distance) / size


@dataclass(frozen=True)
class _Side:
    """One side of the cutoff.

    Attributes:
        sampling_variance: The sampling variance of the mean outcome at the cutoff.
        refusal: Why there is no interval; empty where there is one.
        floored: Whether noise hides how large the sampling variance is.
    """

    line: _Line
    sampling_variance: float
    refusal: str
    floored: bool

    @classmethod
    def of(cls, release: Release, arm: int, half: float) -> "_Side":
        """Return one side as released, given half of the outcome's range."""
        line = _Line.of(release, arm, release.value)
        size = line.size
        hidden = release.value(f"size_{arm}") <= ARM_NOISE_SDS * release.variance(
            f"size_{arm}"
        ) ** 0.5 or line.variance <= ARM_NOISE_SDS * _spread_sd(release, arm, size)
        residual = half**2 - release.value(f"deficit_{arm}") / size - line.outcome**2 - line.slope**2 * line.spread
        least = release.variance(f"deficit_{arm}") ** 0.5 / size
        variance = min(max(residual, least), half**2) * size / (size - 2)
        refusal = "noise hides how many units are on a side of the cutoff, or how far they are spread"
        return cls(
            line,
            sampling_variance=variance * (1 + (1 + line.centre) ** 2 / line.spread) / size,
            refusal=f"{refusal}; use a wider bandwidth, more units or more epsilon" if hidden else "",
            floored=residual < least,
        )
