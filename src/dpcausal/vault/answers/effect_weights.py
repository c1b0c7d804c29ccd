"""The weights that best tell the effect by a loss no unit can pull far. Proof: docs/proofs/effect_weights.md."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.logistic import over_all, penalised
from dpcausal.vault.engines import Batch, Engine, ExactInts
from dpcausal.vault.numerics.exact_gradients import derivative_sums, over_blocks, predictor
from dpcausal.vault.numerics.newton import Vector, minimise
from dpcausal.vault.numerics.residuals import Residuals
from dpcausal.vault.numerics.sigmoid import sigmoid


def effect_weights(query: EffectWeights, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The weights that minimise the penalised loss; the door adds the noise."""
    residuals, names = Residuals(query, schema), query.basis.names(schema)
    pull = query.limit * query.farthest_arm(schema, query.clip)  # of one row, at most
    shares = over_all(engine, residuals.columns, partial(loss_sums, residuals=residuals, limit=query.limit))
    derivatives = penalised(lambda at: in_half_ranges(shares(at), query.limit), query.penalty, np.zeros(len(names)))
    bend = 2 * pull / query.limit**2
    fitted = minimise(derivatives, len(names), float(query.slack) * pull / 2, bend)
    # A minimum is never farther out than all rows together can pull it; limits keep noisy numbers within 64 bits.
    ticks = np.clip(fitted, -(2.0**20), 2.0**20) / COEFFICIENT_TICK
    return Answer({name: round(value) for name, value in zip(names, ticks.tolist(), strict=True)})


def in_half_ranges(totals: Vector, limit: float) -> Vector:
    """Derivatives whose gradient is a share of the limit, in half ranges of the outcome."""
    return np.vstack([limit * totals[:1], totals[1:]])


def loss_sums(at: Vector, batch: Batch, residuals: Residuals, limit: float) -> ExactInts:
    """The gradient of the losses of some rows, as a share of the limit, and below it their curvature, in ticks."""

    def sums(block: Batch) -> NDArray[np.int64]:
        distance, missed = residuals.residual(block)
        regressors = (distance / GRID) * (residuals.functions(block) / LENGTH)
        bent = 2 * sigmoid(2 * (missed / GRID - predictor(at, regressors)) / limit) - 1  # the hyperbolic tangent
        return derivative_sums(regressors, -bent, 1 - bent * bent)

    return over_blocks(batch, sums)
