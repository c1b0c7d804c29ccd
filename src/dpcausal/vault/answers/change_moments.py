"""Sums of changes and of their squares in each arm. Proof: docs/proofs/change_moments.md."""

from dpcausal.columns import Column
from dpcausal.queries import GRID, ChangeMoments
from dpcausal.queries.change_moments import FINE
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.vault.context import Answer, AnswerContext, answers

_SHIFT = FINE.bit_length() - 1


@answers(ChangeMoments)
def answer(context: AnswerContext[ChangeMoments]) -> Answer:
    """Return totals, deficits and sizes of both arms, in one pass."""
    change = change_ticks(context.query, context.schema)
    deficit = f"(({GRID**2} - {change} * {change}) >> {GRID.bit_length() - 1})"
    sums = {"total": change, "deficit": deficit, "size": "1"}
    arms = context.engine.aggregate({"treatment": 2}, list(sums.values()))
    ticks = {f"{name}_{arm}": int(arms[arm, place]) for arm in (0, 1) for place, name in enumerate(sums)}
    return Answer(ticks | {"compared": ticks["size_0"] + ticks["size_1"]})


def change_ticks(query: ChangeMoments, schema: Schema) -> str:
    """Return one row's change as SQL: ticks from the middle of its bounds, between -GRID and GRID."""
    before, after = (_ticks(name, column) for name, column in query.columns(schema))
    times_after, times_before, shift = query.factors(schema)
    fine = f"({times_after} * {after} - {times_before} * {before} + {shift})"
    # Negative numbers are not shifted: engines may round them differently.
    return f"(((LEAST(GREATEST({fine}, {-GRID * FINE}), {GRID * FINE}) + {GRID * FINE}) >> {_SHIFT}) - {GRID})"


def _ticks(name: str, column: Column) -> str:
    """Return a coerced column as ticks from the middle of its range, in 64 bits."""
    wide = f"CAST({name} AS BIGINT)"
    return wide if isinstance(column, Real) or name == "outcome" else f"({2 * GRID} * {wide} - {GRID})"
