"""Sums of many metrics in every arm, in one pass. Proof: docs/proofs/metric_moments.md."""

from dpcausal.queries import GRID, MetricMoments
from dpcausal.queries.metric_moments import MetricColumn
from dpcausal.real import Real
from dpcausal.vault.answers.arm_moments import deficit_of
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Ticks
from dpcausal.vault.parsing import literal

_SHIFT = GRID.bit_length() - 1


@answers(MetricMoments)
def answer(context: AnswerContext[MetricMoments]) -> Answer:
    """Return all sums of every arm of the public list, rows or no rows; rows of no declared arm are in none."""
    query, schema = context.query, context.schema
    columns = query.columns(schema)
    sums: dict[str, str] = {"size": "1"}
    for name, (coerced, column) in columns.items():
        sums[f"total of {name}"] = Ticks(_ticks(coerced, column))
        if isinstance(column, Real):
            sums[f"deficit of {name}"] = deficit_of(coerced)
    for one, other in query.products:
        sums[f"product of {one} and {other}"] = _product(_ticks(*columns[one]), _ticks(*columns[other]))
    arms = len(schema.treatment.arms)
    found = context.engine.aggregate({"arm": arms + 1}, list(sums.values()), whole=True)
    return Answer({_at(name, arm): int(found[arm, place]) for arm in range(arms) for place, name in enumerate(sums)})


def _at(name: str, arm: int) -> str:
    part, _, rest = name.partition(" ")
    return f"{part}_{arm} {rest}".rstrip()


def _ticks(coerced: str, column: MetricColumn) -> str:
    """Return a coerced column as ticks from the middle of its range; the codes 0 and 1 of a binary one as its ends."""
    return coerced if isinstance(column, Real) or coerced == "outcome" else f"({2 * GRID} * {coerced} - {GRID})"


def _product(one: str, other: str) -> Ticks:
    """Return the product of two numbers in ticks, rounded down to ticks."""
    return Ticks(
        # Negative numbers are not shifted: engines may round them differently.
        f"(((CAST({one} AS BIGINT) * {other} + {GRID**2}) >> {_SHIFT}) - {GRID})",
        f"FLOOR(CAST({one} AS DOUBLE) * CAST({other} AS DOUBLE) * {literal(1 / GRID)})",
    )
