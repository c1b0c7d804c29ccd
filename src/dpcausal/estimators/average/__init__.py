"""Average treatment effects."""

from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust
from dpcausal.estimators.average.exact_matching import ExactMatching
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.estimators.average.propensity_matching import PropensityMatching
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.estimators.average.stratification import Stratification

__all__ = [
    "DifferenceInMeans",
    "DoublyRobust",
    "ExactMatching",
    "InverseWeighting",
    "PropensityMatching",
    "RegressionAdjustment",
    "Stratification",
]
