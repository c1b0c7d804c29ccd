"""Estimators run on no data: what they would ask, and what that costs."""

from dpcausal.rehearsal.rehearsal import Rehearsal

__all__ = ["Rehearsal"]
