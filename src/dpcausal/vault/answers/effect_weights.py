"""The weights that best tell the effect by a loss no unit can pull far. Proof: docs/proofs/effect_weights.md."""

from functools import partial

import numpy as np

from dpcausal.queries import GRID, EffectWeights
from dpcausal.queries.basis import LENGTH
from dpcausal.queries.models import Learner
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.answers.logistic import over_all, penalised, rounded
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, ExactInts
from dpcausal.vault.numerics.exact_gradients import (
    derivative_sums,
    minimise,
    over_blocks,
    predictor,
    sigmoid,
)
from dpcausal.vault.numerics.residuals import Residuals


@answers(EffectWeights, kernel=True)
def answer(context: AnswerContext[EffectWeights]) -> Answer:
    """Return the weights that minimise the penalised loss; the door adds the noise."""
    query, schema, engine = context.query, context.schema, context.engine
    residuals, names = Residuals(query, schema), query.basis.names(schema)
    pull = query.limit * query.longest(schema)  # of one row, at most
    losses = partial(loss_sums, residuals=residuals, limit=query.limit, learner=query.learner)
    shares = over_all(engine, residuals.columns, losses)
    derivatives = penalised(lambda at: in_half_ranges(shares(at), query.limit), query.penalty, np.zeros(len(names)))
    bend = 2 * pull / query.limit**2
    fitted = minimise(derivatives, len(names), float(query.slack) * pull / 2, bend)
    return rounded(names, fitted)  # all rows together cannot pull the minimum beyond its limits


def in_half_ranges(totals: Array, limit: float) -> Array:
    """Return derivatives whose gradient is a share of the limit, in half ranges of the outcome."""
    return np.vstack([limit * totals[:1], totals[1:]])


def loss_sums(at: Array, batch: Batch, residuals: Residuals, limit: float, learner: Learner = "residual") -> ExactInts:
    """Return the gradient of some rows' losses, as a share of the limit, and below it their curvature, in ticks."""

    def sums(block: Batch) -> Int64s:
        regressors, target = regression(block, residuals, learner)
        bent = 2 * sigmoid(2 * (target - predictor(at, regressors)) / limit) - 1  # the hyperbolic tangent
        return derivative_sums(regressors, -bent, 1 - bent * bent)

    return over_blocks(batch, sums)


def regression(batch: Batch, residuals: Residuals, learner: Learner) -> tuple[Array, Array]:
    """Return some rows' regressors, one line a function, and their regressand in half ranges of the outcome."""
    functions = residuals.functions(batch) / LENGTH
    if learner == "residual":
        distance, missed = residuals.residual(batch)
        return (distance / GRID) * functions, missed / GRID
    reach = EffectWeights.reach[learner]
    return functions, np.clip(residuals.augmented(batch, reach), -GRID, GRID) * reach / GRID
