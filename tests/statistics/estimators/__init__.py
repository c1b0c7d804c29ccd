"""The closed form of each estimator: a module for each, with its `CASES`."""
