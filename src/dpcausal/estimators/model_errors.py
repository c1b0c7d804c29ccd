"""What noise in a propensity score and in outcome regressions leaves in a mean of augmented scores.

Scores are doubly robust: to first order, only the product of the two models' errors is left in, and where propensities
are clipped the error of the regression alone. Both errors have a known distribution. The regressions' is the posterior
of `noise_aware_regression`. The score's follows from objective perturbation: the coefficients solve score equations
with a ridge and a random term of known size, so their error is that term times the inverse information.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.estimators.influence_weights import InfluenceWeights
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions
from dpcausal.estimators.outcome_regression import OutcomeRegressions
from dpcausal.estimators.propensity import perturbation_of
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.features import arm_weights, covariates_named
from dpcausal.queries.logistic import Perturbation
from dpcausal.release import Release
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array

_PLACES = np.linspace(-4, 4, 81)
_DENSITY = np.exp(-(_PLACES**2) / 2) / np.exp(-(_PLACES**2) / 2).sum()
"""A standard normal distribution, for means over logits of propensities."""

_LARGEST_LOGIT = 12.0
"""Beyond it propensities are 0 or 1 for all purposes."""

_STEPS = 4
"""The information depends on the corrected coefficients: so many steps are enough to agree on both."""

_MAX_CORRECTION = 0.5
"""The largest share of a coefficient that the correction for the ridge adds: it is of first order."""


@dataclass(frozen=True)
class FittedOn:
    """The units that a private logistic regression was fitted to.

    Attributes:
        score: The release of a query with objective perturbation.
        centres: What the features of the outcome regressions are measured from.
        units: How many units there are.
        moments: The second moments of their features, the constant first.
    """

    score: Release
    centres: Array
    schema: Schema
    units: float
    moments: Array


@dataclass(frozen=True)
class PropensityError:
    """A propensity score without its ridge's shrinkage, and the distribution of the error that noise puts into it.

    Coefficients are those of a constant and of features measured from their means, as in `NoiseAwareRegressions`.

    Attributes:
        released: The coefficients of the score's own features, corrected for the ridge.
        coefficients: The same as coefficients of the regressions' features.
        covariance: The covariance of their error.
        arms: Each arm's second moments of the constant and the features, as shares of all units.
    """

    released: tuple[float, ...]
    coefficients: Array
    covariance: Array
    arms: Array

    @classmethod
    def of(cls, score: Release, fit: OutcomeRegressions, centres: Array, schema: Schema) -> Self:
        """Return the error of a released score, with the information from released moments."""
        arms = second_moments(fit, centres)
        fitted_on = FittedOn(score, centres, schema, float(fit.n[0]), arms.sum(axis=0))
        return cls.corrected(score.values, fitted_on, arms)

    @classmethod
    def corrected(cls, values: Sequence[float], fitted_on: "FittedOn", arms: Array) -> Self:
        """Return the error of a regression with these coefficients.

        Args:
            values: The coefficients as they were released.
            fitted_on: The units that it was fitted to.
            arms: The second moments of each arm of the units that the error is about.
        """
        covariates: Sequence[str] = fitted_on.score.query.covariates  # type: ignore[attr-defined]
        lines, root = _features(covariates, fitted_on.schema, fitted_on.centres), math.sqrt(len(covariates) + 1)
        perturbation = perturbation_of(fitted_on.score, fitted_on.schema)
        weights = _weights(perturbation, lines, fitted_on.moments)
        # A listed column has one feature too many: of all inverses, this one leaves out how the ridge shares it out.
        shared = lines.T / perturbation.ridges
        inverse = np.linalg.solve(shared @ lines, shared)
        released = np.array(values) / root
        ridge = inverse @ (perturbation.ridges * released)
        shrunk = lines.T @ released
        coefficients, information = shrunk, np.eye(len(shrunk))
        for _ in range(_STEPS):  # the information half way, which makes the correction one of second order
            information = fitted_on.units * _information((shrunk + coefficients) / 2, fitted_on.moments) * weights
            correction = np.linalg.lstsq(information, ridge, rcond=None)[0]
            most = _MAX_CORRECTION * float(np.linalg.norm(shrunk))
            correction *= min(1.0, most / max(float(np.linalg.norm(correction)), 1e-12))
            coefficients = shrunk + correction
        spread = np.linalg.lstsq(information, inverse, rcond=None)[0] * perturbation.tilt_sds
        corrected = released + np.linalg.pinv(lines).T @ (coefficients - shrunk)
        return cls(tuple(map(float, corrected * root)), coefficients, spread @ spread.T, arms)

    @property
    def predictor_sd(self) -> float:
        """The standard deviation, over units, of the noise in the logit of a propensity."""
        return math.sqrt(max(float((self.covariance * self.arms.sum(axis=0)).sum()), 0.0))

    def weights(self, estimand: AugmentedEstimand, clip: float) -> tuple[tuple[Array, Array], ...]:
        """Return, for each arm, weights and how frequent units of that arm are that have them."""
        logits, _ = _logits(self.coefficients, self.arms.sum(axis=0))
        scores = 1 / (1 + np.exp(-logits))
        control, treated = np.array([arm_weights(estimand, float(each), clip) for each in scores]).T
        return (control, (1 - scores) * _DENSITY), (treated, scores * _DENSITY)

    def clipped(self, clip: float) -> tuple[Array, Array]:
        """Return the mean features of what clipping leaves out of each arm's weights, the share of units first."""
        logits, features = _logits(self.coefficients, self.arms.sum(axis=0))
        shares = 1 / (1 + np.exp(logits)), 1 / (1 + np.exp(-logits))
        control, treated = ((np.maximum(1 - each / clip, 0.0) * _DENSITY) @ features for each in shares)
        return control, treated

    def left_in(self, regressions: NoiseAwareRegressions, estimand: AugmentedEstimand, clip: float) -> float:
        """Return the standard deviation of what noise in both models leaves in the mean of augmented scores."""
        control, treated = self.arms
        clipped = self.clipped(clip)
        share = float(treated[0, 0])
        if estimand == "ATT":
            weights = np.hstack([treated / share, np.zeros_like(treated)])
            alone = np.concatenate([clipped[0], np.zeros_like(clipped[0])])
        elif estimand == "ATO":
            overlap = control @ np.linalg.lstsq(control + treated, treated, rcond=None)[0]
            weights = np.hstack([share * overlap, (1 - share) * overlap]) / overlap[0, 0]
            alone = np.zeros(2 * len(share * overlap))
        else:
            weights = np.hstack([treated, control])
            alone = np.concatenate([-clipped[0], clipped[1]])
        product = float((self.covariance * (weights @ regressions.covariance @ weights.T)).sum())
        return math.sqrt(max(product, 0.0) + max(float(alone @ regressions.covariance @ alone), 0.0))


def averaged(coefficients: Array, moments: Array, weight: Callable[[Array], Array]) -> Array:
    """Return the mean, over units of normal features, of a weight that depends on the logit, times second moments."""
    logits, features = _logits(coefficients, moments)
    weights = _DENSITY * weight(logits)
    across = moments - features.T @ (_DENSITY[:, None] * features)
    averaged: Array = float(weights.sum()) * across + features.T @ (weights[:, None] * features)
    return averaged


def _logits(coefficients: Array, moments: Array) -> tuple[Array, Array]:
    """Return normally distributed logits of propensities, and the mean features of units with each."""
    middle = moments[0]
    along = (moments - np.outer(middle, middle)) @ coefficients
    sd = math.sqrt(max(float(coefficients @ along), 1e-12))
    logits = np.clip(coefficients @ middle + sd * _PLACES, -_LARGEST_LOGIT, _LARGEST_LOGIT)
    return logits, middle + np.outer(_PLACES, along / sd)


def _information(coefficients: Array, moments: Array) -> Array:
    """Return the information of one unit about coefficients, e (1 - e) times second moments, for normal features."""
    return averaged(coefficients, moments, lambda logits: 1 / (2 + np.exp(logits) + np.exp(-logits)))


def _features(covariates: Sequence[str], schema: Schema, centres: Array) -> Array:
    """Return the score's features as multiples of a constant and the regressions' features from their means."""
    lines, place = [np.eye(1, len(centres) + 1)[0]], 1
    for column in covariates_named(covariates, schema):
        if isinstance(column, Real) or len(column.values) == 2:
            line = np.zeros(len(centres) + 1)
            line[0], line[place] = centres[place - 1], 1.0
            lines.append(line)
            place += 1
            continue
        own = []
        for _ in column.values[1:]:  # -1 or 1 becomes 0 or 1
            line = np.zeros(len(centres) + 1)
            line[0], line[place] = (centres[place - 1] + 1) / 2, 0.5
            own.append(line)
            place += 1
        lines += [lines[0] - sum(own), *own]
    return np.array(lines)


def _weights(perturbation: Perturbation, lines: Array, moments: Array) -> Array:
    """Return by what the weights of units multiply the information about coefficients of the regressions' features."""
    means, apart = lines[1:, 0], lines[1:, 1:]
    variances = ((apart @ moments[1:, 1:]) * apart).sum(axis=1)
    weights = InfluenceWeights.of(perturbation, means, variances)
    # The feature of the score that each feature of the regressions is, or is part of.
    own = np.abs(lines).argmax(axis=0)
    factors = np.sqrt(weights.information[own])
    return np.outer(factors, factors)


def second_moments(fit: OutcomeRegressions, centres: Array) -> Array:
    """Return each arm's second moments over all units, with variances of at least what noise could hide."""
    least = math.sqrt(float(fit.covariance_noise_variance[0].max()) * len(centres))
    made = []
    for arm in (0, 1):
        values, vectors = np.linalg.eigh(fit.covariances[0, arm])
        line = np.array([1.0, *(fit.centres[0, arm] - centres)])
        moments = np.outer(line, line)
        moments[1:, 1:] += (vectors * np.maximum(values, least)) @ vectors.T
        made.append(moments * float(fit.sizes[0, arm] / fit.n[0]))
    return np.array(made)
