"""The conformance check for estimators, open to third parties.

Tables here are made up from a seed. They protect nobody, and nothing made from them should be published.
"""

from dpcausal.testing.estimators import AnyEstimator, check_estimator
from dpcausal.testing.tables import hostile_tables, standard_schema, synthetic_table

__all__ = ["AnyEstimator", "check_estimator", "hostile_tables", "standard_schema", "synthetic_table"]
