"""How many outcomes are in each bin between public edges, or by arm. Proof: docs/proofs/outcome_counts.md."""

import itertools
from typing import TYPE_CHECKING

from dpcausal.queries import ArmOutcomeCounts, OutcomeCounts
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.context import Answer, AnswerContext, answers

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(OutcomeCounts, ArmOutcomeCounts)
def answer(context: AnswerContext[OutcomeCounts | ArmOutcomeCounts]) -> Answer:
    """Return the number of compared units in each bin, or in each bin of each arm, in one pass."""
    query, outcome = context.query, context.schema.outcome
    real: Real = outcome  # type: ignore[assignment]
    below = [f"CASE WHEN outcome < {ticks_of(real, edge)} THEN 1 ELSE 0 END" for edge in query.edges]
    groups = {"treatment": 2} if isinstance(query, ArmOutcomeCounts) else {}
    sums = context.engine.aggregate(groups, [*below, "1"]).reshape(-1, len(below) + 1)
    counts = (more - fewer for each in sums for fewer, more in itertools.pairwise((0, *map(int, each))))
    return Answer(dict(zip(query.bins, counts, strict=True)))
