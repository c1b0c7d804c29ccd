"""What was spent on one data set: durable, append-only, hash-chained, and read before any record is."""

from dpcausal.ledger.budget import Budget, Spending
from dpcausal.ledger.data_set import DataSet
from dpcausal.ledger.database import IN_MEMORY
from dpcausal.ledger.ledger import Ledger

__all__ = ["IN_MEMORY", "Budget", "DataSet", "Ledger", "Spending"]
