"""Contrasts between arms, stratum by stratum, in exact integers. Proof: docs/proofs/stratum_contrasts.md."""

from collections.abc import Sequence

from dpcausal.queries import GRID, Cut, StratumContrasts
from dpcausal.queries.coerced import OUTCOME, TREATMENT
from dpcausal.queries.coerced import strata as factors
from dpcausal.schema.schema import Schema
from dpcausal.sums.printing import sql
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Engine

Arm = tuple[int, int, int]
"""Of one arm of one stratum: the number of units, the sum of their outcomes, the sum of their squares; in ticks."""


@answers(StratumContrasts)
def answer(context: AnswerContext[StratumContrasts]) -> Answer:
    """Return the five sums over all strata. A stratum without rows is like any other: it adds 0."""
    query, schema, engine = context.query, context.schema, context.engine
    arms = strata(query.by, schema, engine)
    contrasts = [contrast(control, treated, query.cap) for control, treated in arms]
    ticks = {name: sum(each[place] for each in contrasts) for place, name in enumerate(query.shares)}
    return Answer(ticks | {"compared": sum(control[0] + treated[0] for control, treated in arms)})


def strata(by: Sequence[Cut], schema: Schema, engine: Engine) -> list[tuple[Arm, Arm]]:
    """Return the control and the treated arm of every stratum of the public list, rows or no rows."""
    cells = {sql(factor): count for factor, count in (factors(by, schema) | {TREATMENT: 2}).items()}
    arms = engine.aggregate(cells, ["1", sql(OUTCOME), sql(OUTCOME * OUTCOME)]).reshape(-1, 2, 3).tolist()
    return [(tuple(control), tuple(treated)) for control, treated in arms]


def contrast(control: Arm, treated: Arm, cap: int) -> tuple[int, int, int, int, int]:
    """Return what one stratum adds to effect, size, squares, weight_square_sum and means, each rounded down."""
    (c, total_c, _), (t, total_t, _) = control, treated
    squares, means = _squares(control) + _squares(treated), (c > 0) + (t > 0)
    if c == 0 or t == 0:
        return 0, 0, squares, 0, means
    m = min(t, cap * c) + min(c, cap * t)
    difference = total_t * c - total_c * t  # of means, times c t
    weight_squares = StratumContrasts.weight_square_ticks * m * m * (c + t) // (c * t)
    return m * difference // (c * t), m, squares, weight_squares, means


def _squares(arm: Arm) -> int:
    """Return the sum of squares around the arm's mean, in ticks of G."""
    k, total, squares = arm
    return (k * squares - total * total) // (k * GRID) if k else 0
