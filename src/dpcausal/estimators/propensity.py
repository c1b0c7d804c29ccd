"""Estimands of estimators with a propensity score, and the effect of privacy noise on the score."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.estimators.outcome_regression import OutcomeRegressions
from dpcausal.queries import ObjectivePerturbedLogistic
from dpcausal.queries.features import Estimand

ESTIMANDS: dict[Estimand, str] = {
    "ATE": "average treatment effect",
    "ATT": "average treatment effect on the treated",
    "ATC": "average treatment effect on the controls",
    "ATO": "average treatment effect in the overlap population, a unit counting as e (1 - e), e its propensity score",
}
"""What each estimand is, in words."""

_FEATURE_VARIANCE = 1 / 3
"""The variance of a feature that spreads evenly between -1 and 1."""

_INFORMATION = 0.2 / 3
"""What one unit adds to the information about a coefficient where nothing else is known: a propensity's e (1 - e) of
0.2, as for 28 % treated, times the variance of such a feature."""


@dataclass(frozen=True)
class PropensityUncertainty:
    """The error that privacy adds to a propensity score, from public numbers.

    The variance of a coefficient fitted on n units is 1 / information. Noise adds an error of standard deviation
    `noise_sd` to the score's predictor. The ridge shrinks the adjustment by its share of the information.

    Attributes:
        noise_sd: The standard deviation of the noise in the predictor.
        ridge: The ridge as a share of the information.
    """

    noise_sd: float
    ridge: float

    @classmethod
    def of(
        cls, n: int, epsilon: float, covariates: int, features: int, information_per_unit: float = _INFORMATION
    ) -> Self:
        """Return the uncertainty of objective perturbation with this epsilon.

        Args:
            n: The number of units.
            epsilon: The privacy loss of the score.
            covariates: The number of covariates.
            features: The number of coefficients, the constant included.
            information_per_unit: The variance of a feature times the propensity's e (1 - e), on average.
        """
        information = information_per_unit * n / (covariates + 1)
        tilt = ObjectivePerturbedLogistic.tilt_sd(epsilon, covariates + 1, features)
        noise_sd = math.sqrt(features * _FEATURE_VARIANCE / (covariates + 1)) * tilt / information
        return cls(noise_sd, ObjectivePerturbedLogistic.penalty(epsilon) / information)


def clipped_shares(treated: float, clip: float) -> tuple[float, float]:
    """Return the share of each arm's outcomes that clipping leaves out of weights, for logits of standard deviation 1.

    Args:
        treated: The share of units that are treated.
        clip: Propensities are clipped to clip and 1 - clip.
    """
    places = np.linspace(-3, 3, 61)
    density = np.exp(-(places**2) / 2) / np.exp(-(places**2) / 2).sum()
    logits = [math.log(share / (1 - share)) + places for share in (1 - treated, treated)]
    control, of_treated = (np.maximum(1 - 1 / (1 + np.exp(-each)) / clip, 0.0) @ density for each in logits)
    return float(control), float(of_treated)


def augmented_residual(fit: OutcomeRegressions, noise_sd: float, estimand: Estimand, clip: float) -> float:
    """Return the standard deviation of the residual confounding in a mean of augmented scores.

    Where propensities are not clipped it is the product of the two models' errors, which have random directions. For
    ATT only the control arm's regression matters; otherwise each arm's counts by the share of the other arm. Where a
    propensity is clipped, weighting does not correct the regression's error.

    Args:
        fit: The outcome regressions.
        noise_sd: The standard deviation of the noise in the score's predictor.
        estimand: Whose effect the scores estimate.
        clip: Propensities are clipped to clip and 1 - clip.
    """
    treated, inverse = fit.treated_share, fit.mean_inverse_variance
    shares, uneven = (treated, 1 - treated), 1 - 2 * treated
    if estimand == "ATT":
        shares, uneven = (1.0, 0.0), treated
    noise = np.sqrt(fit.noise_variance[0] * inverse) * shares
    differing = uneven * float(fit.undetected[0]) * math.sqrt(inverse)
    product = noise_sd * math.hypot(*noise, differing, fit.attenuation_error)
    own = fit.noise_variance[0] + ((1 - fit.sizes[0] / fit.n[0]) * fit.undetected[0]) ** 2  # each arm's own error
    clipped = np.sqrt(own * inverse * len(fit.feature_variances)) * clipped_shares(treated, clip)
    return math.hypot(product, *clipped)
