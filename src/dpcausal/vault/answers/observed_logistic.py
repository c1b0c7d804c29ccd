"""Private logistic regressions over all units, with an outcome or without. Proof: docs/proofs/observed_logistic.md."""

from functools import partial

from dpcausal.queries import AllUnitsLogistic, ObservedLogistic
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.answers.logistic import answer_objective, over_all, penalised, rounded, score
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, ExactInts
from dpcausal.vault.numerics.exact_gradients import derivative_sums, minimise, over_blocks
from dpcausal.vault.numerics.features import Features

answers(AllUnitsLogistic, kernel=True)(answer_objective)


@answers(ObservedLogistic, kernel=True)
def answer_observed(context: AnswerContext[ObservedLogistic]) -> Answer:
    """Return both arms' coefficients, each with a random linear term of its own, drawn here."""
    query, features = context.query, Features(context.query.covariates, context.schema)
    epsilon = context.guarantee.epsilon
    penalty, scale = query.penalty(epsilon), query.tilt_scale(epsilon, len(query.covariates) + 1)
    ticks: dict[str, int] = {}
    for arm in (0, 1):
        tilt = context.sampler.cube(features.size, scale)
        losses = over_all(
            context.engine,
            ("treatment", "outcome", *features.columns),
            partial(observed_sums, features=features, arm=arm),
        )
        fitted = minimise(penalised(losses, penalty, tilt), features.size, float(query.slack) * penalty / 2)
        ticks |= rounded(query.of_arm(arm, features.names), fitted).ticks
    return Answer(ticks)


def observed_sums(at: Array, batch: Batch, features: Features, arm: int) -> ExactInts:
    """Return the gradient of the losses of an arm's rows, and below it their curvature, in ticks."""

    def sums(block: Batch) -> Int64s:
        ticks = features.ticks(block)
        share, inside = score(at, ticks, features), block["treatment"] == arm
        # The outcome is whether the outcome is missing: above the middle of its range if it is.
        pull = (share - (block["outcome"] <= 0)) * inside
        return derivative_sums(ticks / features.scale, pull, share * (1 - share) * inside)

    return over_blocks(batch, sums)
