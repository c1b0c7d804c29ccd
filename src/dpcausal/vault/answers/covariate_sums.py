"""Sums of covariates in each arm, in exact integers. Proof: docs/proofs/covariate_sums.md."""

from collections.abc import Callable, Sequence

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, CovariateSums, WeightedCovariates
from dpcausal.schema import Schema
from dpcausal.vault.answers.arm_moments import deficit_of
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, adds_products
from dpcausal.vault.numerics.features import Features, unit_weights


@answers(CovariateSums, kernel=lambda query, schema, engine: not adds_products(engine, len(query.features(schema))))
def answer(context: AnswerContext[CovariateSums]) -> Answer:
    """Return the sums of rows that all weigh the same."""
    query, schema = context.query, context.schema
    names, numbers = query.features(schema), query.numbers(schema)
    if not adds_products(context.engine, len(names)):
        return _sums(context, (), lambda batch: np.full(len(batch["treatment"]), GRID))
    lines = Features(query.covariates, schema).tick_expressions()
    deficits = [deficit_of(lines[names.index(name)]) for name in numbers]
    # With weights of 1 the sums of weights and of their squares are the number of units.
    arms = context.engine.aggregate({"treatment": 2}, ["1", *lines, *deficits])
    return _named(query, schema, [[size, GRID * size, GRID * size, *rest] for size, *rest in arms])


@answers(WeightedCovariates, kernel=True)
def answer_weighted(context: AnswerContext[WeightedCovariates]) -> Answer:
    """Return the sums of rows with the weights that a public score gives."""
    query = context.query
    score = Features(query.score, context.schema)

    def weights(batch: Batch) -> Int64s:
        return unit_weights(score, query.coefficients, query.estimand, query.clip, batch)

    return _sums(context, score.columns, weights)


def _sums(context: AnswerContext[CovariateSums], columns: Sequence[str], weights: Callable[[Batch], Int64s]) -> Answer:
    query, schema = context.query, context.schema
    features, names, numbers = Features(query.covariates, schema), query.features(schema), query.numbers(schema)
    squared = [names.index(name) for name in numbers]

    def kernel(batch: Batch) -> Int64s:
        each = parts(weights(batch), features.ticks(batch)[1:], squared)
        return np.array([each[:, batch["treatment"] == arm].sum(axis=1) for arm in (0, 1)])

    sums = context.engine.fold(tuple(dict.fromkeys(("treatment", *features.columns, *columns))), kernel)
    return _named(query, schema, sums.tolist())


def _named(query: CovariateSums, schema: Schema, sums: Sequence[Sequence[int]]) -> Answer:
    """Return both arms' sums by the names of the coordinates."""
    labels = ["size", "weight_sum", "weight_square_sum", *(f"total of {name}" for name in query.features(schema))]
    labels += [f"deficit of {name}" for name in query.numbers(schema)]
    ticks = {}
    for arm in (0, 1):
        for label, total in zip(labels, sums[arm], strict=True):
            kind, joint, name = label.partition(" of ")
            ticks[f"{kind}_{arm}{joint}{name}"] = int(total)
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})


def parts(weights: Int64s, lines: Int64s, squared: Sequence[int]) -> Int64s:
    """Return what each row adds in its arm: 1, its weight, that squared, its features, and the deficits of some.

    All but the first are within -GRID and GRID.
    """
    totals = (weights * lines + GRID // 2) // GRID
    deficits = weights * ((GRID * GRID - lines[squared] ** 2) // GRID) // GRID
    return np.vstack([np.ones_like(weights), weights, weights * weights // GRID, totals, deficits])
