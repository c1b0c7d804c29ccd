"""Average treatment effects."""

from dpcausal.estimators.average.difference_in_means import DifferenceInMeans

__all__ = ["DifferenceInMeans"]
