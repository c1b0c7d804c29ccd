"""A simulated experiment with three arms and several metrics."""

from typing import Any

import numpy as np


def metric_columns(n: int = 9_000) -> dict[str, Any]:
    """Return the columns of its table."""
    random = np.random.default_rng(4)
    arm, habit, views = random.integers(0, 3, n), random.gamma(2, 5, n), 1 + random.poisson(8, n)
    return {
        "arm": np.array(["old", "blue", "green"])[arm],
        "revenue": np.minimum(habit * random.gamma(4, 0.25, n) * (1 + 0.3 * (arm == 1)), 60),
        "before": np.minimum(habit * random.gamma(9, 1 / 9, n), 60),
        "bought": random.binomial(1, 0.2 + 0.1 * (arm == 2)),
        "clicks": random.binomial(views, 0.3).astype(float),
        "views": np.minimum(views, 40).astype(float),
        "seconds": np.minimum(random.gamma(3, 1, n) * (1 - 0.4 * (arm == 1)), 20),
    }
