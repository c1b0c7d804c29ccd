"""Contrasts between arms, stratum by stratum, in exact integers. Proof: docs/proofs/stratum_contrasts.md."""

from collections.abc import Sequence

from dpcausal.queries import GRID, Cut, StratumContrasts
from dpcausal.queries.cuts import bins
from dpcausal.queries.profiles import ticks_of
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Engine

Arm = tuple[int, int, int]
"""Of one arm of one stratum: the number of units, the sum of their outcomes, the sum of their squares; in ticks."""

SQUARE = "(CAST(outcome AS BIGINT) * outcome)"
"""One row's squared outcome; coerced columns are too narrow to hold it."""


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
    keys = [bin_expression(cut, schema) for cut in by]
    cells = dict(zip(keys, bins(by, schema), strict=True)) | {"treatment": 2}
    arms = engine.aggregate(cells, ["1", "outcome", SQUARE]).reshape(-1, 2, 3).tolist()
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


def bin_expression(cut: Cut, schema: Schema) -> str:
    """Return the bin of a row as an SQL expression."""
    names = [column.name for column in schema.covariates]
    place = names.index(cut.name)
    column = schema.covariates[place]
    if not isinstance(column, Real):
        return f"covariate_{place}"
    numbered = reversed(list(enumerate(cut.edges, start=1)))
    cases = " ".join(f"WHEN covariate_{place} >= {ticks_of(column, edge)} THEN {bin_}" for bin_, edge in numbered)
    return f"(CASE {cases} ELSE 0 END)"
