"""Sums of augmented scores, in exact integers. Proof: docs/proofs/augmented_scores.md."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcausal.guarantee import Guarantee
from dpcausal.queries import GRID, AugmentedScores
from dpcausal.queries.features import largest_weight
from dpcausal.schema import Schema
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers.weighted_arms import weight_table
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.features import EXPONENTS, PREDICTOR_TICKS, Features, lookup

Int64s = NDArray[np.int64]

_FACTOR_TICKS = 2**24
"""Ticks to 1 of the factors that turn weights and targets into shares of the limit."""


def augmented_scores(query: AugmentedScores, schema: Schema, engine: Engine, _: Guarantee) -> Answer:
    """The six sums. Every row's part is made of integers from that row alone."""
    features = Features(query.covariates, schema)

    def kernel(batch: Batch) -> Int64s:
        ticks = features.ticks(batch)
        means = [regression_mean(features, coefficients, ticks) for coefficients in (query.control, query.treated)]
        predictor = features.predictor(query.propensity, ticks)
        scores, targets = scored(query, predictor, means[0], means[1], batch["treatment"], batch["outcome"])
        return np.array([part.sum() for part in parts(scores, targets)])

    sums = engine.fold(("treatment", "outcome", *features.columns), kernel)
    return Answer({name: int(value) for name, value in zip(query.weights, sums, strict=True)})


def regression_mean(features: Features, coefficients: Sequence[float], ticks: Int64s) -> Int64s:
    """What a regression says about rows' outcomes, within their range."""
    return np.clip(features.predictor(coefficients, ticks) // (PREDICTOR_TICKS // GRID), -GRID, GRID)


def scored(  # noqa: PLR0913, PLR0917
    query: AugmentedScores,
    predictor: Int64s,
    control: Int64s,
    treated: Int64s,
    arms: Int64s,
    outcomes: Int64s,
) -> tuple[Int64s, Int64s]:
    """Rows' scores before the limit, in ticks of which GRID make the limit, and their targets."""
    largest = largest_weight(query.estimand, query.clip)
    weights = np.where(
        arms == 1,
        weight_table(query.estimand, query.clip, largest, treated=True)[lookup(-predictor)],
        weight_table(query.estimand, query.clip, largest, treated=False)[lookup(predictor)],
    )
    missed = np.where((arms == 1) & (query.estimand != "ATT"), outcomes - treated, outcomes - control)
    scores = (2 * arms - 1) * (weights * missed // GRID) * round(largest / query.limit * _FACTOR_TICKS) // _FACTOR_TICKS
    if query.estimand == "ATT":
        return scores, arms * GRID
    overlap = _overlap(query.clip)[lookup(predictor)] if query.estimand == "ATO" else np.full_like(arms, GRID)
    effects = (treated - control) * overlap // GRID
    factor = round(query.largest_target / query.limit * _FACTOR_TICKS)
    return scores + effects * factor // _FACTOR_TICKS, overlap


def _overlap(clip: float) -> Int64s:
    """The overlap e (1 - e) for every exponent, in ticks of which GRID make 1 / 4."""
    score = np.clip(1 / (1 + np.exp(-EXPONENTS)), clip, 1 - clip)
    return np.rint(4 * score * (1 - score) * GRID).astype(np.int64)


def parts(scores: Int64s, targets: Int64s) -> tuple[Int64s, ...]:
    """What each row adds to the six sums."""
    kept = np.clip(scores, -GRID, GRID)
    return (
        kept,
        targets,
        (GRID * GRID - kept * kept) // GRID,
        kept * targets // GRID,
        targets * targets // GRID,
        (kept != scores).astype(np.int64),
    )
