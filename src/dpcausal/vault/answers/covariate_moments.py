"""Sums of outcome, covariates and their products, in exact integers. Proof: docs/proofs/covariate_moments.md."""

from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, CovariateMoments
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features


@answers(CovariateMoments)
def answer(context: AnswerContext[CovariateMoments]) -> Answer:
    """Return the sums and the number of units. Every row's part is made of integers from that row alone."""
    query, schema = context.query, context.schema
    features, names, numbers = Features(query.covariates, schema), query.features(schema), query.numbers(schema)
    squared = [names.index(name) for name in numbers]

    def kernel(batch: Batch) -> Int64s:
        each = parts(batch["outcome"], features.ticks(batch)[1:], squared)
        return np.array([*each.sum(axis=1), each.shape[1]])

    sums = context.engine.fold(("treatment", "outcome", *features.columns), kernel)
    labels = ["outcome", *(f"total of {name}" for name in names), *(f"outcome * {name}" for name in names)]
    labels += [f"deficit of {name}" for name in numbers]
    return Answer({label: int(total) for label, total in zip((*labels, "compared"), sums, strict=True)})


def parts(outcomes: Int64s, lines: Int64s, squared: Sequence[int]) -> Int64s:
    """Return what each row adds: its outcome, features, their products, and deficits; all within -GRID and GRID."""
    products = (outcomes * lines + GRID // 2) // GRID
    deficits = (GRID * GRID - lines[squared] ** 2) // GRID
    return np.vstack([outcomes, lines, products, deficits])
