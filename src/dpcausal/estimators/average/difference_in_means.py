"""The simplest estimator: mean outcome in the treated arm minus mean outcome in the control arm."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.estimators.two_means import (
    arm_means_of,
    arm_sizes_of,
    joint_means,
    joint_sizes,
    mean_difference,
    variances,
)
from dpcausal.queries import ArmMoments, ArmTotals
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.source import Source, guarantee_for


@dataclass(frozen=True)
class DifferenceInMeans(BaseEstimator):
    """Difference in mean outcome between the two arms.

    Estimand:
        The average treatment effect E[Y(treated) - Y(control)] in the population that the units were drawn from.

    Assumptions:
        Arms are comparable without adjustment, as in a randomised trial. In an observational table this estimates the
        effect plus confounding.

    Privacy:
        One query. With `protects="record_within_arm"` the arms and their sizes are public, as in a published trial, and
        one unit changes one arm's total. With `protects="record"` the treated arm's size is noisy too. The outcome's
        bounds must be public: the noise is in proportion to their distance.

    Attributes:
        with_interval: Whether to ask for second moments, which the interval needs. They add less than one part in a
            million to the noise in the estimate.

    Reference:
        Koga, Chaudhuri and Page (2024), Differentially Private Multi-Site Treatment Effect Estimation, section III-A1;
        corrected here: outcomes are centred, first and second moments share one sensitivity bound, the variance is
        corrected for the noise in the mean, and arms may be private. Page: docs/papers/multi-site.md.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("re78", 0, 60_000))
        >>> plan = DifferenceInMeans().estimate(Rehearsal(schema, n=2_000), epsilon=1.0)
        >>> round(plan.sampling_sd), round(plan.privacy_sd)
        (775, 180)
    """

    also_called: ClassVar[str] = "dim diff_in_means ttest t_test welch mean_difference ab_test rct anova"
    estimates_average: ClassVar[bool] = True

    _example = 'DifferenceInMeans(), or RegressionAdjustment(covariates=["age"]) to adjust'

    with_interval: bool = True

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query = ArmMoments() if self.with_interval else ArmTotals()
        guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), "total_1")
        release = source.release(query, guarantee)
        difference = mean_difference(release, source)
        means = joint_means(release, source, source.schema.outcome_bounds) if self.with_interval else None
        risk = " (risk difference)" if isinstance(source.schema.outcome, Binary) else ""
        effect = Effect(
            estimand=f"average treatment effect{risk}: mean outcome with all treated minus mean outcome with none",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=difference.values[0],
            sampling_sd=means.sampling_sd((-1.0, 1.0)) if means else None,
            noise=difference.noise_along((1.0,)),
            n=source.n,
            method=f"difference in means, {'noisy' if source.arm_sizes is None else 'public'} arm sizes",
            guarantee=guarantee,
            assumptions=(
                "arms are comparable without adjustment, as in a randomised trial",
                NO_INTERFERENCE,
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=(*_unused(source), *source.caveats),
            arm_means=means,
            arm_sizes=joint_sizes(release, source),
        )
        return warned(effect, source.schema, _signs(release, source))


def _unused(source: Source) -> tuple[str, ...]:
    return ("covariates were not used: nothing is adjusted for",) if source.schema.covariates else ()


def _signs(release: Release, source: Source) -> Signs:
    """Return what the release shows about both arms."""
    sizes, means = arm_sizes_of(release, source), arm_means_of(release, source)
    low, high = source.schema.outcome_bounds
    half, middle = (high - low) / 2, (low + high) / 2
    counts = [name for name in ("size_1", "compared") if name in release.names]
    size_sd = sum(release.variance(name) for name in counts) ** 0.5
    variance = None
    if "deficit_0" in release.names:
        noise = (release.variance(f"deficit_{arm}") / size**2 for arm, size in enumerate(sizes))
        variance = Measured(sum(variances(release, source, half)) / 2, sum(noise) ** 0.5 / 2)
    return Signs(
        sizes=tuple(Measured(size, size_sd) for size in (source.arm_sizes or sizes)),
        means=tuple(
            Measured(middle + mean, math.hypot(release.variance(f"total_{arm}") ** 0.5, mean * size_sd) / size)
            for arm, (size, mean) in enumerate(zip(sizes, means, strict=True))
        ),
        variance=variance,
    )
