"""Arm totals and arm second moments. Proof: docs/proofs/arm_moments.md."""

from dpcausal.queries import GRID, ArmMoments, ArmTotals
from dpcausal.vault.context import Answer, AnswerContext, answers

SQUARE = "(CAST(outcome AS BIGINT) * outcome)"
"""One row's squared outcome; coerced columns are too narrow to hold it."""

DEFICIT = f"(({GRID**2} - {SQUARE}) >> {GRID.bit_length() - 1})"
"""One row's h² - z², in ticks of h² / GRID, rounded down."""


@answers(ArmTotals, ArmMoments)
def answer(context: AnswerContext[ArmTotals | ArmMoments]) -> Answer:
    """Return totals and sizes of the two arms, and deficits where they are asked for, in one pass."""
    sums = {"total": "outcome", "size": "1"} | ({"deficit": DEFICIT} if isinstance(context.query, ArmMoments) else {})
    arms = context.engine.aggregate({"treatment": 2}, list(sums.values()))
    ticks = {f"{name}_{arm}": int(arms[arm, place]) for arm in (0, 1) for place, name in enumerate(sums)}
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})
