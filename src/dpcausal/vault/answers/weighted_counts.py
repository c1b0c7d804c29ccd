"""Weighted numbers of outcomes between edges, by a kernel that is quicker than one made of their description."""

from typing import TYPE_CHECKING

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, WeightedCounts
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features, unit_weights

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(WeightedCounts, kernel=True)
def answer(context: AnswerContext[WeightedCounts]) -> Answer:
    """Return every sum of the public list, rows or no rows. Every row adds integers made of that row alone."""
    query, schema = context.query, context.schema
    outcome: Real = schema.outcome  # type: ignore[assignment]
    features, kinds, counts = Features(query.covariates, schema), query.unweighted.kinds(schema), query.counts(schema)
    edges = np.array([ticks_of(outcome, edge) for edge in query.edges])
    names = [column.name for column in schema.covariates]
    event = f"covariate_{names.index(query.event)}" if query.event else ""

    def kernel(batch: Batch) -> Int64s:
        weights = unit_weights(features, query.coefficients, query.estimand, query.clip, batch)
        place = np.searchsorted(edges, batch["outcome"], side="right")
        kind = batch[event] if event else 0
        # Those beyond the last edge are in one count, whatever their kind.
        within = np.where(place < len(edges), place * kinds + kind, len(edges) * kinds)
        return parts(weights, batch["treatment"], within, len(counts) // 2)

    columns = ("treatment", "outcome", *features.columns, *([event] if event else []))
    sums = context.engine.fold(columns, kernel)
    return Answer({name: int(value) for name, value in zip((*counts, "squares_0", "squares_1"), sums, strict=True)})


def parts(weights: Int64s, arms: Int64s, within: Int64s, each_arm: int) -> Int64s:
    """Return what rows add: their weights to the counts of their arm, and the squares of these to one sum an arm.

    A row adds an integer from 0 to GRID to one count and to one sum.
    """
    sums = np.zeros(2 * each_arm + 2, dtype=np.int64)
    np.add.at(sums, arms * each_arm + within, weights)
    np.add.at(sums, 2 * each_arm + arms, weights * weights // GRID)
    return sums
