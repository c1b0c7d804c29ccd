"""Whether a comparison can be made at all, as questions with a price. From releases to tables; nothing here reads one.

Bars are about privacy noise: a diagnosis tells of the units in the table, not of those they were drawn from.
"""

from dpcausal.diagnostics.balance import Balance, BalanceTable, balance_from_moments
from dpcausal.diagnostics.diagnosis import Diagnosis, Reading
from dpcausal.diagnostics.overlap import Overlap, OverlapTable

__all__ = ["Balance", "BalanceTable", "Diagnosis", "Overlap", "OverlapTable", "Reading", "balance_from_moments"]
