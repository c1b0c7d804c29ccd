"""Sums of covariates in each arm, in exact integers. Proof: docs/proofs/covariate_sums.md."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, CovariateSums, WeightedCovariates
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.weighted_arms import weight_table
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.features import Features, lookup

Int64s = NDArray[np.int64]


def covariate_sums(query: CovariateSums, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The sums of rows that all weigh the same."""
    return _sums(query, schema, engine, (), lambda batch: np.full(len(batch["treatment"]), GRID))


def weighted_covariates(query: WeightedCovariates, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The same with the weights that a public score gives."""
    score = Features(query.score, schema)

    def weights(batch: Batch) -> Int64s:
        predictor = score.predictor(query.coefficients, score.ticks(batch))
        control, treated = (
            weight_table(query.estimand, query.clip, query.largest, treated=arm) for arm in (False, True)
        )
        return np.where(batch["treatment"] == 1, treated[lookup(-predictor)], control[lookup(predictor)])

    return _sums(query, schema, engine, score.columns, weights)


def _sums(
    query: CovariateSums, schema: Schema, engine: Engine, columns: Sequence[str], weights: Callable[[Batch], Int64s]
) -> Answer:
    features, names, numbers = Features(query.covariates, schema), query.features(schema), query.numbers(schema)
    labels = ["size", "weight_sum", "weight_square_sum", *(f"total of {name}" for name in names)]
    labels += [f"deficit of {name}" for name in numbers]
    squared = [names.index(name) for name in numbers]

    def kernel(batch: Batch) -> Int64s:
        each = parts(weights(batch), features.ticks(batch)[1:], squared)
        return np.array([each[:, batch["treatment"] == arm].sum(axis=1) for arm in (0, 1)])

    sums = engine.fold(tuple(dict.fromkeys(("treatment", *features.columns, *columns))), kernel)
    ticks = {}
    for arm in (0, 1):
        for label, total in zip(labels, sums[arm], strict=True):
            kind, covariates, name = label.partition(" of ")
            ticks[f"{kind}_{arm}{covariates}{name}"] = int(total)
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})


def parts(weights: Int64s, lines: Int64s, squared: Sequence[int]) -> Int64s:
    """What each row adds in its arm: 1, its weight, that squared, its features, and the deficits of some of them.

    All but the first are within -GRID and GRID.
    """
    totals = (weights * lines + GRID // 2) // GRID
    deficits = weights * ((GRID * GRID - lines[squared] ** 2) // GRID) // GRID
    return np.vstack([np.ones_like(weights), weights, weights * weights // GRID, totals, deficits])
