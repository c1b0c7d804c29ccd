"""Experiments: many metrics in several arms from one query, and the scorecard that they become."""

from dpcausal.experiment.catalogue import MetricCatalogue
from dpcausal.experiment.decision import ArmDecision, DecisionRule, Guardrail
from dpcausal.experiment.experiment import Experiment
from dpcausal.experiment.metric import Earlier, Metric
from dpcausal.experiment.scorecard import Scorecard

__all__ = [
    "ArmDecision",
    "DecisionRule",
    "Earlier",
    "Experiment",
    "Guardrail",
    "Metric",
    "MetricCatalogue",
    "Scorecard",
]
