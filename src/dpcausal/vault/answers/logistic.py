"""A private logistic regression of treatment on covariates. Proof: docs/proofs/logistic.md."""

from collections.abc import Sequence

import numpy as np

from dpcausal.errors import TableError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.scores import COEFFICIENT_STEP, feature_names
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.features import Features
from dpcausal.vault.minimum import Derivatives, Vector, minimum
from dpcausal.vault.noise import cube_noise

MOST_UNITS = 10**7
"""Beyond this, what floating point may do to a gradient is no longer far below the tolerance."""

AT_HAND = 2**17
"""Up to so many units rows are read once and kept while the solver runs; beyond, each of its steps reads them again."""

_FINE = 2.0**40
_FARTHEST = 2.0**20


def output_perturbed(query: OutputPerturbedLogistic, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The coefficients that minimise the penalised loss; the door adds the noise."""
    features, names = Features(query.of, schema), feature_names(query.of, schema)
    fitted = fit(engine, features, len(names), query.penalty, np.zeros(len(names)), float(query.slack) / 2)
    return _answer(names, fitted)


def objective_perturbed(
    query: ObjectivePerturbedLogistic, schema: Schema, engine: Engine, guarantee: Guarantee
) -> Answer:
    """The coefficients that minimise the penalised loss plus a random linear term, drawn here."""
    features, names = Features(query.of, schema), feature_names(query.of, schema)
    penalty = query.penalty(guarantee.epsilon)
    tilt = cube_noise(len(names), query.tilt_scale(guarantee.epsilon, len(query.of) + 1))
    fitted = fit(engine, features, len(names), penalty, tilt, float(query.slack) * penalty / 2)
    return _answer(names, fitted)


def fit(  # noqa: PLR0913, PLR0917
    engine: Engine, features: Features, dimensions: int, penalty: float, tilt: Vector, tolerance: float
) -> Vector:
    """The minimum of the sum of losses, plus penalty / 2 times the squared length, plus tilt times the coefficients."""
    n, columns = int(engine.aggregate({}, ["1"])[0]), ("treatment", *features.columns)
    check_size(n, MOST_UNITS)
    whole = engine.collect(columns, AT_HAND) if n <= AT_HAND else None

    def derivatives(at: Vector) -> tuple[Vector, Vector]:
        def kernel(batch: Batch) -> Vector:
            return np.rint(loss_derivatives(at, features, batch) * _FINE)

        sums = engine.fold(columns, kernel) if whole is None else kernel(whole)
        totals = sums.astype(float) / _FINE
        return totals[0] + penalty * at + tilt, totals[1:] + penalty * np.eye(dimensions)

    return minimum(derivatives, dimensions, tolerance)


def fit_batch(batch: Batch, features: Features, penalty: float) -> Vector:
    """The same, without a tilt, for rows that are all at hand and whose covariates and arms are public."""
    dimensions = len(features.steps({name: column[:1] for name, column in batch.items()}))

    def derivatives(at: Vector) -> tuple[Vector, Vector]:
        totals = loss_derivatives(at, features, batch)
        return totals[0] + penalty * at, totals[1:] + penalty * np.eye(dimensions)

    chosen: Derivatives = derivatives
    return minimum(chosen, dimensions, 1e-6 * penalty + 1e-9 * len(batch["treatment"]))


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


def check_size(n: int, most: int) -> None:
    """Raise where there are more units than a proof is about; n is public."""
    if n > most:
        raise TableError(
            expected=f"at most {most:,} units", got=f"{n:,}", hint="ask of a random part of the table, or use strata."
        )


def _answer(names: Sequence[str], fitted: Vector) -> Answer:
    # Held within limits, which no guarantee needs, so that the noisy numbers fit into 64 bits.
    within = np.clip(fitted, -_FARTHEST, _FARTHEST) / COEFFICIENT_STEP
    return Answer({name: round(value) for name, value in zip(names, within.tolist(), strict=True)})
