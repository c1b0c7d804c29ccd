"""A private logistic regression of treatment on covariates. Proof: docs/proofs/logistic.md."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine, ExactInts
from dpcausal.vault.noise import cube_noise
from dpcausal.vault.numerics.exact_gradients import as_floats, derivative_sums, over_blocks, predictor
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.newton import Derivatives, Vector, minimise
from dpcausal.vault.numerics.sigmoid import sigmoid

MAX_ROWS_IN_MEMORY = 2**17
"""Up to so many units rows are read once and kept while the solver runs; beyond, each of its steps reads them again."""

_MAX_COEFFICIENT = 2.0**20


def output_perturbed(query: OutputPerturbedLogistic, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The coefficients that minimise the penalised loss; the door adds the noise."""
    features = Features(query.covariates, schema)
    return _answer(features, fit(engine, features, query.penalty, np.zeros(features.size), float(query.slack) / 2))


def objective_perturbed(
    query: ObjectivePerturbedLogistic, schema: Schema, engine: Engine, guarantee: Guarantee
) -> Answer:
    """The coefficients that minimise the penalised loss plus a random linear term, drawn here."""
    features = Features(query.covariates, schema)
    penalty = query.penalty(guarantee.epsilon)
    tilt = cube_noise(features.size, query.tilt_scale(guarantee.epsilon, len(query.covariates) + 1))
    return _answer(features, fit(engine, features, penalty, tilt, float(query.slack) * penalty / 2))


def fit(engine: Engine, features: Features, penalty: float, tilt: Vector, tolerance: float) -> Vector:
    """The minimum of the sum of losses, plus penalty / 2 times the squared length, plus tilt times the coefficients."""
    losses = over_all(engine, ("treatment", *features.columns), partial(loss_sums, features=features))
    return minimise(penalised(losses, penalty, tilt), features.size, tolerance)


def over_all(engine: Engine, columns: Sequence[str], sums: Callable[..., ExactInts]) -> Callable[[Vector], Vector]:
    """The derivatives of the losses of all rows, from their sums over some; rows are read once if there are few."""
    if int(engine.aggregate({}, ["1"], whole=True)[0]) <= MAX_ROWS_IN_MEMORY:
        whole = engine.collect(columns, MAX_ROWS_IN_MEMORY)
        return lambda at: as_floats(sums(at, whole))
    return lambda at: as_floats(engine.fold(columns, partial(sums, at)))


def public_fit(engine: Engine, features: Features) -> Vector:
    """The coefficients where covariates and arms are public: a ridge of 1 on features within -1 and 1."""
    penalty = 1 / features.root**2
    tolerance = 1e-6 * penalty + 1e-9 * int(engine.aggregate({}, ["1"])[0])
    return fit(engine, features, penalty, np.zeros(features.size), tolerance)


def penalised(losses: Callable[[Vector], Vector], penalty: float, tilt: Vector) -> Derivatives:
    """The gradient and the curvature of losses with a ridge and a tilt."""

    def derivatives(at: Vector) -> tuple[Vector, Vector]:
        totals = losses(at)
        return totals[0] + penalty * at + tilt, totals[1:] + penalty * np.eye(len(at))

    return derivatives


def loss_sums(at: Vector, batch: Batch, features: Features) -> ExactInts:
    """The gradient of the losses of some rows, and below it their curvature, in ticks."""

    def sums(block: Batch) -> NDArray[np.int64]:
        ticks = features.ticks(block)
        share = score(at, ticks, features)
        return derivative_sums(ticks / features.scale, share - block["treatment"], share * (1 - share))

    return over_blocks(batch, sums)


def score(at: Vector, ticks: NDArray[np.int64], features: Features) -> Vector:
    """The probability of treatment that coefficients give to rows with these features."""
    return sigmoid(predictor(at, ticks) / features.scale)


def _answer(features: Features, fitted: Vector) -> Answer:
    # Held within limits, which no guarantee needs, so that the noisy numbers fit into 64 bits.
    within = np.clip(fitted, -_MAX_COEFFICIENT, _MAX_COEFFICIENT) / COEFFICIENT_TICK
    return Answer({name: round(value) for name, value in zip(features.names, within.tolist(), strict=True)})
