"""Schröder, Hartenstein and Feuerriegel 2025: a doubly robust estimate with noise, and an interval.

"PrivATE: Differentially private confidence intervals for average treatment effects" (arXiv 2505.21641). Of the paper
only the abstract and the first lines of the introduction were at hand: the doubly robust estimate gets noise, a doubly
robust variance gets noise, and an interval accounts for both and for the noise. The size of the noise was not at hand;
in the authors' paper on conditional effects (ICLR 2025, Theorem 1) it is the largest value of the influence function,
over all records that there could be, at the fitted models, divided by n and times 5 sqrt(2 ln(n) ln(2 / delta)) /
epsilon.

- `printed` takes the kindest size, that largest value over n as if it were a sensitivity. Not private: the fitted
  models are used as if they were public, and both they and the largest value change with one record.
- `printed_constant` is the same with the factor of that theorem, and not private for the same reasons.
- `accounted` is what replacing one unit really needs. The models are fitted with noise in their objectives. Given
  these, a unit's term m1 - m0 +- W(y - m) lies within -B / CLIP and B / CLIP, since W is at least 1 and outcomes and
  predictions lie within a range of B. The mean of terms moves by at most 2B / (CLIP n), the mean of their squares by
  at most (B / CLIP)² / n.

How epsilon is shared was not at hand either; the shares below did well for these estimators. The largest value is
taken over the units' own covariates, any arm and any outcome, which is less than over all covariates and so kind
again. Intervals leave out what noise in the models does, which matters below some 20,000 units.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.regression import Loss, clipped, fitted, logistic, objective_perturbed
from benchmarks.peers.study import CLIP, Answer, Floats, Study

RIDGE = 1.0
"""The penalty of regressions without noise."""
VARIANCE_SHARE = 0.1
"""The part of epsilon for the variance."""
MODEL_SHARE = 0.25
"""The part of epsilon for each of the two kinds of models, where they are paid for."""
ROBUST = 1.0
"""Residuals beyond this many half ranges count as this many, so that one unit pulls at a regression only so hard."""


@dataclass(frozen=True)
class Nuisances:
    """Predictions for each unit: outcomes in both arms, from the middle of their range, and the propensity."""

    control: Floats
    treated: Floats
    propensity: Floats

    def terms(self, arms: Floats, outcomes: Floats) -> Floats:
        """Return the doubly robust terms of units with these arms and (centred) outcomes."""
        inverse = np.where(arms == 1, 1 / self.propensity, 1 / (1 - self.propensity))
        residuals = outcomes - np.where(arms == 1, self.treated, self.control)
        return self.treated - self.control + (2 * arms - 1) * inverse * residuals


def by_arm(study: Study) -> Floats:
    """Return the features twice side by side, those of the other arm put to 0: one regression for both arms."""
    treated = study.arms[:, None] == 1
    return np.hstack([np.where(treated, 0, study.design), np.where(treated, study.design, 0)])


def robust(outcomes: Floats) -> Loss:
    """Return a squared loss that goes on as a straight line where a residual is large."""
    return Loss(
        slope=lambda predictors: np.clip(predictors - outcomes, -ROBUST, ROBUST),
        curvature=lambda predictors: (np.abs(predictors - outcomes) < ROBUST).astype(float),
        steepest=ROBUST,
        sharpest=1.0,
    )


def _predictions(study: Study, outcomes: Floats, score: Floats) -> Nuisances:
    """Predictions from coefficients; those of outcomes are in half ranges, control units' first."""
    half = study.width / 2
    control, treated = (half * np.clip(study.design @ part, -1, 1) for part in np.split(outcomes, 2))
    return Nuisances(control, treated, clipped(study.design @ score))


def unprotected(study: Study) -> Nuisances:
    """Models without noise."""
    outcomes = fitted(by_arm(study), robust(study.centred / (study.width / 2)), RIDGE)
    return _predictions(study, outcomes, fitted(study.design, logistic(study.arms), RIDGE))


def protected(study: Study, epsilon: float, generator: Generator) -> Nuisances:
    """Models with noise, each kind for this epsilon."""
    length = study.design.shape[1]
    loss = robust(study.centred / (study.width / 2))
    outcomes = objective_perturbed(by_arm(study), loss, length, epsilon, generator)
    score = objective_perturbed(study.design, logistic(study.arms), length, epsilon, generator)
    return _predictions(study, outcomes, score)


def largest_influence(study: Study, nuisances: Nuisances, effect: float) -> float:
    """Return the largest influence of a record with a unit's covariates, either arm and any outcome."""
    half = study.width / 2
    return max(
        float(np.abs(nuisances.terms(np.full(study.n, arm), np.full(study.n, outcome)) - effect).max())
        for arm in (0.0, 1.0)
        for outcome in (-half, half)
    )


def sensitivities(study: Study) -> tuple[float, float]:
    """Return how far replacing one unit moves the mean of terms and that of their squares, the models being given."""
    largest = study.width / CLIP
    return 2 * largest / study.n, largest**2 / study.n


def printed(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """NOT PRIVATE: the largest influence over n as if it were a sensitivity."""
    variance_epsilon = VARIANCE_SHARE * epsilon
    nuisances = unprotected(study)
    terms = nuisances.terms(study.arms.astype(float), study.centred)
    influence = largest_influence(study, nuisances, float(terms.mean()))
    bound, rest = influence / study.n, (epsilon - variance_epsilon, delta / 2)
    estimate = float(terms.mean()) + noise.number(bound, *rest, generator)
    drawn = noise.number(influence**2 / study.n, variance_epsilon, delta / 2, generator)
    return Answer.normal(estimate, float(terms.var()) + drawn, study.n, noise.number_sd(bound, *rest))


def printed_constant(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """NOT PRIVATE: the same with the factor of the authors' earlier theorem, which needs a delta."""
    if delta <= 0:
        raise ValueError("noise by this theorem needs a delta above 0")
    factor = 5 * math.sqrt(2 * math.log(study.n) * math.log(4 / delta)) / study.n
    variance_epsilon = VARIANCE_SHARE * epsilon
    nuisances = unprotected(study)
    terms = nuisances.terms(study.arms.astype(float), study.centred)
    influence = largest_influence(study, nuisances, float(terms.mean()))
    sd = influence * factor / (epsilon - variance_epsilon)
    drawn = generator.normal(0, influence**2 * factor / variance_epsilon)
    return Answer.normal(float(terms.mean()) + generator.normal(0, sd), float(terms.var()) + drawn, study.n, sd)


def accounted(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """Models with noise, and noise for what one unit can do to the mean of terms once the models are given."""
    variance_epsilon, model_epsilon = VARIANCE_SHARE * epsilon, MODEL_SHARE * epsilon
    terms = protected(study, model_epsilon, generator).terms(study.arms.astype(float), study.centred)
    bound, square_bound = sensitivities(study)
    rest = (epsilon - variance_epsilon - 2 * model_epsilon, delta / 2)
    estimate = float(terms.mean()) + noise.number(bound, *rest, generator)
    squares = float((terms**2).mean()) + noise.number(square_bound, variance_epsilon, delta / 2, generator)
    return Answer.normal(estimate, squares - estimate**2, study.n, noise.number_sd(bound, *rest))
