"""Queries as data: sums over units of whole numbers, each an expression in a unit's coerced columns.

- `numbers` is the expression tree, in which every number has a range; `limits` is how large one may be.
- `description` puts numbers and cells together to a query.
- `evaluation` computes numbers with NumPy, `printing` writes them as SQL, and `adding` says what an engine adds up.
- `sensitivity` computes how far one unit can move the sums: `polynomials`, `intervals` and `cases` say what a unit may
  add, `choices` and `pairs` what it may add before and after a change, `maximum` finds the largest sum of all changes,
  `certificates` makes a bound of it in exact integers, and `roots` rounds square roots up.
"""
