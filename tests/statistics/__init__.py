"""Closed forms of every estimator, checks of the errors that it prints, and mutants that these checks must catch."""
