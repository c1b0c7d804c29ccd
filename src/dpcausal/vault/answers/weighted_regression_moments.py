"""Weighted sums of products for regressions, in exact integers. Proof: docs/proofs/weighted_regression_moments.md."""

import numpy as np

from dpcausal.queries import WeightedRegressionMoments
from dpcausal.queries.regression_moments import FINE, FIRST_FEATURE
from dpcausal.queries.weighted_regression_moments import WHOLE
from dpcausal.schema.schema import Schema
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.numbers import columns
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch


@answers(WeightedRegressionMoments, kernel=True)
def answer(context: AnswerContext[WeightedRegressionMoments]) -> Answer:
    """Return all sums, in one pass. Every row's part is made of integers from that row alone."""
    query, schema = context.query, context.schema
    numbers = query.lines(schema)

    def kernel(batch: Batch) -> Int64s:
        lines = evaluate(numbers, batch)
        return sums(lines, weights(query, schema, lines), 2 * np.asarray(batch["treatment"], dtype=np.int64) - 1)

    plain, signed, rest = context.engine.fold(("treatment", *columns(*numbers)), kernel)
    found = [(signed if each.signed else plain)[each.first, each.second] for each in query.moments(schema)]
    measured = [at for at, size in enumerate(query.sizes(schema)) if at >= FIRST_FEATURE and size == FINE**2]
    # The number of units is the last, where it is private.
    found += [*rest[0, FIRST_FEATURE:], *rest[1, measured], rest[2, 0]]
    names = (at.name for at in query.sensitivity(schema, "record", "l1").coordinates)
    return Answer({name: int(value) for name, value in zip(names, found, strict=False)})


def weights(query: WeightedRegressionMoments, schema: Schema, lines: Int64s) -> Int64s:
    """Return weights in ticks, rounded down, given each row's numbers: from its features alone."""
    sizes, most = np.array(query.sizes(schema)), query.most(schema)
    # An outcome counts as one at an end of its range, whatever it is, and the constant as 1.
    # Features that are no numbers are -FINE or FINE, and the division leaves no rest.
    squares = lines[FIRST_FEATURE:] ** 2 * sizes[FIRST_FEATURE:, None]
    length = sizes[:FIRST_FEATURE].sum() + squares.sum(axis=0) // FINE**2
    found: Int64s = np.minimum(WHOLE, WHOLE * most // length)
    return found


def sums(lines: Int64s, weight: Int64s, sign: Int64s) -> Int64s:
    """Return sums over some rows: weighted products, these with the arm's sign; and numbers, deficits and rows.

    Sums of products are whole numbers below 2^53, which floating point adds up without error in any order.
    """
    exact = lines.astype(np.float64)
    weighted, signed = exact * weight, exact * (weight * sign)
    rest = np.zeros((len(lines), len(lines)))
    rest[0], rest[1], rest[2, 0] = exact.sum(axis=1), (FINE**2 - exact**2).sum(axis=1), lines.shape[1]
    return np.array([weighted @ exact.T, signed @ exact.T, rest]).astype(np.int64)
