"""Sums of products of a unit's numbers in every arm. Proof: docs/proofs/arm_regression_moments.md."""

from dpcausal.queries import GRID, ArmRegressionMoments
from dpcausal.queries.features import covariates_named
from dpcausal.queries.regression_moments import CONSTANT, FINE
from dpcausal.real import Real
from dpcausal.schema import Schema
from dpcausal.vault.context import Answer, AnswerContext, answers

_SHIFT = (GRID // FINE).bit_length() - 1


@answers(ArmRegressionMoments)
def answer(context: AnswerContext[ArmRegressionMoments]) -> Answer:
    """Return the sums of every arm in one pass; rows of no declared arm are in none."""
    query, schema = context.query, context.schema
    arms, products = len(schema.treatment.arms), query.products(schema)
    numbers = _numbers(query, schema)
    sums = ["1"]
    sums += [
        numbers[second] if first == CONSTANT else f"({numbers[first]} * {numbers[second]})"
        for first, second in products[1:]
    ]
    found = context.engine.aggregate({"arm": arms + 1}, sums, whole=True)[:arms]
    ticks = {}
    for arm, totals in enumerate(found):
        size = int(totals[0])
        for name, (first, second), total in zip(query.names(schema, arm), products, totals, strict=True):
            if first == second == CONSTANT:
                ticks[name] = size
            elif first == CONSTANT:
                ticks[name] = FINE * int(total)
            else:
                ticks[name] = FINE**2 * size - int(total) if first == second else int(total)
    return Answer(ticks)


def _numbers(query: ArmRegressionMoments, schema: Schema) -> list[str]:
    """Return one row's numbers as SQL: a constant, its outcome and its features, between -FINE and FINE."""
    names = [column.name for column in schema.covariates]
    numbers = ["1", _rounded("outcome")]
    for column in covariates_named(query.covariates, schema):
        coerced = f"covariate_{names.index(column.name)}"
        if isinstance(column, Real):
            numbers.append(_rounded(coerced))
        else:
            places = range(1, len(column.values))
            numbers += [f"(CASE WHEN {coerced} = {place} THEN {FINE} ELSE {-FINE} END)" for place in places]
    return numbers


def _rounded(coerced: str) -> str:
    """Return ticks of which GRID make 1 as ticks of which FINE do. Engines may shift negative numbers differently."""
    return f"(((CAST({coerced} AS BIGINT) + {GRID + (1 << _SHIFT >> 1)}) >> {_SHIFT}) - {FINE})"
