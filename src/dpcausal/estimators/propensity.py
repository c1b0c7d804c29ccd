"""Estimands of estimators with a propensity score, and the effect of privacy noise on the score."""

import math
from dataclasses import dataclass
from typing import Self

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

EXPECTED_INFORMATION = 0.2 / 3
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
        cls, n: int, epsilon: float, covariates: int, features: int, information_per_unit: float = EXPECTED_INFORMATION
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
