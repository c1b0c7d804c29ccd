"""The weights that best tell the effect by a loss no unit can pull far. Proof: docs/proofs/effect_weights.md."""

from functools import partial

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.effects import farthest_arm
from dpcausal.queries.scores import COEFFICIENT_STEP
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.logistic import over_all, penalised
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.minimum import Vector, minimum
from dpcausal.vault.residuals import Residuals


def effect_weights(query: EffectWeights, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The weights that minimise the penalised loss; the door adds the noise."""
    residuals, names = Residuals(query, schema), query.basis.names(schema)
    pull = query.limit * farthest_arm(query, schema)  # of one row, at most
    losses = over_all(engine, residuals.columns, partial(loss_derivatives, residuals=residuals, limit=query.limit))
    derivatives = penalised(losses, query.penalty, np.zeros(len(names)))
    bend = 2 * pull / query.limit**2
    fitted = minimum(derivatives, len(names), float(query.slack) * pull / 2, bend)
    # A minimum is never farther out than all rows together can pull it; limits keep noisy numbers within 64 bits.
    steps = np.clip(fitted, -(2.0**20), 2.0**20) / COEFFICIENT_STEP
    return Answer({name: round(value) for name, value in zip(names, steps.tolist(), strict=True)})


def loss_derivatives(at: Vector, residuals: Residuals, limit: float, batch: Batch) -> Vector:
    """The gradient of the losses of some rows, and below it their curvature."""
    distance, missed = residuals.residual(batch)
    regressors = (distance / GRID) * (residuals.functions(batch) / LENGTH)
    bent = np.tanh((missed / GRID - at @ regressors) / limit)
    gradient = [-limit * (line * bent).sum() for line in regressors]  # pairwise sums
    return np.vstack([gradient, (regressors * (1 - bent**2)) @ regressors.T])
