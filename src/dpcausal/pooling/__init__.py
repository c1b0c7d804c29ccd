"""One effect out of several sites' effects."""

from dpcausal.pooling.pooled import leave_one_out, pool
from dpcausal.pooling.weights import RULES, Rule, minimum_variance

__all__ = ["RULES", "Rule", "leave_one_out", "minimum_variance", "pool"]
