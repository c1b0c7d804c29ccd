"""Queries as data: sums over units of whole numbers, each an expression in a unit's coerced columns.

`numbers` is the expression tree, in which every number has a range; `printing` writes it as SQL, `evaluation` computes
it with NumPy, and `description` puts numbers and cells together to a query.
"""
