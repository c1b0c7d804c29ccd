"""Sums of products for a regression of effects, in exact integers. Proof: docs/proofs/effect_moments.md."""

import numpy as np

from dpcausal.queries import EffectMoments
from dpcausal.queries.basis import LENGTH
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.residuals import Residuals, times, within


@answers(EffectMoments, kernel=True)
def answer(context: AnswerContext[EffectMoments]) -> Answer:
    """Return all sums, in one pass. Every row's part is made of integers from that row alone."""
    query, schema, engine = context.query, context.schema, context.engine
    residuals = Residuals(query, schema)

    def kernel(batch: Batch) -> Int64s:
        functions = residuals.functions(batch)
        if query.learner == "residual":
            distance, missed = residuals.residual(batch)
            regressors, (kept, cut) = times(distance, functions), within(missed, query.limit)
        else:
            regressors, (kept, cut) = functions, within(residuals.augmented(batch, query.limit), 1.0)
        return sums(regressors, kept, cut)

    total = engine.fold(residuals.columns, kernel)
    names = (at.name for at in query.sensitivity(schema, "record", "l1").coordinates)
    count = len(query.basis.names(schema))
    gram = [total[i, j] for i, j in query.pairs(schema)]
    ticks = [*gram, *total[count], total[count + 1, 0], total[count + 2, 0]]
    return Answer({name: int(value) for name, value in zip(names, ticks, strict=True)})


def sums(regressors: Int64s, kept: Int64s, cut: Int64s) -> Int64s:
    """Return sums over some rows: products of regressors; products with the regressand; deficits and numbers cut off.

    Sums of products are whole numbers below 2^53, which floating point adds up without error in any order.
    """
    exact = regressors.astype(np.float64)
    rest = np.zeros((2, len(regressors)))
    rest[0, 0], rest[1, 0] = float((LENGTH * LENGTH - kept * kept).sum()), float(cut.sum())
    return np.vstack([exact @ exact.T, exact @ kept.astype(np.float64), rest]).astype(np.int64)
