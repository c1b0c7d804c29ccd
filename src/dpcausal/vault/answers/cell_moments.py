"""Numbers of units and sums of outcomes in every arm of every stratum. Proof: docs/proofs/cell_moments.md."""

from dpcausal.queries import CellMoments
from dpcausal.queries.cuts import bins
from dpcausal.vault.answers.arm_moments import DEFICIT
from dpcausal.vault.answers.stratum_contrasts import bin_expression
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(CellMoments)
def answer(context: AnswerContext[CellMoments]) -> Answer:
    """Return three sums for each cell of the public list, rows or no rows; rows of no declared arm are in none."""
    query, schema = context.query, context.schema
    arms = len(schema.treatment.arms)
    strata = dict(zip((bin_expression(cut, schema) for cut in query.by), bins(query.by, schema), strict=True))
    sums = context.engine.aggregate(strata | {"arm": arms + 1}, ["outcome", DEFICIT, "1"], whole=True)
    declared = sums.reshape(-1, arms + 1, 3)[:, :arms].reshape(-1, 3)
    return Answer(
        {
            f"{part}{cell}": int(value)
            for cell, values in zip(query.cells(schema), declared, strict=True)
            for part, value in zip(("total", "deficit", "size"), values, strict=True)
        }
    )
