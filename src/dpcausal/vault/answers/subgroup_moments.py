"""Numbers of units and sums of outcomes in each arm of each group. Proof: docs/proofs/subgroup_moments.md."""

from dpcausal.queries import GRID, SubgroupMoments
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(SubgroupMoments)
def answer(context: AnswerContext[SubgroupMoments]) -> Answer:
    """Return three sums for each arm of each group of the public list, rows or no rows."""
    query, schema, engine = context.query, context.schema, context.engine
    ticks = {}
    groups = zip(query.cells.names(schema), strata(query.cells.by, schema, engine), strict=True)
    for group, arms in groups:
        for arm, (size, total, squares) in enumerate(arms):
            ticks[f"size_{arm} of {group}"] = size
            ticks[f"total_{arm} of {group}"] = total
            ticks[f"deficit_{arm} of {group}"] = (size * GRID * GRID - squares) // GRID
    return Answer(ticks)
