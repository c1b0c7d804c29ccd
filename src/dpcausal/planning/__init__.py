"""Before anything is spent: what an estimator would give, and which one to use."""
