"""Theorem 3: the error of a sum of potential outcomes, divided into noise and matching, beside its bound.

The paper bounds E(Ŝ - S)² by 2 ((k + 1) B / epsilon)² + (R B / N)², where S is the sum without limits and R the number
of neighbours that a limit replaces, R = sum of max(0, u - k) over the units that serve, u being how often one would
serve without a limit. The limit is k N servings in the algorithm and k in that formula; R is computed both ways.
"""

from typing import Any

import numpy as np

from benchmarks.papers.private.grid import USUAL, Setting
from benchmarks.papers.private.printed import Units, capacity, limits, matches

DRAWS = 4000


def decomposition(units: Units, epsilon: float, setting: Setting, seed: int, neighbours: int = USUAL) -> list[Any]:
    """Return the parts of the error of both sums: treated outcomes (arm 1) and control outcomes (arm 0)."""
    score, arms, outcomes, n = units.score, units.arms, units.outcomes, len(units.arms)
    limit = limits(score, arms, neighbours, setting, epsilon, level="label")
    generator = np.random.default_rng(seed)
    found = []
    for arm in (0, 1):
        free = matches(score, arms, arm, neighbours, n + 1)
        cap = capacity(limit[arm], neighbours)
        held = matches(score, arms, arm, neighbours, cap)
        known = held.counterfactuals(outcomes)
        own = outcomes[held.servers]
        exact = own.sum() + free.counterfactuals(outcomes).sum()
        # A unit without a match is left out of the mean, so it counts as the mean of those that have one.
        limited = np.concatenate([own, known]).mean() * n
        scale = (limit[arm] + 1) * units.spread / epsilon
        simulated = float(((limited + generator.laplace(0, scale, DRAWS) - exact) ** 2).mean())
        replaced = int(np.maximum(free.serves - cap, 0).sum())
        printed = int(np.maximum(free.serves - limit[arm], 0).sum())
        noise, matching = 2 * scale**2, (limited - exact) ** 2
        found.append(
            {
                "arm": arm,
                "limit": float(limit[arm]),
                "unmatched": len(held.seekers) - len(known),
                "replaced": replaced,
                "replaced_as_printed": printed,
                "moved": int((np.sort(free.chosen, axis=1) != np.sort(held.chosen, axis=1)).sum()),
                "noise": _root(noise, n),
                "matching": _root(matching, n),
                "simulated": _root(simulated, n),
                "bound": _root(noise + (replaced * units.spread / neighbours) ** 2, n),
                "bound_as_printed": _root(noise + (printed * units.spread / neighbours) ** 2, n),
                "heaviest": round(float(held.weights().max()), 4),
            }
        )
    return found


def _root(square: float, n: int) -> float:
    """Return an error of the sum as an error of the mean."""
    return float(f"{square**0.5 / n:.4g}")
