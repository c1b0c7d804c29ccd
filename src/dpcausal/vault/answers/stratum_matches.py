"""Exact matching within strata, and a smooth bound on its moves. Proof: docs/proofs/stratum_matches.md."""

import math

import numpy as np

from dpcausal.queries import GRID, StratumMatches
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.utils.arrays import Array, Int64s
from dpcausal.vault.answers.stratum_contrasts import contrast, strata
from dpcausal.vault.context import Answer, AnswerContext, answers

_MARGIN = 1.001
"""Floating point moves the smooth bound by less than this allows for."""

_AT_ONCE = 2**22


@answers(StratumMatches)
def answer(context: AnswerContext[StratumMatches]) -> Answer:
    """Return the sum of differences over units, the bound on its moves, and what the standard error is made of."""
    query, schema, engine = context.query, context.schema, context.engine
    arms = strata(query.by, schema, engine)
    n = sum(control[0] + treated[0] for control, treated in arms)
    effect = sum(contrast(control, treated, n)[0] for control, treated in arms)
    capped = [contrast(control, treated, query.weight_cap) for control, treated in arms]
    ticks = {"squares": sum(each[2] for each in capped), "weight_square_sum": sum(each[3] for each in capped)}
    if query.bound == "global":
        return Answer(ticks | {"effect": query.effect_ticks * effect // (n + 1)})
    epsilon = context.guarantee.epsilon * float(query.shares["effect"])
    beta = smoothness(epsilon, context.guarantee.delta)
    sizes = np.array([(treated[0], control[0]) for control, treated in arms])
    bound = smooth_bound(sizes, n, beta / _MARGIN)
    log_sensitivity = math.floor(math.log(bound) / beta * query.log_ticks)
    return Answer(
        ticks | {"effect": effect, "log_sensitivity": log_sensitivity},
        scales={"effect": 2 * bound / epsilon * (1 + 1e-9)},
    )


def smooth_bound(sizes: Int64s, n: int, beta: float) -> float:
    """Return the largest, over distances k, of exp(-beta k) times the bound on moves k replacements away.

    Args:
        sizes: The number of treated and of control units in each stratum of the public list, empty ones too.

    Returns:
        The bound in ticks of the outcome.
    """
    t, c = np.unique(sizes, axis=0).T[:, :, None]
    # Beyond this distance even the largest bound there is weighs less than the smallest at distance 0.
    farthest = min(n, math.ceil(math.log(n + 1) / beta))
    best = 0.0
    for start in range(0, farthest + 1, chunk := max(_AT_ONCE // len(t), 1)):
        k = np.arange(start, min(start + chunk, farthest + 1))
        best = max(best, float((np.exp(-beta * k) * moves(t, c, k, n)).max()))
    return best


def moves(t: Int64s, c: Int64s, k: Int64s, n: int) -> Array:
    """Return how far one more replacement can move the sum, in ticks, once k replacements were made anywhere."""
    more_t, more_c = np.minimum(t + k, n), np.minimum(c + k, n)
    fewer_t, fewer_c = np.maximum(t - k, 0), np.maximum(c - k, 0)
    leaving = np.maximum(more_c / np.maximum(fewer_t, 1), more_t / np.maximum(fewer_c, 1)).max(axis=0)
    joining = np.maximum(more_c / (fewer_t + 1), more_t / (fewer_c + 1)).max(axis=0)
    units: Array = np.minimum(2 + leaving + joining, n + 1)
    return 2 * GRID * units + 2
