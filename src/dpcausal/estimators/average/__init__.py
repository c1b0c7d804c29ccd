"""Average treatment effects."""

from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.stratification import Stratification

__all__ = ["DifferenceInMeans", "Stratification"]
