"""Experiments: many metrics in several arms from one query, and the scorecard that they become."""

from dpcausal.experiment.experiment import Experiment
from dpcausal.experiment.metric import Earlier, Metric
from dpcausal.experiment.scorecard import Scorecard

__all__ = ["Earlier", "Experiment", "Metric", "Scorecard"]
