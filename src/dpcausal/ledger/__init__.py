"""What was spent on one data set: durable, append-only, hash-chained, and read before any record is."""

from dpcausal.ledger.data_set import DataSet
from dpcausal.ledger.database import IN_MEMORY
from dpcausal.ledger.ledger import Ledger
from dpcausal.ledger.rules import Budget, Spending

__all__ = ["IN_MEMORY", "Budget", "DataSet", "Ledger", "Spending"]
