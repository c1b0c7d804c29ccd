"""Numbers of units in each arm of each bin. Proof: docs/proofs/arm_counts.md."""

import numpy as np

from dpcausal.arrays import Int64s
from dpcausal.queries import ScoreCounts, StratumCounts
from dpcausal.queries.scores import EXPONENTS
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.features import Features, lookup


@answers(StratumCounts)
def answer_strata(context: AnswerContext[StratumCounts]) -> Answer:
    """Return both arms' sizes in each stratum of the public list, rows or no rows."""
    query, schema = context.query, context.schema
    sizes = strata(query.cells.by, schema, context.engine)
    return Answer(
        {
            f"size_{arm} of {name}": size
            for name, arms in zip(query.bins(schema), sizes, strict=True)
            for arm, (size, *_) in enumerate(arms)
        }
    )


@answers(ScoreCounts, kernel=True)
def answer_scores(context: AnswerContext[ScoreCounts]) -> Answer:
    """Return both arms' sizes in each bin of the score. A row's bin is looked up from integers of that row alone."""
    query = context.query
    features, names = Features(query.covariates, context.schema), query.bins()
    table = np.searchsorted(query.edges, 1 / (1 + np.exp(-EXPONENTS)), side="right")

    def kernel(batch: Batch) -> Int64s:
        bins = table[lookup(features.predictor(query.coefficients, features.ticks(batch)))]
        return np.bincount(2 * bins + batch["treatment"], minlength=2 * len(names))

    sizes = context.engine.fold(("treatment", *features.columns), kernel).reshape(-1, 2)
    return Answer(
        {f"size_{arm} of {name}": int(sizes[place, arm]) for place, name in enumerate(names) for arm in (0, 1)}
    )
