"""Estimands of estimators with a propensity score, its query, and the effect of privacy noise on the score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.estimators.influence_weights import InfluenceWeights
from dpcausal.queries import BoundedInfluenceLogistic, ObjectivePerturbedLogistic
from dpcausal.queries.features import Estimand, covariates_named
from dpcausal.queries.logistic import Perturbation
from dpcausal.release import Release
from dpcausal.schema.real import Real
from dpcausal.schema.scale import REACH
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array

ScoreQuery = ObjectivePerturbedLogistic | BoundedInfluenceLogistic
"""A query of a score with noise in the objective."""

ESTIMANDS: dict[Estimand, str] = {
    "ATE": "average treatment effect",
    "ATT": "average treatment effect on the treated",
    "ATC": "average treatment effect on the controls",
    "ATO": "average treatment effect in the overlap population, a unit counting as e (1 - e), e its propensity score",
}
"""What each estimand is, in words."""

EXPECTED_INFORMATION = 0.2 / 3
"""What one unit adds to the information about a coefficient where nothing else is known: a propensity's e (1 - e) of
0.2, as for 28 % treated, times the variance of a feature that spreads evenly between -1 and 1."""

EXPECTED_OVERLAP = 0.2
"""The mean of a propensity's e (1 - e) where nothing else is known."""

_OF_TWO_VALUES = 0.64
"""The variance of one of two values, -1 and 1, of which one in five units has the rarer."""


def score_query(covariates: Sequence[str], schema: Schema) -> ScoreQuery:
    """Return the query of a private score with the least expected noise, from the declaration of its covariates.

    That is the one with bounded influence, but where nearly all of many covariates are listed values: these have the
    same length in all units, and the largest there can be.
    """
    queries: tuple[ScoreQuery, ...] = BoundedInfluenceLogistic(covariates), ObjectivePerturbedLogistic(covariates)
    return min(queries, key=lambda query: expected_imbalance(query, schema))


def perturbation_of(score: Release, schema: Schema) -> Perturbation:
    """Return what noise and ridge are in a released score, whose covariates a schema declares as the score has them."""
    query: ScoreQuery = score.query  # type: ignore[assignment]
    return query.perturbation(score.guarantee.epsilon, schema)


def expected_imbalance(query: ScoreQuery, schema: Schema) -> float:
    """Return the noise in weighted sums of what covariates explain of an outcome, with an sd of 1, at an epsilon of 1.

    Each covariate has an equal part in it.
    """
    variances, parts = _expected_variances(query.covariates, schema)
    perturbation = query.perturbation(1.0, schema)
    weights = InfluenceWeights.of(perturbation, np.zeros(len(variances)), variances)
    tilts = (perturbation.tilt_sds / weights.information)[1:]
    return math.sqrt(float(parts @ (tilts**2 / variances)))


def _expected_variances(covariates: Sequence[str], schema: Schema) -> tuple[Array, Array]:
    """Return the expected variance of each feature, and its part in what covariates explain."""
    columns, variances, parts = covariates_named(covariates, schema), [], []
    for column in columns:
        several = 1 if isinstance(column, Real) or len(column.values) == 2 else len(column.values)
        usual = 1 / REACH**2 if isinstance(column, Real) else _OF_TWO_VALUES if several == 1 else 1 / several
        variances += [usual] * several
        parts += [1 / several / len(columns)] * several
    return np.array(variances), np.array(parts)


@dataclass(frozen=True)
class PropensityUncertainty:
    """The error that privacy adds to a propensity score, from public numbers.

    The variance of a coefficient fitted on n units is 1 / information. Noise adds an error of standard deviation
    `noise_sd` to the score's predictor. The ridge shrinks the adjustment by its share of the information.
    """

    noise_sd: float
    ridge: float

    @classmethod
    def of(cls, n: int, epsilon: float, query: ScoreQuery, schema: Schema, overlap: float = EXPECTED_OVERLAP) -> Self:
        """Return the uncertainty of objective perturbation with this epsilon.

        Args:
            overlap: The propensity's e (1 - e), on average.
        """
        variances, parts = _expected_variances(query.covariates, schema)
        perturbation = query.perturbation(epsilon, schema)
        weights = InfluenceWeights.of(perturbation, np.zeros(len(variances)), variances)
        squares = np.concatenate([[1.0], variances])
        information = n * overlap * squares * weights.information
        noise_sd = math.sqrt(float((perturbation.tilt_sds / information) ** 2 @ squares))
        return cls(noise_sd, float(parts @ (perturbation.ridges / information)[1:]))
