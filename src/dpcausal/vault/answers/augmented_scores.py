"""Sums of augmented scores, by a kernel that is quicker than one made of their description, to the same integers."""

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import GRID, AugmentedScores
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.residuals import regression_mean, scored


@answers(AugmentedScores, kernel=True)
def answer(context: AnswerContext[AugmentedScores]) -> Answer:
    """Return the six sums. Every row's part is made of integers from that row alone."""
    query, schema, engine = context.query, context.schema, context.engine
    features = Features(query.covariates, schema)

    def kernel(batch: Batch) -> Int64s:
        ticks = features.ticks(batch)
        means = [regression_mean(features, coefficients, ticks) for coefficients in (query.control, query.treated)]
        predictor = features.predictor(query.propensity, ticks)
        scores, targets = scored(query, predictor, means[0], means[1], batch["treatment"], batch["outcome"])
        return np.array([part.sum() for part in parts(scores, targets)])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    return Answer({name: int(value) for name, value in zip(query.weights, sums, strict=True)})


def parts(scores: Int64s, targets: Int64s) -> tuple[Int64s, ...]:
    """Return what each row adds to the six sums."""
    kept = np.clip(scores, -GRID, GRID)
    return (
        kept,
        targets,
        (GRID * GRID - kept * kept) // GRID,
        kept * targets // GRID,
        targets * targets // GRID,
        (kept != scores).astype(np.int64),
    )
