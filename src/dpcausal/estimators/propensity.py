"""What estimators with a propensity score have in common, and what privacy does to the score."""

import math
from dataclasses import dataclass
from typing import Self

from dpcausal.queries import ObjectivePerturbedLogistic
from dpcausal.queries.features import Estimand

ESTIMANDS: dict[Estimand, str] = {
    "ATE": "average treatment effect",
    "ATT": "average treatment effect on the treated",
    "ATC": "average treatment effect on the controls",
    "ATO": "average treatment effect where arms overlap, a unit counting as e (1 - e), e its propensity score",
}
"""What each estimand is, in words."""


@dataclass(frozen=True)
class PropensityUncertainty:
    """How far a private propensity score is from the one that it is about, as far as public numbers tell.

    A coefficient is known from n units to within 1 / information; as a rule, treatment is neither rare nor common and
    covariates are spread over their ranges. Noise moves the predictor by `noise_sd`, and a weighted estimate, in
    simulations, by about a quarter of that times the outcome's spread; the ridge shrinks the adjustment by its part of
    the information.

    Attributes:
        noise_sd: The standard deviation of the noise in the predictor.
        ridge: The ridge as a share of the information.
    """

    noise_sd: float
    ridge: float

    @classmethod
    def of(cls, n: int, epsilon: float, covariates: int, features: int, spread: float = 0.2 / 3) -> Self:
        """The doubt about objective perturbation with this epsilon.

        Args:
            n: The number of units.
            epsilon: The privacy loss of the score.
            covariates: How many covariates there are.
            features: How many coefficients they have with the constant.
            spread: The variance of a feature times the propensity's e (1 - e), on average.
        """
        information = spread * n / (covariates + 1)
        tilt = ObjectivePerturbedLogistic.tilt_sd(epsilon, covariates + 1, features)
        noise_sd = math.sqrt(features / 3 / (covariates + 1)) * tilt / information
        return cls(noise_sd, ObjectivePerturbedLogistic.penalty(epsilon) / information)
