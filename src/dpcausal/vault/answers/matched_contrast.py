"""Matched units as one weighted sum of outcomes. Proof: docs/proofs/matched_contrast.md."""

import math
from collections.abc import Callable

import numpy as np

from dpcausal.queries import GRID, MatchedContrast, NoisyMatchedContrast
from dpcausal.queries.matched_contrast import COEFFICIENT_TICKS
from dpcausal.release import PublicValue
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.answers.logistic import public_fit, score
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.matching import matched

_SCORE_TICKS = 2**40
_BLOCK = 4
"""About how many units are compared with each other to see how outcomes spread."""

_PUBLIC = "made of scores and arms that are public, or noisy already"


@answers(MatchedContrast, kernel=True)
def answer(context: AnswerContext[MatchedContrast]) -> Answer:
    """Return the contrast where all but the outcomes is public: score and matching are exact."""
    query, schema, engine = context.query, context.schema, context.engine
    features = Features(query.covariates, schema)
    fitted = public_fit(engine, features)

    def scores(batch: Batch) -> Int64s:
        return np.rint(_SCORE_TICKS * score(fitted, features.ticks(batch), features)).astype(np.int64)

    rows = scored(query, engine, features, scores)
    return contrast(query, rows["score"], rows["treatment"], rows["outcome"], context.guarantee.epsilon)


def scored(
    query: MatchedContrast | NoisyMatchedContrast,
    engine: Engine,
    features: Features,
    scores: Callable[[Batch], Int64s],
) -> Batch:
    """Return scores, arms and outcomes of all rows; covariates are seen batch by batch only."""

    def kernel(batch: Batch) -> Batch:
        return {"score": scores(batch), "treatment": batch["treatment"], "outcome": batch["outcome"]}

    return engine.collect(("treatment", "outcome", *features.columns), query.most_units, kernel)


def contrast(
    query: MatchedContrast | NoisyMatchedContrast, scores: Int64s, arms: Int64s, outcomes: Int64s, epsilon: float
) -> Answer:
    """Return the weighted sum, its standard error's part and public values, given scores and arms that are public."""
    caps, limits = _caps(query, scores, arms, epsilon)
    has, serves = matched(scores, arms, query.neighbours, caps)
    # Units alike in score and arm share their coefficients, so that the order of units does not matter.
    groups, group, sizes = np.unique(2 * scores + arms, return_inverse=True, return_counts=True)
    of_arm = groups & 1
    each = np.bincount(group, has + serves) / sizes
    largest = max(float(each.max(initial=0.0)), 1.0)
    coefficients = np.rint(each / largest * COEFFICIENT_TICKS).astype(np.int64) * (2 * of_arm - 1)
    total = max(int(has.sum()), 1)
    squares, freedom = _spread(of_arm, sizes, group, outcomes)
    public = {
        "largest": largest / total,
        "squared": float((sizes * (each / total) ** 2).sum()),
        "limit_0": limits[0],
        "limit_1": limits[1],
        "matched": int(has.sum()) / (query.neighbours * max(len(arms), 1)),
        "freedom": freedom,
    }
    return Answer(
        {"effect": int((coefficients[group] * outcomes).sum()), "squares": squares},
        public_values=[PublicValue(name, public[name], because=_PUBLIC) for name in query.public_values],
    )


def _caps(
    query: MatchedContrast | NoisyMatchedContrast, scores: Int64s, arms: Int64s, epsilon: float
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Return how often a control and a treated unit may serve, and the limits that this comes from.

    The limit of the smaller arm minimises the error model 2 k² / epsilon² + (error n₁ M / k)², n₁ the larger arm's size
    and M how often, in units of `neighbours`, a unit would serve at most without a limit; the larger arm's limit is in
    proportion to the sizes. Limits are raised where all could not find matches otherwise.
    """
    n = len(arms)
    sizes = n - int(arms.sum()), int(arms.sum())
    few, many = max(min(sizes), 1), max(*sizes, 1)
    if query.limit is None:
        _, serves = matched(scores, arms, query.neighbours, (n + 1, n + 1))
        most = max(int(serves.max(initial=0)), 1) / query.neighbours
        limit = min(max(round(math.sqrt(epsilon * query.error * many * most / math.sqrt(2))), 1), max(most, 1.0))
        limits = max(limit, many / few), max(1.0, round(limit * few / many))
    else:
        limits = float(query.limit), float(query.limit)
    smaller = 1 if sizes[1] <= sizes[0] else 0
    ordered = limits if smaller == 0 else limits[::-1]
    caps = tuple(max(math.ceil(limit * query.neighbours), 1) for limit in ordered)
    return (caps[0], caps[1]), (ordered[0], ordered[1])


def _spread(arms: Int64s, sizes: Int64s, group: Int64s, outcomes: Int64s) -> tuple[int, int]:
    """Return the sum of squares around the means of small blocks of units of one arm with scores next to each other.

    Blocks are made of whole groups, in order of score, and hold about `_BLOCK` units, more where many share a score.

    Returns:
        The sum of squares in ticks of GRID, and how many independent differences it is made of.
    """
    block = np.zeros(len(sizes), dtype=np.int64)
    for arm in (0, 1):
        of_arm = np.flatnonzero(arms == arm)
        before = np.cumsum(sizes[of_arm]) - sizes[of_arm]
        block[of_arm] = 2 * (before // _BLOCK) + arm
    _, members, counts = np.unique(block[group], return_inverse=True, return_counts=True)
    totals, squares = (_exact_sums(members, values, len(counts)) for values in (outcomes, outcomes * outcomes))
    spread = sum(
        (k * square - total * total) // (k * GRID)
        for k, total, square in zip(counts.tolist(), totals, squares, strict=True)
    )
    return spread, int((counts - 1).sum())


def _exact_sums(members: Int64s, values: Int64s, size: int) -> list[int]:
    """Return sums of integers below 2^41 in size, in two halves that floating point adds up exactly."""
    high, low = (np.bincount(members, half, size) for half in (values >> 20, values & (GRID - 1)))
    return [(int(upper) << 20) + int(lower) for upper, lower in zip(high, low, strict=True)]
