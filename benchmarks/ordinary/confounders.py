"""Tables of many confounders, written after the limit of doubly robust scores was chosen: none was tuned on them."""

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.ordinary.table import Draw, Table, Values, assigned, expit, flag


def _correlated(random: Generator, n: int) -> Draw:
    shared = random.normal(0, 1, n)
    z = np.sqrt(0.3) * shared[:, None] + np.sqrt(0.7) * random.normal(0, 1, (n, 20))
    score = -0.8 + z[:, :8] @ np.array([0.25, -0.2, 0.15, 0.2, -0.15, 0.1, 0.2, 0.1])
    level = 42 + z[:, 2:14] @ np.array([2, 1, -1.5, 1, 2, 1, 1, -1, 1, 0.5, 1.5, 1])
    uniform, y = random.random(n), level + 9 * random.standard_t(6, n)
    outcomes = np.clip(y, 0, 100), np.clip(y + 2.5 + 0.5 * z[:, 0], 0, 100)
    columns = {f"m{place}": np.clip(50 + 10 * z[:, place], 0, 120) for place in range(20)}
    return assigned(random, columns, expit(score), outcomes, uniform=uniform)


def _third_binary(random: Generator, n: int) -> Draw:
    u = random.normal(0, 1, n)
    numbers = {
        "age": np.clip(random.normal(58, 15, n) + 3 * u, 18, 100),
        "bmi": np.clip(20 + random.gamma(3, 2.5, n), 12, 60),
        "sbp": np.clip(random.normal(135, 18, n) + 4 * u, 70, 230),
        "egfr": np.clip(random.normal(75, 20, n) - 5 * u, 5, 140),
        "ldl": np.clip(random.normal(3.2, 0.9, n), 0.5, 9),
        "drugs": np.minimum(random.poisson(np.exp(1 + 0.3 * u)), 25).astype(float),
    }
    flags = {
        name: flag(random.random(n) < expit(level + slope * u))
        for name, level, slope in (("female", 0.1, 0.0), ("diabetes", -1.5, 0.5), ("stroke", -2.6, 0.4))
    }
    a, s, g, d = (
        (numbers[name] - middle) / sd
        for name, middle, sd in (("age", 58, 15), ("sbp", 135, 18), ("egfr", 75, 20), ("drugs", 2.8, 1.9))
    )
    score = -1 + 0.3 * a + 0.25 * s + 0.2 * d + 0.5 * flags["stroke"] + 0.3 * flags["diabetes"] - 0.2 * flags["female"]
    risk = -2.1 + 0.5 * a - 0.25 * g + 0.2 * d + 0.6 * flags["stroke"] + 0.35 * flags["diabetes"]
    p0, p1 = expit(risk), expit(risk - 0.35)
    uniform, event = random.random(n), random.random(n)
    outcomes = flag(event < p0), flag(event < p1)
    return assigned(random, numbers | flags, expit(score), outcomes, uniform=uniform, effect=p1 - p0)


def _features(draw: Draw) -> Values:
    return np.column_stack(list(draw.complete.values()))


CONFOUNDERS = (
    Table(
        "MANY",
        "twenty correlated confounders, 32 % treated, an outcome of 0 to 100 with heavy tails",
        dpc.Real("y", 0, 100),
        tuple(dpc.Real(f"m{place}", 0, 120) for place in range(20)),
        _correlated,
        _features,
        treated_share=0.3,
        outcome_mean=43,
        outcome_sd=12,
    ),
    Table(
        "MIXED",
        "nine correlated confounders, a third of them binary, 29 % treated, 14 % events",
        dpc.Binary("y"),
        (
            *(dpc.Real("age", 18, 100), dpc.Real("bmi", 12, 60), dpc.Real("sbp", 70, 230), dpc.Real("egfr", 5, 140)),
            *(dpc.Real("ldl", 0.5, 9), dpc.Real("drugs", 0, 25)),
            *map(dpc.Binary, ("female", "diabetes", "stroke")),
        ),
        _third_binary,
        _features,
        treated_share=0.3,
        outcome_mean=0.14,
    ),
)
