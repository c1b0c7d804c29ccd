"""Before anything is spent: what an estimator would give, and which one to use."""

from dpcausal.planning.choose import Choice, choose
from dpcausal.planning.plan import Plan, plan
from dpcausal.planning.rehearsal import Rehearsal

__all__ = ["Choice", "Plan", "Rehearsal", "choose", "plan"]
