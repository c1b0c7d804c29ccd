"""Sums of products of a unit's numbers, in exact integers. Proof: docs/proofs/regression_moments.md."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, RegressionMoments
from dpcausal.queries.features import design_names
from dpcausal.queries.regression_moments import CONSTANT, FINE, Moment
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, Engine, ExactInts, Ticks, adds_products
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.parsing import literal

_COARSE = (GRID // FINE).bit_length() - 1


@answers(
    RegressionMoments,
    kernel=lambda query, schema, engine: not adds_products(engine, len(design_names(query.covariates, schema))),
)
def answer(context: AnswerContext[RegressionMoments]) -> Answer:
    """Return all products in one pass, without and with the sign of the arm."""
    query, schema, engine = context.query, context.schema, context.engine
    features = Features(query.covariates, schema)
    expressions = features.design_expressions()
    sums = _added(engine, expressions) if adds_products(engine, len(expressions)) else _folded(engine, features)
    names = [at.name for at in query.sensitivity(schema, "record", "l1").coordinates]
    return Answer(dict(zip(names, chosen_sums(sums, query.moments(schema)), strict=True)))


def chosen_sums(sums: ExactInts, moments: Sequence[Moment]) -> list[int]:
    """Return the sums of an answer out of those of all products; a deficit is the count less the square's sum."""
    found = []
    for moment in moments:
        table = sums[int(moment.signed)]
        total = int(table[moment.first, moment.second])
        found.append(int(table[CONSTANT, CONSTANT]) - total if moment.deficit else total)
    return found


def _folded(engine: Engine, features: Features) -> ExactInts:
    """Return what `products` gives, by a kernel over batches."""

    def kernel(batch: Batch) -> Int64s:
        return products(batch["outcome"], features.design(batch), batch["treatment"])

    return engine.fold(("treatment", "outcome", *features.columns), kernel)


def _added(engine: Engine, design: Sequence[str]) -> ExactInts:
    """Return what `products` gives, as SQL sums by arm."""
    # The constant, FINE, comes first; it is multiplied in afterwards.
    factors = [None, *(_rounded(line) for line in ("outcome", *design))]
    pairs = list(combinations_with_replacement(range(len(factors)), 2))
    sums = [_product([each for each in (factors[first], factors[second]) if each]) for first, second in pairs]
    arms = engine.aggregate({"treatment": 2}, sums)
    tables = np.zeros((2, len(factors), len(factors)), dtype=object)
    for (first, second), by_arm in zip(pairs, arms.T, strict=True):
        constant = FINE ** (first, second).count(CONSTANT)
        tables[:, first, second] = tables[:, second, first] = by_arm * constant
    control, treated = tables
    return np.array([control + treated, treated - control])


def _rounded(line: str) -> Ticks:
    """Return a number of a row, rounded to FINE ticks."""
    half = 1 << _COARSE >> 1
    return Ticks(
        # Negative numbers are not shifted: engines may round them differently.
        f"((({line} + {GRID + half}) >> {_COARSE}) - {FINE})",
        f"FLOOR((CAST({line} AS DOUBLE) + {literal(half)}) * {literal(1 / (1 << _COARSE))})",
    )


def _product(factors: Sequence[Ticks]) -> str:
    """Return the product of at most two numbers of up to FINE ticks; of none, 1."""
    return Ticks(" * ".join(factors), " * ".join(each.floating for each in factors)) if factors else "1"


def products(outcomes: Int64s, design: Sequence[Int64s], arms: Int64s) -> Int64s:
    """Return sums over some rows of all products of two of their numbers, without and with the arm's sign.

    Numbers are rounded to FINE ticks first. Sums of their products are whole numbers below 2^53, which floating point
    adds up without error in any order.
    """
    numbers = np.empty((2 + len(design), len(outcomes)))
    numbers[0] = FINE
    for place, line in enumerate((outcomes, *design), start=1):
        numbers[place] = (line + (1 << _COARSE >> 1)) >> _COARSE
    treated = numbers.take(np.flatnonzero(arms), axis=1)
    whole, part = numbers @ numbers.T, treated @ treated.T
    return np.array([whole, 2 * part - whole]).astype(np.int64)
