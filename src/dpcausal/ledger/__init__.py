"""The ledger of one data set: durable, append-only and hash-chained. It is read before any record is."""

from dpcausal.ledger.allocation import AllocatedExperiment
from dpcausal.ledger.budget import Budget, Spending
from dpcausal.ledger.data_set import DataSet
from dpcausal.ledger.database import IN_MEMORY
from dpcausal.ledger.ledger import Ledger
from dpcausal.ledger.population import Population

__all__ = ["IN_MEMORY", "AllocatedExperiment", "Budget", "DataSet", "Ledger", "Population", "Spending"]
