"""Ohnishi and Awan 2024: private weights that balance covariates.

"Differentially private covariate balancing causal inference" (arXiv 2410.14789). Of the paper only the abstract, the
keywords (covariate balancing propensity score, weighted average treatment effect, empirical risk minimisation) and the
first lines of the introduction were at hand, in both versions: two stages, first private weights that balance
covariates, then a private weighted estimate, with an interval. Its mechanisms, constants and interval were not, so
this is not its algorithm but the kindest reading of that outline. The interval is ours: the variance of the terms with
noise, and that of the noise on the mean; it leaves out what noise in the weights does.

Stage 1 minimises the loss whose minimum balances every covariate between the weighted arms (Zhao 2019): its slope is
minus the inverse propensity for a treated unit and the inverse of the other arm's for a control unit. Kept within
`CLIP` and 1 - `CLIP` the slope is at most 1 / CLIP in size and the curvature at most (1 - CLIP) / CLIP. The objective
gets noise, for which one of the authors is known; noise on the result would need several times the penalty.

Stage 2 is the mean of +-weight * outcome, outcomes from the middle of their range. The weights are functions of a
unit's own record and of the released coefficients, so replacing a unit changes one term, from within +-B / (2 CLIP) to
within the same: the mean moves by at most B / (CLIP n), the mean of squares by at most (B / (2 CLIP))² / n. Weights
that balance also agree in their totals, so that dividing by these totals would gain little and cost noise.
"""

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.regression import FARTHEST, Loss, clipped, objective_perturbed
from benchmarks.peers.study import CLIP, Answer, Floats, Int64s, Study

SCORE_SHARE = 0.7
"""The part of epsilon that the weights get; what the mean needs is small beside it."""
VARIANCE_SHARE = 0.05
"""The part of epsilon for the variance."""


def balancing(arms: Int64s) -> Loss:
    """Return the loss whose minimum balances the arms."""
    signs = 2.0 * arms - 1.0
    return Loss(
        slope=lambda predictors: -signs * inverses(signs * predictors),
        curvature=lambda predictors: np.where(np.abs(predictors) < FARTHEST, inverses(signs * predictors) - 1, 0),
        steepest=1 / CLIP,
        sharpest=(1 - CLIP) / CLIP,
    )


def inverses(predictors: Floats) -> Floats:
    """One over the propensity of the arm that a unit is in; predictors have the sign of that arm."""
    return 1 / clipped(predictors)


def weighted(study: Study, coefficients: Floats) -> Floats:
    """Return the terms of the weighted contrast for given weights."""
    weights = inverses(study.signs * (study.design @ coefficients))
    return study.signs * weights * study.centred


def sensitivities(study: Study) -> tuple[float, float]:
    """Return how far replacing one unit moves the mean of terms and that of their squares, at most."""
    largest = study.width / (2 * CLIP)
    return 2 * largest / study.n, largest**2 / study.n


def estimate(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """Run the two stages, one after the other on the same units."""
    score_epsilon, variance_epsilon = SCORE_SHARE * epsilon, VARIANCE_SHARE * epsilon
    design = study.design
    terms = weighted(
        study, objective_perturbed(design, balancing(study.arms), design.shape[1], score_epsilon, generator)
    )
    bound, square_bound = sensitivities(study)
    rest = (epsilon - score_epsilon - variance_epsilon, delta / 2)
    found = float(terms.mean()) + noise.number(bound, *rest, generator)
    squares = float((terms**2).mean()) + noise.number(square_bound, variance_epsilon, delta / 2, generator)
    return Answer.normal(found, squares - found**2, study.n, noise.number_sd(bound, *rest))
