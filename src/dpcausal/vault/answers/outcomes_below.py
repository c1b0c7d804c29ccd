"""How many outcomes lie on one side of a threshold. Proof: docs/proofs/outcomes_below.md."""

from typing import TYPE_CHECKING

from dpcausal.queries import OutcomesBelow
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.context import Answer, AnswerContext, answers

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(OutcomesBelow)
def answer(context: AnswerContext[OutcomesBelow]) -> Answer:
    """Return the count, of all declared arms: the outcome's range is that of the whole table."""
    query, schema = context.query, context.schema
    outcome: Real = schema.outcome  # type: ignore[assignment]
    side = f"outcome {'>=' if query.at_least else '<'} {ticks_of(outcome, query.threshold)}"
    arms = len(schema.treatment.arms)
    counts = context.engine.aggregate({"arm": arms + 1}, [f"CASE WHEN {side} THEN 1 ELSE 0 END"], whole=True)
    return Answer({"units": int(counts[:arms].sum())})
