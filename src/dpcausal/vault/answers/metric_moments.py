"""Sums of many metrics in every arm, in one pass. Proof: docs/proofs/metric_moments.md."""

from dpcausal.queries import GRID, MetricMoments
from dpcausal.queries.metric_moments import MetricColumn
from dpcausal.real import Real
from dpcausal.vault.context import Answer, AnswerContext, answers

_SHIFT = GRID.bit_length() - 1


@answers(MetricMoments)
def answer(context: AnswerContext[MetricMoments]) -> Answer:
    """Return all sums of every arm of the public list, rows or no rows; rows of no declared arm are in none."""
    query, schema = context.query, context.schema
    columns = query.columns(schema)
    sums = {"size": "1"}
    for name, (coerced, column) in columns.items():
        sums[f"total of {name}"] = _ticks(coerced, column)
        if isinstance(column, Real):
            sums[f"deficit of {name}"] = f"(({GRID**2} - {_wide(coerced, column)} * {coerced}) >> {_SHIFT})"
    for one, other in query.products:
        product = f"{_wide(*columns[one])} * {_ticks(*columns[other])}"
        # Negative numbers are not shifted: engines may round them differently.
        sums[f"product of {one} and {other}"] = f"((({product} + {GRID**2}) >> {_SHIFT}) - {GRID})"
    arms = len(schema.treatment.arms)
    found = context.engine.aggregate({"arm": arms + 1}, list(sums.values()), whole=True)
    return Answer({_at(name, arm): int(found[arm, place]) for arm in range(arms) for place, name in enumerate(sums)})


def _at(name: str, arm: int) -> str:
    part, _, rest = name.partition(" ")
    return f"{part}_{arm} {rest}".rstrip()


def _ticks(coerced: str, column: MetricColumn) -> str:
    """Return a coerced column as ticks from the middle of its range; the codes 0 and 1 of a binary one as its ends."""
    return coerced if isinstance(column, Real) or coerced == "outcome" else f"({2 * GRID} * {coerced} - {GRID})"


def _wide(coerced: str, column: MetricColumn) -> str:
    """Return the same in 64 bits, for products."""
    return f"CAST({_ticks(coerced, column)} AS BIGINT)"
