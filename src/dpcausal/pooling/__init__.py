"""Pooling of several sites' effects. It reads released effects only, and so costs no budget."""

from dpcausal.pooling.pooled import leave_one_out, pool
from dpcausal.pooling.weights import RULES, Rule, minimum_variance

__all__ = ["RULES", "Rule", "leave_one_out", "minimum_variance", "pool"]
