"""Both arms' weighted means, from released sums of weights."""

import math

import numpy as np

from dpcausal.estimators.interval_policy import arm_below_noise, hidden_covariates
from dpcausal.estimators.plausibility import Measured, Signs, compared_in
from dpcausal.estimators.score_noise import PrivateScore
from dpcausal.queries import WeightedArms
from dpcausal.release import Release, ValueOf
from dpcausal.source import Source, units_compared
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.interval import NoiseTerm

_MIN_ARM_SHARE = 0.1
"""The least share of the sum of weights that an arm counts as; with weights that balance the arms it is a half."""


def _of_arms(kind: str, value: ValueOf) -> tuple[Numbers, Numbers]:
    """Return a sum of each arm, from that of both and their difference."""
    both, apart = value(f"{kind}_sum"), value(f"{kind}_difference")
    return (both - apart) / 2, (both + apart) / 2


class WeightedMeans:
    """Both arms' weights and weighted means, from the released sums, and the effect without what clipping leaves in."""

    def __init__(
        self,
        query: WeightedArms,
        release: Release,
        source: Source,
        score: PrivateScore | None = None,
        balanced: float = 0.0,
    ) -> None:
        self.receipt, self.clip, self.beyond, self.left_in = release.receipt, query.clip, 0.0, 0.0
        self.adjustments, self.ridge_left = np.zeros(0), 0.0
        self.ends = {} if score is None else score.spread.ends
        self.unadjusted: tuple[str, ...] = ()
        sums = {name: release.value(name) for name in release.names}
        low, high = source.schema.outcome_bounds
        half, centre = (high - low) / 2, query.centre_of(source.schema)
        reach = half * query.reach
        released = _of_arms("weight", release.value)
        weight_noise_sd = math.sqrt(release.variance("weight_sum") + release.variance("weight_difference")) / 2
        self.refusal = arm_below_noise(min(released), weight_noise_sd, "weight")
        if score is not None and not self.refusal:
            self.unadjusted = score.spread.hidden or (tuple(query.covariates) if score.drowned else ())
            self.refusal = hidden_covariates(self.unadjusted, query.covariates)
        units = units_compared(source, release)
        # The sum of all weights has public bounds, and each arm's a floor, so that no division explodes.
        weight_sum = min(max(sums["weight_sum"], query.smallest * units), query.largest * units)
        least = weight_sum * _MIN_ARM_SHARE

        def formula(value: ValueOf) -> list[Numbers]:
            arms = zip(_of_arms("weighted", value), _of_arms("weight", value), strict=True)
            return [total / within(weight, least, math.inf) for total, weight in arms]

        noisy = release.estimates(("control", "treated"), formula)
        means, weights = noisy.values, [max(each, least) for each in released]
        self.noise, self.noise_covariance = noisy.noise_along((-1.0, 1.0)), noisy.covariance
        self.shares = (1.0, 1.0)
        square = reach**2 - sums["deficit"] / weight_sum
        # The variance has a floor, so that luck cannot make an interval too narrow. Where it matters noise in the sums
        # exceeds the sampling error by far, so a quarter of what noise hides will do.
        hidden = math.sqrt(release.variance("deficit")) / weight_sum
        floor = hidden / 4
        spread = square - (means[0] ** 2 + means[1] ** 2) / 2
        self.outcome_sd = math.sqrt(min(max(spread, floor), half**2))
        weight_square_sum = min(max(sums["weight_square_sum"], weight_sum**2 / units), query.largest * weight_sum)
        self.difference = means[1] - means[0]
        explained = 0.0 if score is None else balanced * self._account(score, query, half)
        residual_sd = math.sqrt(max(self.outcome_sd**2 - explained, floor, self.outcome_sd**2 / 10))
        self.sampling_sd = residual_sd * math.sqrt(weight_square_sum) / (weight_sum / 2)
        # What covariates explain moves both means alike, and not their difference.
        self.shared_variance = max(self.outcome_sd**2 - residual_sd**2, 0.0) / units
        self.privacy_sd = math.sqrt(sum(term.variance for term in self.noise))
        if not self.refusal and 2 * math.hypot(self.sampling_sd, self.privacy_sd) > high - low:
            self.refusal = "noise would make the interval as wide as all effects that are possible"
        total = math.sqrt(release.variance("weighted_sum") + release.variance("weighted_difference")) / 2
        self.signs = Signs(
            means=tuple(
                Measured(centre + mean - sign * self.left_in / 2, math.hypot(total, mean * weight_noise_sd) / weight)
                for sign, mean, weight in zip((-1, 1), means, weights, strict=True)
            ),
            variance=Measured(spread, hidden),
            compared=compared_in(release),
            spreads={} if score is None else score.spread.unscaled,
        )

    @property
    def estimate(self) -> float:
        """The effect."""
        return self.difference - self.left_in

    @property
    def means(self) -> tuple[float, float]:
        """The weighted means, the control arm's first."""
        control, treated = self.signs.means
        return control.value, treated.value

    def _account(self, score: PrivateScore, query: WeightedArms, half: float) -> float:
        """Find what clipping leaves in, add noise for the score's error, and return the variance explained."""
        effect = min(max(self.difference / half, -2.0), 2.0)
        slopes = score.spread.slopes(self.outcome_sd / half, effect * score.information * score.alignment)
        arms = score.arms(query.estimand, query.clip)
        self.beyond, self.shares = arms.beyond, arms.counted
        variance = score.logit_variance
        per_logit = score.alignment * arms.apart / variance if variance > 0 else np.zeros(len(slopes.mean))
        self.left_in = float(per_logit @ slopes.mean) * half
        left_in_sd = math.sqrt(float(per_logit**2 @ slopes.variance))
        self.noise = (
            *self.noise,
            NoiseTerm("gaussian", math.hypot(arms.response * score.noise_sd(slopes), left_in_sd) * half),
        )
        self.adjustments, self.ridge_left = score.adjustments(slopes) * half, score.ridge_left(slopes) * half
        return score.explained(slopes) * half**2
