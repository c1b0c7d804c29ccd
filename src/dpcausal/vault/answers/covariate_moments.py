"""Sums of outcome, covariates and their products, in exact integers. Proof: docs/proofs/covariate_moments.md."""

from collections.abc import Sequence

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, CovariateMoments
from dpcausal.vault.answers.arm_moments import deficit_of
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, adds_products
from dpcausal.vault.numerics.features import Features

_SHIFT = GRID.bit_length() - 1


@answers(CovariateMoments, kernel=lambda query, schema, engine: not adds_products(engine, len(query.features(schema))))
def answer(context: AnswerContext[CovariateMoments]) -> Answer:
    """Return the sums and the number of units. Every row's part is made of integers from that row alone."""
    query, schema = context.query, context.schema
    features, names, numbers = Features(query.covariates, schema), query.features(schema), query.numbers(schema)
    squared = [names.index(name) for name in numbers]

    def kernel(batch: Batch) -> Int64s:
        each = parts(batch["outcome"], features.ticks(batch)[1:], squared)
        return np.array([*each.sum(axis=1), each.shape[1]])

    if adds_products(context.engine, len(names)):
        sums = context.engine.aggregate({}, [*part_expressions(features.tick_expressions(), squared), "1"])
    else:
        sums = context.engine.fold(("treatment", "outcome", *features.columns), kernel)
    labels = ["outcome", *(f"total of {name}" for name in names), *(f"outcome * {name}" for name in names)]
    labels += [f"deficit of {name}" for name in numbers]
    return Answer({label: int(total) for label, total in zip((*labels, "compared"), sums, strict=True)})


def parts(outcomes: Int64s, lines: Int64s, squared: Sequence[int]) -> Int64s:
    """Return what each row adds: its outcome, features, their products, and deficits; all within -GRID and GRID."""
    products = (outcomes * lines + GRID // 2) // GRID
    deficits = (GRID * GRID - lines[squared] ** 2) // GRID
    return np.vstack([outcomes, lines, products, deficits])


def part_expressions(lines: Sequence[str], squared: Sequence[int]) -> list[str]:
    """Return what each row adds as SQL, as `parts` has it."""
    # Negative numbers are not shifted: engines may round them differently.
    shifted = f"+ {GRID**2 + GRID // 2}) >> {_SHIFT}) - {GRID})"
    products = [f"(((CAST(outcome AS BIGINT) * {line} {shifted}" for line in lines]
    return ["outcome", *lines, *products, *(deficit_of(lines[place]) for place in squared)]
