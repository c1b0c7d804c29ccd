"""Sums of products of a unit's numbers, in exact integers. Proof: docs/proofs/regression_moments.md."""

from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, RegressionMoments
from dpcausal.queries.regression_moments import CONSTANT, FINE, Moment
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, ExactInts
from dpcausal.vault.numerics.features import Features


@answers(RegressionMoments)
def answer(context: AnswerContext[RegressionMoments]) -> Answer:
    """Return all products in one pass, without and with the sign of the arm."""
    query, schema, engine = context.query, context.schema, context.engine
    features = Features(query.covariates, schema)

    def kernel(batch: Batch) -> Int64s:
        return products(batch["outcome"], features.design(batch), batch["treatment"])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    names = [at.name for at in query.sensitivity(schema, "record", "l1").coordinates]
    return Answer(dict(zip(names, chosen_sums(sums, query.moments(schema)), strict=True)))


def chosen_sums(sums: ExactInts, moments: Sequence[Moment]) -> list[int]:
    """Return the sums of an answer out of those of all products; a deficit is the count less the square's sum."""
    found = []
    for moment in moments:
        table = sums[int(moment.signed)]
        total = int(table[moment.first, moment.second])
        found.append(int(table[CONSTANT, CONSTANT]) - total if moment.deficit else total)
    return found


def products(outcomes: Int64s, design: Sequence[Int64s], arms: Int64s) -> Int64s:
    """Return sums over some rows of all products of two of their numbers, without and with the arm's sign.

    Numbers are rounded to FINE ticks first. Sums of their products are whole numbers below 2^53, which floating point
    adds up without error in any order.
    """
    coarse = (GRID // FINE).bit_length() - 1
    numbers = np.empty((2 + len(design), len(outcomes)))
    numbers[0] = FINE
    for place, line in enumerate((outcomes, *design), start=1):
        numbers[place] = (line + (1 << coarse >> 1)) >> coarse
    treated = numbers.take(np.flatnonzero(arms), axis=1)
    whole, part = numbers @ numbers.T, treated @ treated.T
    return np.array([whole, 2 * part - whole]).astype(np.int64)
