"""How many units leave follow-up between public times, and why. Proof: docs/proofs/event_counts.md."""

from typing import TYPE_CHECKING

from dpcausal.queries import EventCounts
from dpcausal.queries.cuts import bins
from dpcausal.queries.profiles import ticks_of
from dpcausal.vault.answers.stratum_contrasts import bin_expression
from dpcausal.vault.context import Answer, AnswerContext, answers

if TYPE_CHECKING:
    from dpcausal.real import Real


@answers(EventCounts)
def answer(context: AnswerContext[EventCounts]) -> Answer:
    """Return every count of the public list, rows or no rows, in one pass."""
    query, schema = context.query, context.schema
    outcome: Real = schema.outcome  # type: ignore[assignment]
    times, kinds = len(query.times), query.kinds(schema)
    cells = {bin_expression(cut, schema): each for cut, each in zip(query.by, bins(query.by, schema), strict=True)}
    cells |= {"treatment": 2, interval(query, outcome): times + 1}
    if query.event:
        cells[f"covariate_{[column.name for column in schema.covariates].index(query.event)}"] = kinds
    found = context.engine.aggregate(cells, ["1"]).reshape(-1, times + 1, kinds)
    arms = [[*arm[:times].ravel(), arm[times].sum()] for arm in found]
    counts = (int(count) for arm in arms for count in arm)
    return Answer(dict(zip(query.counts(schema), counts, strict=True)))


def interval(query: EventCounts, outcome: "Real") -> str:
    """Return the interval of a row's time as an SQL expression."""
    numbered = reversed(list(enumerate(query.times, start=1)))
    cases = " ".join(f"WHEN outcome >= {ticks_of(outcome, time)} THEN {place}" for place, time in numbered)
    return f"(CASE {cases} ELSE 0 END)"
