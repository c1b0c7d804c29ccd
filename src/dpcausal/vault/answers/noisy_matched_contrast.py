"""Matched units where scores and arms are noisy. Proof: docs/proofs/noisy_matched_contrast.md."""

import numpy as np

from dpcausal.guarantee import exact
from dpcausal.queries import GRID, NoisyMatchedContrast
from dpcausal.queries.calibration import float_above
from dpcausal.queries.scores import EXPONENTS, looked_up, predictor
from dpcausal.sums.evaluation import evaluate
from dpcausal.vault.answers.matched_contrast import contrast, scored
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.numerics.features import Features


@answers(NoisyMatchedContrast, kernel=True)
def answer(context: AnswerContext[NoisyMatchedContrast]) -> Answer:
    """Return the contrast of units that are matched by scores and arms made noisy row by row, and by nothing else."""
    query, sampler = context.query, context.sampler
    features = Features(query.covariates, context.schema)
    table = np.rint(GRID / (1 + np.exp(-EXPONENTS))).astype(np.int64)
    score = looked_up(table, predictor(query.coefficients, query.covariates, context.schema))
    rows = scored(query, context.engine, features, lambda batch: evaluate([score], batch)[0])
    scoring, arm, outcome = (exact(context.guarantee.epsilon) * part for part in query.parts())
    noisy_scores = np.array(sampler.laplace(rows["score"].tolist(), float_above(GRID / scoring)), dtype=np.int64)
    arms = np.array(sampler.randomised_response(rows["treatment"].tolist(), arm), dtype=np.int64)
    return contrast(query, np.clip(noisy_scores, -(2**61), 2**61), arms, rows["outcome"], float(outcome))
