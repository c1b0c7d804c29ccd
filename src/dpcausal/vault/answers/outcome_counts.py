"""How many outcomes are in each bin between public edges. Proof: docs/proofs/outcome_counts.md."""

import itertools
from typing import TYPE_CHECKING

from dpcausal.queries import OutcomeCounts
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.context import Answer, AnswerContext, answers

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(OutcomeCounts)
def answer(context: AnswerContext[OutcomeCounts]) -> Answer:
    """Return the number of compared units in each bin, in one pass."""
    query, outcome = context.query, context.schema.outcome
    real: Real = outcome  # type: ignore[assignment]
    below = [f"CASE WHEN outcome < {ticks_of(real, edge)} THEN 1 ELSE 0 END" for edge in query.edges]
    sums = [0, *(int(count) for count in context.engine.aggregate({}, [*below, "1"]))]
    counts = (more - fewer for fewer, more in itertools.pairwise(sums))
    return Answer(dict(zip(query.bins, counts, strict=True)))
