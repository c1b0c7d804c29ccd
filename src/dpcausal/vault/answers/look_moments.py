"""Weighted sums over cohorts at one look of a schedule. Proof: docs/proofs/look_moments.md."""

from dpcausal.queries import LookMetrics, LookMoments
from dpcausal.queries.look_moments import LookQuery, norm_of, weights
from dpcausal.vault.adding import add_up
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(LookMoments, LookMetrics)
def answer(context: AnswerContext[LookQuery]) -> Answer:
    """Return the sums of each declared arm over the cohorts up to this look, each cohort times its weight."""
    query, schema = context.query, context.schema
    sums, arms = query.cohort_sums(schema), len(schema.treatment.arms)
    found, used = add_up(context.engine, sums), weights(query.looks(schema), norm_of(context.guarantee))
    return Answer(
        {
            named(key, arm): sum(
                used[query.look - 1 - cohort] * found[named(key, cohort * arms + arm)] for cohort in range(query.look)
            )
            for arm in range(arms)
            for key in sums.numbers
        }
    )


def named(key: str, cell: int) -> str:
    """Return what a sum of a description is called in a cell."""
    return key.replace("{}", f"_{cell}", 1) if "{}" in key else f"{key}_{cell}"
