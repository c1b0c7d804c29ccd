"""How many units have each covariate in each bin, or no value. Proof: docs/proofs/covariate_counts.md."""

from dpcausal.columns import indicator_of
from dpcausal.queries import GRID, CovariateCounts
from dpcausal.queries.covariate_counts import COARSE, FINE
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.vault.context import Answer, AnswerContext, answers

_SHIFT = (2 * GRID // FINE).bit_length() - 1


@answers(CovariateCounts)
def answer(context: AnswerContext[CovariateCounts]) -> Answer:
    """Return every count of the public list, rows or no rows: one pass for each covariate."""
    counts: list[int] = []
    for column in context.query.reads(context.schema):
        bins = {bin_expression(column, context.schema): FINE + 1}  # type: ignore[arg-type]
        *fine, missing = (int(each) for each in context.engine.aggregate(bins, ["1"], whole=True)[:, 0])
        wide = FINE // COARSE
        counts += [sum(fine[start : start + wide]) for start in range(0, FINE, wide)]
        counts += [*fine, missing]
    return Answer(dict(zip(context.query.own_names, counts, strict=True)))


def bin_expression(column: Real, schema: Schema) -> str:
    """Return the fine bin of a row's value as an SQL expression, and the place after the last for one without."""
    names = [each.name for each in schema.covariates]
    value = f"covariate_{names.index(column.name)}"
    # The upper bound belongs to the last bin.
    bin_ = f"LEAST(({value} + {GRID}) >> {_SHIFT}, {FINE - 1})"
    indicator = indicator_of(column).name
    if indicator not in names:  # a total over a unit's records, which is never missing
        return bin_
    return f"(CASE WHEN covariate_{names.index(indicator)} = 1 THEN {FINE} ELSE {bin_} END)"
