"""A private logistic regression of treatment on covariates. Proof: docs/proofs/logistic.md."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpcausal.queries import GRID, BoundedInfluenceLogistic, ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, Engine, ExactInts
from dpcausal.vault.numerics.exact_gradients import (
    Derivatives,
    as_floats,
    derivative_sums,
    minimise,
    over_blocks,
    predictor,
    sigmoid,
)
from dpcausal.vault.numerics.features import Features

MAX_ROWS_IN_MEMORY = 2**17
"""Up to so many units, rows are read once and held for the solver; beyond, each of its steps reads them again."""

_MAX_COEFFICIENT = 2.0**20


@answers(OutputPerturbedLogistic, kernel=True)
def answer_output(context: AnswerContext[OutputPerturbedLogistic]) -> Answer:
    """Return the coefficients that minimise the penalised loss; the door adds the noise."""
    query, features = context.query, Features(context.query.covariates, context.schema)
    tolerance = float(query.slack) / 2
    fitted = fit(context.engine, features, query.penalty, np.zeros(features.size), tolerance)
    return rounded(features.names, fitted)


@answers(ObjectivePerturbedLogistic, kernel=True)
def answer_objective(context: AnswerContext[ObjectivePerturbedLogistic]) -> Answer:
    """Return the coefficients that minimise the penalised loss plus a random linear term, drawn here."""
    query, features = context.query, Features(context.query.covariates, context.schema)
    epsilon = context.guarantee.epsilon
    penalty = query.penalty(epsilon)
    tilt = context.sampler.cube(features.size, query.tilt_scale(epsilon, len(query.covariates) + 1))
    return rounded(features.names, fit(context.engine, features, penalty, tilt, float(query.slack) * penalty / 2))


@answers(BoundedInfluenceLogistic, kernel=True)
def answer_bounded(context: AnswerContext[BoundedInfluenceLogistic]) -> Answer:
    """Return the coefficients that minimise the penalised weighted loss plus a random linear term, drawn here."""
    query, schema, features = context.query, context.schema, Features(context.query.covariates, context.schema)
    epsilon, sizes = context.guarantee.epsilon, query.sizes(schema)
    penalty = query.penalty(epsilon, schema)
    tilt = context.sampler.ball(features.size, query.tilt_scale(epsilon))
    columns = ("treatment", *features.columns)
    losses = over_all(context.engine, columns, partial(weighted_loss_sums, features=features, sizes=sizes))
    tolerance = float(query.slack) * penalty / 2
    fitted = minimise(penalised(losses, penalty, tilt), features.size, tolerance, query.longest(schema))
    return rounded(features.names, fitted * sizes * features.root)


def fit(engine: Engine, features: Features, penalty: float, tilt: Array, tolerance: float) -> Array:
    """Return the minimum of the losses plus penalty / 2 times the squared length plus tilt times the coefficients."""
    losses = over_all(engine, ("treatment", *features.columns), partial(loss_sums, features=features))
    return minimise(penalised(losses, penalty, tilt), features.size, tolerance)


def over_all(engine: Engine, columns: Sequence[str], sums: Callable[..., ExactInts]) -> Callable[[Array], Array]:
    """Return the derivatives of the losses of all rows, from their sums over some; few rows are read only once."""
    if int(engine.aggregate({}, ["1"], whole=True)[0]) <= MAX_ROWS_IN_MEMORY:
        whole = engine.collect(columns, MAX_ROWS_IN_MEMORY)
        return lambda at: as_floats(sums(at, whole))
    return lambda at: as_floats(engine.fold(columns, partial(sums, at)))


def public_fit(engine: Engine, features: Features) -> Array:
    """Return the coefficients where covariates and arms are public: a ridge of 1 on features within -1 and 1."""
    penalty = 1 / features.root**2
    tolerance = 1e-6 * penalty + 1e-9 * int(engine.aggregate({}, ["1"])[0])
    return fit(engine, features, penalty, np.zeros(features.size), tolerance)


def penalised(losses: Callable[[Array], Array], penalty: float, tilt: Array) -> Derivatives:
    """Return the gradient and the curvature of losses with a ridge and a tilt."""

    def derivatives(at: Array) -> tuple[Array, Array]:
        totals = losses(at)
        return totals[0] + penalty * at + tilt, totals[1:] + penalty * np.eye(len(at))

    return derivatives


def loss_sums(at: Array, batch: Batch, features: Features) -> ExactInts:
    """Return the gradient of the losses of some rows, and below it their curvature, in ticks."""

    def sums(block: Batch) -> Int64s:
        ticks = features.ticks(block)
        share = score(at, ticks, features)
        return derivative_sums(ticks / features.scale, share - block["treatment"], share * (1 - share))

    return over_blocks(batch, sums)


def weighted_loss_sums(at: Array, batch: Batch, features: Features, sizes: Array) -> ExactInts:
    """Return the same for losses that are divided by the length of a row's features, each in its size of 1 or 1/2."""
    doubled = np.rint(2 * sizes).astype(np.int64)[:, None]

    def sums(block: Batch) -> Int64s:
        ticks = features.ticks(block)
        long = lengths(doubled * ticks)
        share = sigmoid(predictor(at * sizes, ticks) / GRID)
        pull, bend = share - block["treatment"], share * (1 - share) * (long / (2 * GRID))
        return derivative_sums(doubled * ticks / long, pull, bend)

    return over_blocks(batch, sums)


def lengths(lines: Int64s) -> Int64s:
    """Return the least whole numbers that are no less than the lengths of columns of whole numbers up to 2^21.

    Squared lengths are below 2^52 for a thousand features, and the root of so small a number that is no square is at
    least half a step of floating point away from all whole numbers: it is rounded to none below it.
    """
    whole: Int64s = np.ceil(np.sqrt((lines**2).sum(axis=0))).astype(np.int64)
    return whole


def score(at: Array, ticks: Int64s, features: Features) -> Array:
    """Return the probability of treatment that coefficients give to rows with these features."""
    return sigmoid(predictor(at, ticks) / features.scale)


def rounded(names: Sequence[str], fitted: Array) -> Answer:
    """Return coefficients as an answer. Limits, which no guarantee needs, let the noisy numbers fit into 64 bits."""
    within = np.clip(fitted, -_MAX_COEFFICIENT, _MAX_COEFFICIENT) / COEFFICIENT_TICK
    return Answer({name: round(value) for name, value in zip(names, within.tolist(), strict=True)})
