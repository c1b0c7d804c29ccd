"""Exact arithmetic on coerced columns: features, residuals, gradients and matching."""
