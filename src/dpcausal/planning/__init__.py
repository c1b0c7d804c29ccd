"""Planning before anything is spent: the cost and precision of an estimator, and the choice of one."""
