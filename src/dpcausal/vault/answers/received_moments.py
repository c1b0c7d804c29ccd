"""Sums of outcomes, of the treatment received and of their products. Proof: docs/proofs/received_moments.md."""

from dpcausal.queries import ReceivedMoments
from dpcausal.vault.answers.arm_moments import DEFICIT
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(ReceivedMoments)
def answer(context: AnswerContext[ReceivedMoments]) -> Answer:
    """Return the sums of both arms, in one pass."""
    sign = f"(2 * covariate_{context.query.place(context.schema)} - 1)"
    sums = {
        "total": "outcome",
        "deficit": DEFICIT,
        "received": sign,
        "product": f"(outcome * {sign})",
        "size": "1",
    }
    arms = context.engine.aggregate({"treatment": 2}, list(sums.values()))
    ticks = {f"{name}_{arm}": int(arms[arm, place]) for arm in (0, 1) for place, name in enumerate(sums)}
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})
