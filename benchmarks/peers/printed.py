"""Two older papers as they were printed, which does not protect, and the first of them put right.

Lee, Gresele, Park and Muandet 2019, "Privacy-preserving causal inference via inverse probability weighting". One half
of the units gives a logistic score with noise on its coefficients, the other half an inverse-weighted contrast with
noise. Both halves get all of epsilon and delta, since no unit is in both. `weighting_printed` has the paper's penalty
of 0.1, the older formula for Gaussian noise and the printed bound 2 C / (CLIP n) for outcomes of at most C in size. It
is not private, since rows are divided by the largest length in the table, as in the paper's experiments; one unit can
set that. Scores are clipped, which the printed bound takes for granted and the printed algorithm leaves out. A
constant is among the covariates, without which scores would be centred at one half. `weighting_corrected` divides by a
public length, centres outcomes, so that a contrast moves by at most B / (CLIP n), and takes a penalty that suits it
better. It is private.

Yuan et al. 2025, "PrivATE: Differentially private average treatment effect estimation for observational data", sample
level, Algorithms 1 to 4. Not private: ranges of covariates and outcome come from the table, and a unit that serves as
a match where others have run out of capacity counts for more than its bound says. Penalty and the treatment of units
without any match are not stated; here 0.01, and such units are left out of the mean.
"""

import math

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.regression import clipped, fitted, logistic, output_perturbed, sigmoid, unit_rows
from benchmarks.peers.study import CLIP, Answer, Floats, Int64s, Study

WEIGHTING_PENALTY = 0.1
"""On the mean loss, as printed."""
MATCHING_PENALTY = 0.01
"""On the mean loss; the paper does not say."""
NEIGHBOURS = 5
WEIGHTS_SHARE, SCORES_SHARE, ARMS_SHARE, SUMS_SHARE = 0.05, 0.05, 0.7, 0.2
LIMIT_FACTOR = 0.001
"""The paper's error coefficient h."""


def halves(n: int, generator: Generator) -> tuple[Int64s, Int64s]:
    """Units of the first and of the second half, drawn without looking at them."""
    order = generator.permutation(n)
    return order[: n // 2], order[n // 2 :]


def contrast(arms: Int64s, outcomes: Floats, predictors: Floats) -> float:
    """Return the inverse-weighted contrast."""
    scores = clipped(predictors)
    return float((outcomes * np.where(arms == 1, 1 / scores, -1 / (1 - scores))).mean())


def contrast_sensitivity(width: float, units: int) -> float:
    """Return the most that replacing one unit moves the contrast of centred outcomes: two terms of B / (2 CLIP)."""
    return width / (CLIP * units)


def weighting_printed(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """NOT PRIVATE: rows divided by the largest length in the table."""
    if delta <= 0:
        raise ValueError("Gaussian noise needs a delta above 0")
    first, second = halves(study.n, generator)
    rows = study.design / np.linalg.norm(study.design, axis=1).max()
    size = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    exact = fitted(rows[first], logistic(study.arms[first]), WEIGHTING_PENALTY * len(first))
    coefficients = exact + generator.normal(0, size * 2 / (WEIGHTING_PENALTY * len(first)), rows.shape[1])
    plain = contrast(study.arms[second], study.outcomes[second], rows[second] @ coefficients)
    bound = 2 * max(abs(study.low), abs(study.high)) / (CLIP * len(second))
    return Answer(plain + generator.normal(0, size * bound))


def weighting_corrected(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """Return the same with public lengths, centred outcomes and a better penalty."""
    first, second = halves(study.n, generator)
    rows = unit_rows(study)
    coefficients = output_perturbed(rows[first], study.arms[first], epsilon, delta, generator)
    plain = contrast(study.arms[second], study.centred[second], rows[second] @ coefficients)
    return Answer(plain + noise.number(contrast_sensitivity(study.width, len(second)), epsilon, delta, generator))


def matching_printed(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:  # noqa: ARG001 (pure)
    """NOT PRIVATE: ranges from the table, and shares of outcomes above their bound."""
    scores = _noisy_scores(study, epsilon, generator)
    stays = generator.random(study.n) < sigmoid(np.array([ARMS_SHARE * epsilon]))
    arms = np.where(stays, study.arms, 1 - study.arms)
    sides = [np.flatnonzero(arms == arm) for arm in (0, 1)]
    if min(len(side) for side in sides) == 0:
        return Answer(0.0)
    limits = _limits(scores, sides, SUMS_SHARE * epsilon)
    spread = float(np.ptp(study.outcomes))
    means = []
    for arm in (0, 1):
        servers, seekers = sides[arm], sides[1 - arm]
        matches = _matches(scores[seekers], scores[servers], study.outcomes[servers], limits[arm] * NEIGHBOURS)
        known = np.concatenate([study.outcomes[servers], matches[~np.isnan(matches)]])
        drawn = generator.laplace(0, (limits[arm] + 1) * spread / (SUMS_SHARE * epsilon))
        means.append(float(known.mean()) + drawn / study.n)
    return Answer(means[1] - means[0])


def _noisy_scores(study: Study, epsilon: float, generator: Generator) -> Floats:
    least, most = study.features.min(axis=0), study.features.max(axis=0)
    scaled = (study.features - least) / np.maximum(most - least, 1e-12)
    rows = np.column_stack([np.ones(study.n), scaled])
    exact = fitted(rows, logistic(study.arms), MATCHING_PENALTY * study.n)
    bound = 2 * rows.shape[1] / (MATCHING_PENALTY * study.n)
    coefficients = exact + generator.laplace(0, bound / (WEIGHTS_SHARE * epsilon), rows.shape[1])
    return sigmoid(rows @ coefficients) + generator.laplace(0, 1 / (SCORES_SHARE * epsilon), study.n)


def _limits(scores: Floats, sides: list[Int64s], epsilon: float) -> tuple[int, int]:
    """How often a control and a treated unit may serve, in fifths of it (the paper's equations 11 and 12)."""
    most = max(_most_wanted(scores[sides[1 - arm]], scores[sides[arm]]) for arm in (0, 1)) / NEIGHBOURS
    controls, treated = (len(side) for side in sides)
    limit = max(round(math.sqrt(epsilon * LIMIT_FACTOR * max(controls, treated) * most / 2)), 1)
    if treated <= controls:
        return max(1, round(limit * treated / controls)), limit
    return limit, max(1, round(limit * controls / treated))


def _most_wanted(sought: Floats, offered: Floats) -> int:
    """How often the unit most in demand is among another's nearest neighbours."""
    order = np.argsort(offered)
    ranked = offered[order]
    near = np.searchsorted(ranked, sought)[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS)
    outside = (near < 0) | (near >= len(ranked))
    near = np.clip(near, 0, len(ranked) - 1)
    distance = np.where(outside, np.inf, np.abs(ranked[near] - sought[:, None]))
    best = np.argsort(distance, axis=1)[:, :NEIGHBOURS]
    return int(np.bincount(np.take_along_axis(near, best, axis=1).ravel()).max())


def _matches(sought: Floats, offered: Floats, outcomes: Floats, cap: int) -> Floats:
    """Return the mean outcome of each seeker's nearest neighbours with capacity left, in table order; NaN for none.

    `left` and `right` lead from a unit that serves no more to the next one that may.
    """
    order = np.argsort(offered)
    ranked, values = offered[order].tolist(), outcomes[order].tolist()
    size = len(ranked)
    left, right, serves = list(range(size + 1)), list(range(size + 1)), [0] * size
    found = np.full(len(sought), np.nan)
    for seeker, (score, place) in enumerate(
        zip(sought.tolist(), np.searchsorted(ranked, sought).tolist(), strict=True)
    ):
        below = above = place
        chosen: list[int] = []
        while len(chosen) < NEIGHBOURS:
            below, above = _next(left, below), _next(right, above)
            if below == 0 and above == size:
                break
            if above == size or (below > 0 and score - ranked[below - 1] <= ranked[above] - score):
                below -= 1
                chosen.append(below)
            else:
                chosen.append(above)
                above += 1
        for server in chosen:
            serves[server] += 1
            if serves[server] == cap:
                left[server + 1], right[server] = server, server + 1
        if chosen:
            found[seeker] = sum(values[server] for server in chosen) / len(chosen)
    return found


def _next(links: list[int], place: int) -> int:
    """Where the links from a place lead, and shorter links for whoever comes next."""
    end = place
    while links[end] != end:
        end = links[end]
    while links[place] != end:
        links[place], place = end, links[place]
    return end
