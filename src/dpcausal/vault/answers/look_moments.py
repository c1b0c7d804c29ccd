"""Weighted sums over cohorts at one look of a schedule. Proof: docs/proofs/look_moments.md."""

from dpcausal.queries import LookMoments
from dpcausal.queries.look_moments import norm_of, weights
from dpcausal.vault.adding import add_up
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(LookMoments)
def answer(context: AnswerContext[LookMoments]) -> Answer:
    """Return three sums for each declared arm over the cohorts up to this look, each cohort times its weight."""
    query, schema = context.query, context.schema
    found, arms = add_up(context.engine, query.cohort_sums(schema)), len(schema.treatment.arms)
    used = weights(query.looks(schema), norm_of(context.guarantee))
    return Answer(
        {
            f"{part}_{arm}": sum(
                used[query.look - 1 - cohort] * found[f"{part}_{cohort * arms + arm}"] for cohort in range(query.look)
            )
            for arm in range(arms)
            for part in ("total", "deficit", "size")
        }
    )
