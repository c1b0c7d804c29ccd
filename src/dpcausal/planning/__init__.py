"""Before anything is spent: what an estimator would give, and which one to use."""

from dpcausal.planning.choose import Choice, choose
from dpcausal.planning.rehearsal import Rehearsal

__all__ = ["Choice", "Rehearsal", "choose"]
