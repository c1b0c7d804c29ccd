"""Exact arithmetic on coerced columns: features, residuals, gradients, matching and learners."""
