"""Overlap and balance of the arms, as queries with a price.

Noise bars account for privacy noise only: a diagnosis is about the units in the table, not about their population.
"""

from dpcausal.diagnostics.balance import Balance, BalanceTable, balance_from_moments
from dpcausal.diagnostics.diagnosis import Diagnosis, Reading
from dpcausal.diagnostics.overlap import Overlap, OverlapTable
from dpcausal.diagnostics.table_one import Characteristic, TableOne, table_one_from_moments

__all__ = [
    "Balance",
    "BalanceTable",
    "Characteristic",
    "Diagnosis",
    "Overlap",
    "OverlapTable",
    "Reading",
    "TableOne",
    "balance_from_moments",
    "table_one_from_moments",
]
