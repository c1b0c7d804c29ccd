"""Augmented inverse probability weighting: outcome regressions, corrected by weighting their residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcausal.calibration import calibrate
from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.interval_policy import arm_clipped, limit_bias, residual_confounding
from dpcausal.estimators.messages import NO_INTERFERENCE, SAMPLING_BELOW_NOISE, no_confounders_but
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    arm_refusal,
    as_score_coefficients,
    fit_regressions,
    signs_of_moments,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.propensity import ESTIMANDS, PropensityUncertainty, augmented_residual, clipped_shares
from dpcausal.guarantee import Guarantee
from dpcausal.interval import NoiseTerm
from dpcausal.queries import AugmentedScores, ObjectivePerturbedLogistic, Query, RegressionMoments
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.features import design_names, feature_names
from dpcausal.queries.regression_moments import FIRST_FEATURE, OUTCOME, Moment
from dpcausal.release import Release
from dpcausal.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.validation import is_number

_WEIGHTS: dict[AugmentedEstimand, float] = {"ATE": 1.0, "ATT": 0.5, "ATO": 0.25}
"""The size of the weights, and so of scores, relative to those of ATE where arms are even."""

_NUMBER_LIMIT, _BINARY_LIMIT = 5.0, 20.0
"""Default limits: single units of a binary outcome have far larger residuals."""

_SHARES = tuple((moments, propensity) for moments in (0.1, 0.2, 0.3, 0.4) for propensity in (0.1, 0.2, 0.3))
"""The shares of epsilon that moments and propensity may get."""

_FEATURE_VARIANCE = 1 / 6
"""The features' variance that the choice of shares expects: half of what it is where values spread evenly."""

_EXPLAINED_SD = 0.2
"""The standard deviation that covariates explain, in half ranges: half of an outcome's 0.4, as the choice expects."""

_CUT_OFF_LOSS = 0.5
"""What a score beyond the limit loses on average, in limits."""


@dataclass(frozen=True)
class DoublyRobust(BaseEstimator):
    """The mean of augmented scores (AIPW): predictions of outcome regressions plus weighted means of their residuals.

    Estimand:
        The average treatment effect over all units (ATE), over the treated (ATT), or over the overlap population, where
        a unit counts as e (1 - e), e its propensity score (ATO).

    Assumptions:
        The covariates hold all confounders, and one of two models is right: outcomes are linear in covariates in each
        arm, or treatment follows a logistic regression on them. Propensities beyond `clip` and scores beyond `limit`
        are rare.

    Privacy:
        Three queries share epsilon and delta: noisy moments for the outcome regressions, a private logistic
        regression, and sums of scores that use both. The shares depend on n, epsilon, delta and the schema only. They
        minimise the noise in the sums and the residual confounding from noise in the models, taken together.

    Attributes:
        covariates: The covariates of all models. Keep the list short: each one costs accuracy.
        estimand: `ATE`, `ATT` or `ATO`.
        clip: Propensities are clipped to clip and 1 - clip.
        limit: Scores are limited to so many half ranges of the outcome, half as many for ATT and a quarter for ATO,
            where weights are smaller. Noise in the estimate is in proportion to it. By default 5 for a number and 20
            for a binary outcome, where single units have far larger residuals.

    Reference:
        Robins, Rotnitzky and Zhao (1994) for augmented scores. Of the private versions, that of Schröder, Hartenstein
        and Feuerriegel (2025) does not pay for the models, and that of Lebeda, Even, Bellet and Josse (2025) trains
        them in each of many folds. Here the models are private themselves and serve all units.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = DoublyRobust(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.35, 0.08)
    """

    also_called: ClassVar[str] = "aipw dr aipwe dml double_ml doubleml tmle augmented_inverse_probability_weighting"

    covariates: Sequence[str]
    estimand: AugmentedEstimand = "ATE"
    clip: float = 0.05
    limit: float | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; with delta 0, all noise is Laplace noise."""
        guarantee = guarantee_for(source, epsilon, delta)
        moments_from, propensity_from, sums_from = self._split(source, guarantee)
        score, outcomes = ObjectivePerturbedLogistic(self.covariates), RegressionMoments(self.covariates)
        propensity = source.release(score, propensity_from)  # of fewest units: first
        moments = source.release(outcomes, moments_from)
        fit = fit_regressions(moments, source, np.array([moments.values]))
        models = [as_score_coefficients(fit, arm, self.covariates, source.schema) for arm in (0, 1)]
        sums = source.release(self._query(source.schema, propensity.values, *models), sums_from)
        return self._effect(source, guarantee, fit, (moments, propensity, sums))

    def _query(
        self, schema: Schema, propensity: Sequence[float], control: Sequence[float], treated: Sequence[float]
    ) -> AugmentedScores:
        limit = self.limit
        if limit is None:
            limit = _BINARY_LIMIT if isinstance(schema.outcome, Binary) else _NUMBER_LIMIT
        scaled = limit * _WEIGHTS.get(self.estimand, 1.0) if is_number(limit) else limit  # the query refuses the rest
        return AugmentedScores(self.covariates, propensity, control, treated, self.estimand, self.clip, scaled)

    def _split(self, source: Source, guarantee: Guarantee) -> tuple[Guarantee, Guarantee, Guarantee]:
        """Split the guarantee for moments, propensity and sums: return the shares with the least expected error.

        Noise is taken to be in proportion to 1 / epsilon, and arms to be even.
        """
        schema, variance = source.schema, _FEATURE_VARIANCE
        features, nothing = len(design_names(self.covariates, schema)), [0.0] * self._coefficients(schema)
        moments = RegressionMoments(self.covariates)
        kinds = [Moment(first, FIRST_FEATURE, signed=False) for first in (OUTCOME, FIRST_FEATURE)]
        places = map(moments.moments(schema).index, kinds)
        slope, square = (_scale(moments, place, schema, guarantee) / source.n for place in places)
        noise = _scale(self._query(schema, nothing, nothing, nothing), 0, schema, guarantee) / source.n
        explained = _EXPLAINED_SD * (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2 / math.sqrt(features)

        def expected(shares: tuple[float, float]) -> float:
            noise_sd = self._propensity_uncertainty(source, guarantee.epsilon * shares[1], variance / 4).noise_sd
            attenuation = min((features + 1) * (square / shares[0] / variance) ** 2, 1.0)
            residual = noise_sd * math.hypot(slope / shares[0] / math.sqrt(variance), attenuation * explained)
            return math.hypot(noise / _WEIGHTS[self.estimand] / (1 - shares[0] - shares[1]), residual)

        best = min(_SHARES, key=expected)
        second, rest = guarantee.split(best[1], pure_first=True)
        first, third = rest.split(best[0] / (1 - best[1]))
        return first, second, third

    def _propensity_uncertainty(self, source: Source, epsilon: float, information: float) -> PropensityUncertainty:
        coefficients = self._coefficients(source.schema)
        return PropensityUncertainty.of(source.n, epsilon, len(self.covariates), coefficients, information)

    def _coefficients(self, schema: Schema) -> int:
        return len(feature_names(self.covariates, schema))

    def _effect(
        self, source: Source, guarantee: Guarantee, fit: OutcomeRegressions, releases: tuple[Release, Release, Release]
    ) -> Effect:
        mean = _Mean(releases[2], source, fit, releases[0])
        uncertainty = self._propensity_uncertainty(source, releases[1].guarantee.epsilon, fit.score_information)
        residual = augmented_residual(fit, uncertainty.noise_sd, self.estimand, self.clip)
        # The regression gives the mean of all units without treatment; the scores give the distance to the other.
        control = sum(source.schema.outcome_bounds) / 2 + float(fit.standardised[0, 0])
        ate = self.estimand == "ATE"
        effect = Effect(
            estimand=f"{ESTIMANDS[self.estimand]}, propensities clipped to {self.clip:g} and {1 - self.clip:g}",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=mean.estimate,
            sampling_sd=mean.sampling_sd,
            noise=(*mean.noise, NoiseTerm("gaussian", residual)),
            n=source.n,
            method=f"{self.estimand} by augmented scores with private models of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=(
                no_confounders_but(self.covariates),
                "outcomes are linear in these in each arm, or treatment follows a logistic regression on them",
                NO_INTERFERENCE,
                f"for the interval: few propensities are beyond {self.clip:g} and {1 - self.clip:g}",
                *source.schema.data_handling,
            ),
            receipts=tuple(release.receipt for release in releases),
            notes=(SAMPLING_BELOW_NOISE,) * mean.floored + source.caveats,
            no_interval=arm_refusal(releases[0], source, fit)
            or arm_clipped(max(clipped_shares(fit.treated_share, self.clip)), self.clip)
            or limit_bias(mean.cut_off, mean.hidden_cut_off, mean.error)
            or residual_confounding(residual, mean.error, self.covariates),
            control_mean=control if ate else None,
            treated_mean=control + mean.estimate if ate else None,
        )
        return warned(effect, source.schema, signs_of_moments(releases[0], source, fit))


class _Mean:
    """The mean score over the target population, from the released sums, and the bias that the limit may cause."""

    def __init__(self, sums: Release, source: Source, fit: OutcomeRegressions, moments: Release) -> None:
        query: AugmentedScores = sums.query  # type: ignore[assignment]
        value = {name: sums.value(name) for name in sums.names}
        counted = "compared" in moments.names
        known = query.estimand == "ATE" and not counted  # every unit is a target
        seen = max(value["target_sum"], 2 * math.sqrt(sums.variance("target_sum")), 1.0)
        target_sum = float(fit.n[0]) if known else seen
        self.estimate = value["score"] / target_sum
        self.noise = [sums.noise_term("score", 1 / target_sum)]
        if not known:
            self.noise.append(sums.noise_term("target_sum", abs(self.estimate) / target_sum))
        low, high = source.schema.outcome_bounds
        largest = (query.limit * (high - low) / 2) ** 2
        most = float(fit.n[0]) * largest
        correction = self.estimate * (self.estimate * value["target_square_sum"] - 2 * value["product"])
        squares = most - value["deficit"] + correction
        # A sum below what noise could hide counts as that much, so that luck cannot make an interval too narrow.
        hidden = math.sqrt(sums.variance("deficit") + (moments.variance("compared") * largest**2 if counted else 0.0))
        self.floored = squares < hidden
        self.sampling_sd = math.sqrt(min(max(squares, hidden), max(4 * most, hidden))) / target_sum
        self.error = math.hypot(self.sampling_sd, *(math.sqrt(term.variance) for term in self.noise))
        loss = _CUT_OFF_LOSS * query.limit * (high - low) / 2 / target_sum
        hidden_count = 2 * math.sqrt(sums.variance("clipped"))
        self.cut_off = value["clipped"] * loss if value["clipped"] > hidden_count else 0.0
        self.hidden_cut_off = hidden_count * loss


def _scale(query: Query, place: int, schema: Schema, guarantee: Guarantee) -> float:
    """Return the scale of the noise in one of a query's numbers."""
    noise = calibrate(query, schema, guarantee)
    return float(noise.scales[place] or 0.0) * noise.sensitivity.coordinates[place].tick
