"""Sums over arms weighted by a public score, by a kernel that is quicker than one made of their description."""

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, WeightedArms
from dpcausal.queries.scores import PREDICTOR_TICKS, weight_table
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features, lookup


@answers(WeightedArms, kernel=True)
def answer(context: AnswerContext[WeightedArms]) -> Answer:
    """Return the six sums and the number of units. Every row's part is made of integers from that row alone."""
    query, schema, engine = context.query, context.schema, context.engine
    features = Features(query.covariates, schema)
    tables = [weight_table(query.estimand, query.clip, query.largest, treated=treated) for treated in (False, True)]

    def kernel(batch: Batch) -> Int64s:
        weights = np.where(
            batch["treatment"] == 1,
            tables[1][_exponent(query, features, batch, -1)],
            tables[0][_exponent(query, features, batch, 1)],
        )
        each = parts(weights, batch["treatment"], centred(batch["outcome"], query))
        return np.array([*(part.sum() for part in each), len(weights)])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    return Answer({name: int(value) for name, value in zip((*query.weights, "compared"), sums, strict=True)})


def centred(outcomes: Int64s, query: WeightedArms) -> Int64s:
    """Return outcomes measured from a public centre, as shares of the most that they can be; within -GRID and GRID."""
    if query.centre_ticks == 0:
        return outcomes
    return np.clip(((outcomes - query.centre_ticks) * query.share + GRID // 2) // GRID, -GRID, GRID)


def parts(weights: Int64s, arms: Int64s, outcomes: Int64s) -> tuple[Int64s, ...]:
    """Return what each row adds to the six sums; all within -GRID and GRID."""
    sign = 2 * arms - 1
    product = (weights * outcomes + GRID // 2) // GRID
    deficit = (GRID * GRID - outcomes * outcomes) // GRID
    return sign * product, product, sign * weights, weights, weights * deficit // GRID, weights * weights // GRID


def _exponent(query: WeightedArms, features: Features, batch: Batch, sign: int) -> Int64s:
    """Return where in the table of weights a row looks: the predictor with its sign, less the shrinkage, in ticks."""
    ticks = features.ticks(batch)
    length = np.zeros(ticks.shape[1], dtype=np.int64)
    for line in ticks:
        length += line * line // GRID
    shrink = round(query.shrink / features.root**2 * PREDICTOR_TICKS / GRID)
    return lookup(sign * features.predictor(query.coefficients, ticks) - shrink * length)
