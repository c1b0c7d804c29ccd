"""Pooling of several sites' effects. It reads released effects only, and so costs no budget."""

from dpcausal.pooling.pooled import leave_one_out, pool
from dpcausal.pooling.weights import (
    ROBUST_FROM,
    RULES,
    Automatic,
    Rule,
    automatic_rule,
    describe_pooling,
    minimum_variance,
)

__all__ = [
    "ROBUST_FROM",
    "RULES",
    "Automatic",
    "Rule",
    "automatic_rule",
    "describe_pooling",
    "leave_one_out",
    "minimum_variance",
    "pool",
]
