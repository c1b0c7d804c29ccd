"""Weighted sums over cohorts at one look of a schedule. Proof: docs/proofs/look_moments.md."""

from dpcausal.queries import LookMoments
from dpcausal.queries.coerced import OUTCOME
from dpcausal.queries.look_moments import norm_of, weights
from dpcausal.sums.numbers import deficit
from dpcausal.vault.adding import sql_text
from dpcausal.vault.answers.stratum_contrasts import bin_expression
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(LookMoments)
def answer(context: AnswerContext[LookMoments]) -> Answer:
    """Return three sums for each declared arm over the cohorts up to this look, each cohort times its weight."""
    query, schema = context.query, context.schema
    looks, arms = query.looks(schema), len(schema.treatment.arms)
    cells = {bin_expression(query.cohorts, schema): looks, "arm": arms + 1}
    sums = context.engine.aggregate(cells, ["outcome", sql_text(deficit(OUTCOME)), "1"], whole=True).reshape(
        looks, arms + 1, 3
    )
    used = weights(looks, norm_of(context.guarantee))
    ticks: dict[str, int] = {}
    for place, cell in enumerate(query.cells(schema)):
        for at, part in enumerate(("total", "deficit", "size")):
            cohorts = sums[: query.look, place, at]
            ticks[f"{part}{cell}"] = sum(
                used[query.look - 1 - cohort] * int(each) for cohort, each in enumerate(cohorts)
            )
    return Answer(ticks)
