"""How many units of each arm have an outcome, and how many have none. Proof: docs/proofs/missing_outcomes.md."""

from dpcausal.queries import MissingOutcomes
from dpcausal.vault.context import Answer, AnswerContext, answers

MISSING = "CASE WHEN outcome > 0 THEN 1 ELSE 0 END"
"""Whether one row's outcome is missing: the query sees just that as its outcome."""


@answers(MissingOutcomes)
def answer(context: AnswerContext[MissingOutcomes]) -> Answer:
    """Return the four counts in one pass."""
    sums = context.engine.aggregate({"treatment": 2}, [MISSING, "1"])
    counts = (number for missing, units in sums for number in (int(units) - int(missing), int(missing)))
    return Answer(dict(zip(context.query.counts, counts, strict=True)))
