"""The effect of a treatment that a cutoff decides on, at the cutoff."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.interval_policy import ARM_NOISE_SDS
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Signs, warned
from dpcausal.joint_estimate import JointEstimate
from dpcausal.page.recorded import SAMPLING_BELOW_NOISE
from dpcausal.queries import CutoffMoments
from dpcausal.release import Release
from dpcausal.source import RequiringSource, Source, guarantee_for
from dpcausal.text import format_number


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

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query = CutoffMoments(self.running, self.cutoff, self.bandwidth, self.treated_below)
        guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), "product_1")
        source = RequiringSource(source, query.required)
        release = source.release(query, guarantee)
        sides = [_side(release, arm, source.schema.outcome_bounds) for arm in (0, 1)]
        arms = source.schema.treatment.labels_or_values
        means = JointEstimate(
            names=arms,
            values=tuple(sum(source.schema.outcome_bounds) / 2 + side.mean for side in sides),
            sampling=((sides[0].sampling_variance, 0.0), (0.0, sides[1].sampling_variance)),
            noise=tuple(
                release.joint_noise(f"{name}_{arm}", (slope * (arm == 0), slope * (arm == 1)))
                for arm, side in enumerate(sides)
                for name, slope in side.slopes.items()
            ),
        )
        sizes = JointEstimate(
            names=arms,
            values=tuple(release.value(f"size_{arm}") for arm in (0, 1)),
            sampling=((0.0, 0.0), (0.0, 0.0)),
            noise=tuple(release.joint_noise(f"size_{arm}", (1.0 - arm, float(arm))) for arm in (0, 1)),
        )
        at = f"{self.running} = {format_number(self.cutoff)}"
        treated = "below" if self.treated_below else "at or above"
        effect = Effect(
            estimand=f"effect at the cutoff: mean effect of treatment on units with {at}",
            arms=arms,
            outcome=source.schema.outcome.name,
            estimate=sides[1].mean - sides[0].mean,
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
            notes=(*((SAMPLING_BELOW_NOISE,) if any(side.floored for side in sides) else ()), *source.caveats),
            no_interval=next((side.refusal for side in sides if side.refusal), ""),
            arm_means=means,
            arm_sizes=sizes,
            quantity=f"mean of {source.schema.outcome.name} at the cutoff",
        )
        return warned(effect, source.schema, Signs())


@dataclass(frozen=True)
class _Side:
    """The regression on one side of the cutoff.

    Attributes:
        mean: The mean outcome at the cutoff, from the middle of the outcome's range.
        sampling_variance: Its sampling variance.
        slopes: Its derivative by each released sum, for the noise in it.
        refusal: Why there is no interval; empty where there is one.
        floored: Whether noise hides how large the sampling variance is.
    """

    mean: float
    sampling_variance: float
    slopes: dict[str, float]
    refusal: str
    floored: bool


def _side(release: Release, arm: int, bounds: tuple[float, float]) -> _Side:
    """Fit the regression of one side. Distances are measured from the middle of its window; the cutoff is at -1."""
    value = {name: release.value(f"{name}_{arm}") for name in ("total", "product", "distance", "size", "spread")}
    noise = {name: release.variance(f"{name}_{arm}") ** 0.5 for name in ("size", "spread", "distance", "deficit")}
    half = (bounds[1] - bounds[0]) / 2
    size = max(value["size"], noise["size"], 3.0)
    centre = min(max(value["distance"] / size, -1.0), 1.0)
    spread_sd = math.hypot(noise["spread"], noise["size"], 2 * noise["distance"]) / size
    spread = 1 - value["spread"] / size - centre**2
    hidden = value["size"] <= ARM_NOISE_SDS * noise["size"] or spread <= ARM_NOISE_SDS * spread_sd
    spread = min(max(spread, spread_sd, 1e-3), 1.0)
    outcome = value["total"] / size
    slope = (value["product"] / size - centre * outcome) / spread
    middle = outcome - slope * centre  # the mean outcome in the middle of the window
    by_product = -(1 + centre) / size / spread
    by_total = 1 / size - centre * by_product
    within = half**2 - release.value(f"deficit_{arm}") / size - outcome**2 - slope**2 * spread
    variance = min(max(within, noise["deficit"] / size), half**2) * size / (size - 2)
    refusal = "noise hides how many units are on a side of the cutoff, or how far they are spread"
    return _Side(
        mean=middle - slope,
        sampling_variance=variance * (by_total - by_product),
        slopes={
            "total": by_total,
            "product": by_product,
            "distance": -by_total * slope - by_product * middle,
            "size": -by_total * middle - by_product * slope,
            "spread": by_product * slope,
        },
        refusal=f"{refusal}; use a wider bandwidth, more units or more epsilon" if hidden else "",
        floored=within < noise["deficit"] / size,
    )
