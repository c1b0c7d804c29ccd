"""What was spent on one data set: durable, append-only, hash-chained, and read before any record is."""

from dpcausal.ledger.ledger import DataSet, Ledger
from dpcausal.ledger.rules import Budget, Spending

__all__ = ["Budget", "DataSet", "Ledger", "Spending"]
