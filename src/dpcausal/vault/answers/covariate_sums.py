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
from dpcausal.vault.features import Features, lookup

Integers = NDArray[np.int64]


def covariate_sums(query: CovariateSums, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The sums of rows that all weigh the same."""
    return _sums(query, schema, engine, (), lambda batch: np.full(len(batch["treatment"]), GRID))


def weighted_covariates(query: WeightedCovariates, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The same with the weights that a public score gives."""
    score = Features(query.score, schema)

    def weights(batch: Batch) -> Integers:
        predictor = score.predictor(query.coefficients, score.steps(batch))
        control, treated = (
            weight_table(query.estimand, query.clip, query.largest, treated=arm) for arm in (False, True)
        )
        return np.where(batch["treatment"] == 1, treated[lookup(-predictor)], control[lookup(predictor)])

    return _sums(query, schema, engine, score.columns, weights)


def _sums(
    query: CovariateSums, schema: Schema, engine: Engine, columns: Sequence[str], weights: Callable[[Batch], Integers]
) -> Answer:
    features, names, numbers = Features(query.covariates, schema), query.features(schema), query.numbers(schema)
    labels = ["size", "mass", "design", *(f"total of {name}" for name in names)]
    labels += [f"deficit of {name}" for name in numbers]
    squared = [names.index(name) for name in numbers]

    def kernel(batch: Batch) -> Integers:
        each = parts(weights(batch), features.steps(batch)[1:], squared)
        return np.array([each[:, batch["treatment"] == arm].sum(axis=1) for arm in (0, 1)])

    sums = engine.fold(tuple(dict.fromkeys(("treatment", *features.columns, *columns))), kernel)
    steps = {}
    for arm in (0, 1):
        for label, total in zip(labels, sums[arm], strict=True):
            kind, covariates, name = label.partition(" of ")
            steps[f"{kind}_{arm}{covariates}{name}"] = int(total)
    return Answer(steps | {"compared": steps["size_0"] + steps["size_1"]})


def parts(weights: Integers, lines: Integers, squared: Sequence[int]) -> Integers:
    """What each row adds in its arm: 1, its weight, that squared, its features, and the deficits of some of them.

    All but the first are within -GRID and GRID.
    """
    totals = (weights * lines + GRID // 2) // GRID
    deficits = weights * ((GRID * GRID - lines[squared] ** 2) // GRID) // GRID
    return np.vstack([np.ones_like(weights), weights, weights * weights // GRID, totals, deficits])
