"""A private logistic regression of treatment on covariates. Proof: docs/proofs/logistic.md."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.scores import COEFFICIENT_STEP
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.features import Features
from dpcausal.vault.minimum import Derivatives, Vector, minimum
from dpcausal.vault.noise import cube_noise

AT_HAND = 2**17
"""Up to so many units rows are read once and kept while the solver runs; beyond, each of its steps reads them again."""

_FINE = 2.0**40
_FARTHEST = 2.0**20


def output_perturbed(query: OutputPerturbedLogistic, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The coefficients that minimise the penalised loss; the door adds the noise."""
    features = Features(query.of, schema)
    return _answer(features, fit(engine, features, query.penalty, np.zeros(features.size), float(query.slack) / 2))


def objective_perturbed(
    query: ObjectivePerturbedLogistic, schema: Schema, engine: Engine, guarantee: Guarantee
) -> Answer:
    """The coefficients that minimise the penalised loss plus a random linear term, drawn here."""
    features = Features(query.of, schema)
    penalty = query.penalty(guarantee.epsilon)
    tilt = cube_noise(features.size, query.tilt_scale(guarantee.epsilon, len(query.of) + 1))
    return _answer(features, fit(engine, features, penalty, tilt, float(query.slack) * penalty / 2))


def fit(engine: Engine, features: Features, penalty: float, tilt: Vector, tolerance: float) -> Vector:
    """The minimum of the sum of losses, plus penalty / 2 times the squared length, plus tilt times the coefficients."""
    losses = over_all(engine, ("treatment", *features.columns), partial(loss_derivatives, features=features))
    return minimum(penalised(losses, penalty, tilt), features.size, tolerance)


def over_all(engine: Engine, columns: Sequence[str], losses: Callable[..., Vector]) -> Callable[[Vector], Vector]:
    """The derivatives of the losses, functions of `at` and `batch`, of all rows; these are read once if few."""
    if int(engine.aggregate({}, ["1"])[0]) <= AT_HAND:
        whole = engine.collect(columns, AT_HAND)
        return lambda at: losses(at, batch=whole)

    def added_up(at: Vector) -> Vector:
        sums = engine.fold(columns, lambda batch: np.rint(losses(at, batch=batch) * _FINE))
        return sums.astype(float) / _FINE

    return added_up


def fit_batch(batch: Batch, features: Features, penalty: float, tilt: Vector, tolerance: float) -> Vector:
    """The same for rows that are all at hand."""
    losses = partial(loss_derivatives, features=features, batch=batch)
    return minimum(penalised(losses, penalty, tilt), features.size, tolerance)


def public_scores(batch: Batch, features: Features) -> Vector:
    """The score of each row where covariates and arms are public: a ridge of 1 on features within -1 and 1."""
    penalty = 1 / features.root**2
    tolerance = 1e-6 * penalty + 1e-9 * len(batch["treatment"])
    return score(fit_batch(batch, features, penalty, np.zeros(features.size), tolerance), features.unit(batch))


def penalised(losses: Callable[[Vector], Vector], penalty: float, tilt: Vector) -> Derivatives:
    """The gradient and the curvature of losses with a ridge and a tilt."""

    def derivatives(at: Vector) -> tuple[Vector, Vector]:
        totals = losses(at)
        return totals[0] + penalty * at + tilt, totals[1:] + penalty * np.eye(len(at))

    return derivatives


def loss_derivatives(at: Vector, features: Features, batch: Batch) -> Vector:
    """The gradient of the losses of some rows, and below it their curvature."""
    unit = features.unit(batch)
    share = score(at, unit)
    residual = share - batch["treatment"]
    gradient = [(line * residual).sum() for line in unit]  # pairwise sums, far more exact than a product of matrices
    return np.vstack([gradient, (unit * (share * (1 - share))) @ unit.T])


def score(at: Vector, unit: Vector) -> Vector:
    """The probability of treatment that coefficients give to some rows."""
    probability: Vector = 1 / (1 + np.exp(-np.clip(at @ unit, -700, 700)))
    return probability


def _answer(features: Features, fitted: Vector) -> Answer:
    # Held within limits, which no guarantee needs, so that the noisy numbers fit into 64 bits.
    within = np.clip(fitted, -_FARTHEST, _FARTHEST) / COEFFICIENT_STEP
    return Answer({name: round(value) for name, value in zip(features.names, within.tolist(), strict=True)})
