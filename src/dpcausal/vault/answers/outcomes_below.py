"""How many outcomes lie below a threshold. Proof: docs/proofs/outcomes_below.md."""

from typing import TYPE_CHECKING

from dpcausal.queries import OutcomesBelow
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.context import Answer, AnswerContext, answers

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(OutcomesBelow)
def answer(context: AnswerContext[OutcomesBelow]) -> Answer:
    """Return the count, of all units: the outcome's range is that of the whole table."""
    query, schema, engine = context.query, context.schema, context.engine
    outcome: Real = schema.outcome  # type: ignore[assignment]
    sums = engine.aggregate(
        {}, [f"CASE WHEN outcome < {ticks_of(outcome, query.threshold)} THEN 1 ELSE 0 END"], whole=True
    )
    return Answer({"below": int(sums[0])})
