"""Heterogeneous treatment effects."""

from dpcausal.estimators.conditional.block_ensemble import BlockEnsemble
from dpcausal.estimators.conditional.kernel_learner import KernelLearner
from dpcausal.estimators.conditional.meta_learners import DRLearner, RLearner
from dpcausal.estimators.conditional.subgroups import SubgroupEffects

__all__ = ["BlockEnsemble", "DRLearner", "KernelLearner", "RLearner", "SubgroupEffects"]
