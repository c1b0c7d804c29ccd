"""Both arms' weighted means, from released sums of weights."""

import math
from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Array
from dpcausal.estimators.interval_policy import arm_below_noise, hidden_covariates
from dpcausal.estimators.plausibility import Measured, Signs, compared_in
from dpcausal.estimators.score_noise import PrivateScore
from dpcausal.interval import NoiseTerm
from dpcausal.queries import WeightedArms
from dpcausal.release import Release
from dpcausal.source import Source, units_compared

_MIN_ARM_SHARE = 0.1
"""The least share of the sum of weights that an arm counts as; with weights that balance the arms it is a half."""


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
        self.unadjusted: tuple[str, ...] = ()
        sums = {name: release.value(name) for name in release.names}
        low, high = source.schema.outcome_bounds
        half, centre = (high - low) / 2, query.centre_of(source.schema)
        reach = half * query.reach
        released = [
            (sums["weight_sum"] - sums["weight_difference"]) / 2,
            (sums["weight_sum"] + sums["weight_difference"]) / 2,
        ]
        weight_noise_sd = math.sqrt(release.variance("weight_sum") + release.variance("weight_difference")) / 2
        self.refusal = arm_below_noise(min(released), weight_noise_sd, "weight")
        if score is not None and not self.refusal:
            self.unadjusted = score.spread.hidden or (tuple(query.covariates) if score.drowned else ())
            self.refusal = hidden_covariates(self.unadjusted, query.covariates)
        units = units_compared(source, release)
        # The sum of all weights has public bounds, and each arm's a floor, so that no division explodes.
        weight_sum = min(max(sums["weight_sum"], query.smallest * units), query.largest * units)
        weights = [max(each, weight_sum * _MIN_ARM_SHARE) for each in released]
        totals = (
            (sums["weighted_sum"] - sums["weighted_difference"]) / 2,
            (sums["weighted_sum"] + sums["weighted_difference"]) / 2,
        )
        means = [total / weight for total, weight in zip(totals, weights, strict=True)]
        control, treated = (1 / weight for weight in weights)
        slopes = {
            "weighted_difference": (treated + control) / 2,
            "weighted_sum": (treated - control) / 2,
            "weight_difference": (means[1] * treated + means[0] * control) / 2,
            "weight_sum": (means[1] * treated - means[0] * control) / 2,
        }
        self.noise = tuple(release.noise_term(name, abs(slope)) for name, slope in slopes.items())
        self.noise_covariance = _noise_covariance(release, means, weights)
        self.shares = (1.0, 1.0) if score is None else (1 - score.spread.centre, 1 + score.spread.centre)
        square = reach**2 - sums["deficit"] / weight_sum
        # The variance has a floor, so that luck cannot make an interval too narrow. Where it matters noise in the sums
        # exceeds the sampling error by far, so a quarter of what noise hides will do.
        hidden = math.sqrt(release.variance("deficit")) / weight_sum
        floor = hidden / 4
        within = square - (means[0] ** 2 + means[1] ** 2) / 2
        self.outcome_sd = math.sqrt(min(max(within, floor), half**2))
        weight_square_sum = min(max(sums["weight_square_sum"], weight_sum**2 / units), query.largest * weight_sum)
        self.difference = means[1] - means[0]
        explained = 0.0 if score is None else balanced * self._account(score, query, half)
        residual_sd = math.sqrt(max(self.outcome_sd**2 - explained, floor, self.outcome_sd**2 / 10))
        self.sampling_sd = residual_sd * math.sqrt(weight_square_sum) / (weight_sum / 2)
        self.privacy_sd = math.sqrt(sum(term.variance for term in self.noise))
        if not self.refusal and 2 * math.hypot(self.sampling_sd, self.privacy_sd) > high - low:
            self.refusal = "noise would make the interval as wide as all effects that are possible"
        total = math.sqrt(release.variance("weighted_sum") + release.variance("weighted_difference")) / 2
        self.signs = Signs(
            means=tuple(
                Measured(centre + mean - sign * self.left_in / 2, math.hypot(total, mean * weight_noise_sd) / weight)
                for sign, mean, weight in zip((-1, 1), means, weights, strict=True)
            ),
            variance=Measured(within, hidden),
            compared=compared_in(release),
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
        self.beyond = arms.beyond
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


def _noise_covariance(release: Release, means: Sequence[float], weights: Sequence[float]) -> Array:
    """Return the covariance of the noise in the arms' means, from that in the sums of weights and of outcomes."""
    covariance = np.zeros((2, 2))
    for name, signs in (("sum", (1, 1)), ("difference", (-1, 1))):
        for kind, slope in (("weighted", (1.0, 1.0)), ("weight", (-means[0], -means[1]))):
            along = np.array(
                [sign * each / weight / 2 for sign, each, weight in zip(signs, slope, weights, strict=True)]
            )
            covariance += release.variance(f"{kind}_{name}") * np.outer(along, along)
    return covariance
