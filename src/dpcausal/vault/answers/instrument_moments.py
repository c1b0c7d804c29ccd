"""Sums of products with the treatment received, in exact integers. Proof: docs/proofs/instrument_moments.md."""

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, InstrumentMoments
from dpcausal.vault.answers.regression_moments import chosen_sums, products
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features


@answers(InstrumentMoments, kernel=True)
def answer(context: AnswerContext[InstrumentMoments]) -> Answer:
    """Return all products in one pass, without and with the sign of the arm."""
    query, schema, engine = context.query, context.schema, context.engine
    features, received = Features(query.covariates, schema), f"covariate_{query.place(schema)}"

    def kernel(batch: Batch) -> Int64s:
        sign = batch[received] * (2 * GRID) - GRID
        return products(batch["outcome"], [sign, *features.design(batch)], batch["treatment"])

    sums = engine.fold(("treatment", "outcome", received, *features.columns), kernel)
    names = [at.name for at in query.sensitivity(schema, "record", "l1").coordinates]
    return Answer(dict(zip(names, chosen_sums(sums, query.moments(schema)), strict=True)))
