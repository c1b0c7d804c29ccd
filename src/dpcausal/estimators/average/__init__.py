"""Average treatment effects."""

from typing import Any

from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.exact_matching import ExactMatching
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.propensity_matching import PropensityMatching
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.estimators.average.stratification import Stratification

ESTIMATORS: dict[str, type[Any]] = {
    "difference_in_means": DifferenceInMeans,
    "stratification": Stratification,
    "exact_matching": ExactMatching,
    "propensity_matching": PropensityMatching,
    "inverse_weighting": InverseWeighting,
    "regression_adjustment": RegressionAdjustment,
    "doubly_robust": DoublyRobust,
}
"""Those that can be had by name, in a study's file or in one call."""

__all__ = [
    "DifferenceInMeans",
    "DoublyRobust",
    "ExactMatching",
    "InverseWeighting",
    "PropensityMatching",
    "RegressionAdjustment",
    "Stratification",
]
