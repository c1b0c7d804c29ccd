"""Webb, Mukherjee, Mustafi, Slavković and Vilhuber 2026: a synthetic table, analysed as if it were the true one.

"Assessing utility of differential privacy for RCTs" (arXiv 2309.14581v2). Their package DPrct and the code that
repeats the paper's tables (`dp-for-rct-paper-replication`) were read; of the text, the abstract. All three mechanisms
write a table of as many units, fit a linear regression of outcomes on arm and covariates to it, and give the
coefficient of the arm with the usual interval (errors robust to heteroscedasticity, HC1).

- `histogram` (MV Histogram): counts of all cells of arm, covariates and outcome get Laplace noise for 2, negative ones
  are put to 0, and units are drawn in proportion. Replacing a unit moves two counts by 1. The rest looks at noisy
  counts alone, so it is private. The interval leaves the noise out.
- `hybrid` (Hybrid): a histogram of covariates alone, arms drawn anew, and outcomes from the regression on the true
  table. Not private, as the package says: the regression has no noise.
- `generated` (GenModel): a histogram of covariates for half of epsilon, and 5,000 tables of outcomes from the
  regression on the true table. The mean of each coefficient over these tables is released by Karwa and Vadhan (2017),
  as if the tables were the units. Not private: one unit moves all 5,000.

Ours to choose: two bins for each covariate at their middles, and four levels of the outcome from bound to bound, which
did best on tables like the leaderboard's. The authors' code has n^(2/3) bins for each. With ten covariates and 5,000
units that makes more than 10²⁷ cells; noise puts 1 / epsilon units into an empty cell on average, so that
hardly a unit is drawn from a cell that is not noise. Bounds are public here; the package can also take them from the
table. Where all fits of a coefficient are in one bin, the package takes the first of all bins; here it is that bin.
"""

import math

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.study import NORMAL, Answer, Floats, Int64s, Study

BINS = 2
"""Bins of each covariate."""
LEVELS = 4
"""Levels of the outcome; one with two values has them at its bounds."""
SENSITIVITY = 2.0
"""What replacing one unit moves all counts by, together."""
COVARIATE_SHARE, VARIANCE_SHARE, ARM_SHARE = 0.5, 0.05, 0.15
"""Of epsilon for covariates, and of the rest for the residual variance and for the arm's coefficient."""
TABLES = 5_000
LARGEST = 50.0
"""The bound of every coefficient."""
OUTSIDE = 0.05 / 3
"""How often the range of a coefficient may leave out one of its values."""


def binned(features: Floats) -> Int64s:
    """Return the cell of covariates that each unit is in."""
    bins = np.minimum(((features + 1) / 2 * BINS).astype(np.int64), BINS - 1)
    return bins @ BINS ** np.arange(features.shape[1])


def middles(cells: Int64s, dimensions: int) -> Floats:
    """Return the middle of each cell."""
    bins = cells[:, None] // BINS ** np.arange(dimensions) % BINS
    return (2 * bins + 1) / BINS - 1


def levels(study: Study) -> Int64s:
    """Return the level of each unit's outcome."""
    return np.rint((study.outcomes - study.low) / study.width * (LEVELS - 1)).astype(np.int64)


def drawn(cells: Int64s, size: int, epsilon: float, generator: Generator) -> Int64s:
    """Draw as many units from the noisy histogram of cells as there are."""
    counts = np.bincount(cells, minlength=size) + noise.numbers(size, SENSITIVITY, epsilon, 0.0, generator)
    upper = np.cumsum(np.maximum(counts, 0))
    places = np.searchsorted(upper, generator.uniform(0, upper[-1], len(cells)), side="right")
    return np.minimum(places, size - 1)


def regressed(arms: Int64s, features: Floats, outcomes: Floats) -> Answer:
    """Return the coefficient of the arm with its interval (HC1)."""
    design = np.column_stack([np.ones(len(arms)), arms, features])
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ design.T @ outcomes
    scores = design * (outcomes - design @ found)[:, None]
    spread = inverse @ (scores.T @ scores) @ inverse * len(arms) / max(len(arms) - len(found), 1)
    half = NORMAL * math.sqrt(spread[1, 1])
    return Answer(float(found[1]), float(found[1]) - half, float(found[1]) + half)


def histogram(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:  # noqa: ARG001 (pure)
    """Draw arm, covariates and outcome together."""
    dimensions = study.features.shape[1]
    cells = (binned(study.features) * 2 + study.arms) * LEVELS + levels(study)
    found = drawn(cells, BINS**dimensions * 2 * LEVELS, epsilon, generator)
    outcomes = study.low + found % LEVELS * study.width / (LEVELS - 1)
    return regressed(found // LEVELS % 2, middles(found // (2 * LEVELS), dimensions), outcomes)


def _covariates(study: Study, epsilon: float, generator: Generator) -> tuple[Int64s, Floats]:
    """Draw covariates from their histogram, and arms, half of the units each, anew."""
    dimensions = study.features.shape[1]
    cells = drawn(binned(study.features), BINS**dimensions, epsilon, generator)
    return generator.permutation(np.arange(study.n) % 2), middles(cells, dimensions)


def _true_regression(study: Study) -> tuple[Floats, float]:
    """Return coefficients and residual variance on the true table, without noise."""
    design = np.column_stack([np.ones(study.n), study.arms, study.features])
    found = np.linalg.pinv(design.T @ design) @ design.T @ study.outcomes
    return found, float((study.outcomes - design @ found).var())


def hybrid(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:  # noqa: ARG001 (pure)
    """NOT PRIVATE: outcomes from the regression on the true table."""
    arms, features = _covariates(study, epsilon, generator)
    found, variance = _true_regression(study)
    design = np.column_stack([np.ones(study.n), arms, features])
    return regressed(arms, features, design @ found + generator.normal(0, math.sqrt(variance), study.n))


def generated(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:  # noqa: ARG001 (pure)
    """NOT PRIVATE: noise for one of 5,000 tables, all of them drawn from the regression on the true one."""
    arms, features = _covariates(study, COVARIATE_SHARE * epsilon, generator)
    found, variance = _true_regression(study)
    design = np.column_stack([np.ones(study.n), arms, features])
    spread = variance * np.linalg.pinv(design.T @ design)
    fits = generator.multivariate_normal(found, spread, TABLES, check_valid="ignore", method="eigh")
    rest = (1 - COVARIATE_SHARE) * epsilon
    shares = np.full(len(found), (1 - VARIANCE_SHARE - ARM_SHARE) / (len(found) - 1))
    shares[1] = ARM_SHARE
    released = [mean_of(fits[:, place], rest * share, generator) for place, share in enumerate(shares)]
    residuals = generator.normal(0, math.sqrt(variance), study.n)
    sd = sd_of(residuals, rest * VARIANCE_SHARE * TABLES, generator)  # the package stacks those of all tables
    return regressed(arms, features, design @ np.array(released) + generator.normal(0, sd, study.n))


def sd_of(values: Floats, epsilon: float, generator: Generator) -> float:
    """Return the standard deviation to within a power of two, from above (Karwa and Vadhan's Algorithm 2)."""
    half = len(values) // 2
    gaps = np.maximum(np.abs(values[:half] - values[half : 2 * half]), 2.0**-17)
    powers = np.clip(np.ceil(np.log2(gaps)), -17, 17).astype(int)
    counts = np.bincount(powers + 17, minlength=35) + generator.laplace(0, SENSITIVITY / epsilon, 35)
    return float(2.0 ** (int(counts.argmax()) - 17 + 2))


def mean_of(values: Floats, epsilon: float, generator: Generator) -> float:
    """Return the mean with noise, values clipped to a range that is found with noise (their Algorithms 1 and 4)."""
    each = epsilon / 3
    sd = sd_of(values, each, generator)
    bins = math.ceil(LARGEST / sd)
    places = np.clip(np.rint(values / sd), -bins, bins).astype(int) + bins
    counts = np.bincount(places, minlength=2 * bins + 1) + generator.laplace(0, SENSITIVITY / each, 2 * bins + 1)
    middle, reach = sd * (int(counts.argmax()) - bins), 4 * sd * math.sqrt(math.log(len(values) / OUTSIDE))
    clipped = np.clip(values, middle - reach, middle + reach)
    return float(clipped.mean() + generator.laplace(0, 2 * reach / (each * len(values))))
