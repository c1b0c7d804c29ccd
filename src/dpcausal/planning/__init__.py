"""What to know before spending."""

from dpcausal.planning.rehearsal import Rehearsal

__all__ = ["Rehearsal"]
