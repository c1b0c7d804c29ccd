"""Augmented scores: a regression of the outcome, corrected by weighting what it missed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.calibration import calibrate
from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import SAMPLING_BELOW_NOISE, confounding_message
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    as_score_coefficients,
    fit_regressions,
    hidden_arm,
    signs_of_moments,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.propensity import ESTIMANDS, PropensityUncertainty
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
"""How large weights are beside those of ATE where arms are even, and so how large scores are."""

_SHARES = tuple((moments, propensity) for moments in (0.1, 0.2, 0.3, 0.4) for propensity in (0.1, 0.2, 0.3))
"""What moments and propensity may get of epsilon."""


@dataclass(frozen=True)
class DoublyRobust(BaseEstimator):
    """The mean of augmented scores: what outcome regressions say, plus weighted means of what they missed.

    Estimand:
        The average treatment effect over all units (ATE), over those treated (ATT), or over units in proportion to how
        evenly they could have been in either arm (ATO).

    Assumptions:
        The covariates hold all confounders, and one of two models is right: outcomes are linear in covariates in each
        arm, or treatment follows a logistic regression on them. Propensities beyond `clip` and scores beyond `limit`
        are rare.

    Privacy:
        Three queries, which share epsilon and delta: noisy moments for the outcome regressions, a private logistic
        regression, and sums of scores made with both. The shares are chosen from n, epsilon, delta and the schema
        alone, so that the noise in the sums and what noise in both models leaves in together are smallest.

    Attributes:
        covariates: The covariates of all models. A short list: each one costs accuracy.
        estimand: `ATE`, `ATT` or `ATO`.
        clip: Propensities are kept within clip and 1 - clip.
        limit: Scores are kept within so many half ranges of the outcome, half as many for ATT and a quarter for ATO,
            where weights are smaller. Noise in the estimate is in proportion to it. If left out, 5 for a number and 20
            for a yes-or-no outcome, of which single units miss far more.

    Reference:
        Robins, Rotnitzky and Zhao (1994) for augmented scores. Of the private versions, that of Schröder, Hartenstein
        and Feuerriegel (2025) does not pay for the models, and that of Lebeda, Even, Bellet and Josse (2025) trains
        them in each of many folds; here the models are private themselves and serve all units.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = DoublyRobust(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.35, 0.08)
    """

    covariates: Sequence[str]
    estimand: AugmentedEstimand = "ATE"
    clip: float = 0.05
    limit: float | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """The effect, for epsilon and delta in all; with delta 0 all noise is Laplace's."""
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
            limit = 20.0 if isinstance(schema.outcome, Binary) else 5.0
        kept = limit * _WEIGHTS.get(self.estimand, 1.0) if is_number(limit) else limit  # the query refuses the rest
        return AugmentedScores(self.covariates, propensity, control, treated, self.estimand, self.clip, kept)

    def _split(self, source: Source, guarantee: Guarantee) -> tuple[Guarantee, Guarantee, Guarantee]:
        """The guarantee in three parts, for moments, propensity and sums: the best of a public list.

        Noise is taken to be in proportion to 1 / epsilon, arms to be even, covariates to have a variance of 1/6 and
        outcomes a standard deviation of 0.4, in half ranges, half of which covariates explain.
        """
        schema, variance = source.schema, 1 / 6
        features, nothing = (
            len(design_names(self.covariates, schema)),
            [0.0] * len(feature_names(self.covariates, schema)),
        )
        moments = RegressionMoments(self.covariates)
        kinds = [Moment(first, FIRST_FEATURE, signed=False) for first in (OUTCOME, FIRST_FEATURE)]
        places = map(moments.moments(schema).index, kinds)
        slope, square = (_scale(moments, place, schema, guarantee) / source.n for place in places)
        noise = _scale(self._query(schema, nothing, nothing, nothing), 0, schema, guarantee) / source.n
        missed = 0.2 * (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2 / math.sqrt(features)

        def expected(shares: tuple[float, float]) -> float:
            noise_sd = self._propensity_uncertainty(source, guarantee.epsilon * shares[1], variance / 4).noise_sd
            attenuation = min((features + 1) * (square / shares[0] / variance) ** 2, 1.0)
            residual_confounding = noise_sd * math.hypot(slope / shares[0] / math.sqrt(variance), attenuation * missed)
            return math.hypot(noise / _WEIGHTS[self.estimand] / (1 - shares[0] - shares[1]), residual_confounding)

        best = min(_SHARES, key=expected)
        second, rest = guarantee.split(best[1], pure_first=True)
        first, third = rest.split(best[0] / (1 - best[1]))
        return first, second, third

    def _residual_confounding(self, source: Source, fit: OutcomeRegressions, epsilon: float) -> float:
        """What noise in the models leaves in.

        Where propensities are not clipped that is the product of the two models' errors, which have random directions;
        for ATT the control arm's regression counts, for the others each arm's by the share of the other arm. As far as
        noise blurs a regression, it may miss what covariates explain: half of the outcome's spread, say. Where a
        propensity is clipped, the error of the regression is not taken off again.
        """
        treated, inverse = fit.treated_share, float((1 / fit.feature_variances).mean())
        shares, uneven = (treated, 1 - treated), 1 - 2 * treated
        if self.estimand == "ATT":
            shares, uneven = (1.0, 0.0), treated
        noise = np.sqrt(fit.noise_variance[0] * inverse) * shares
        differing = uneven * float(fit.undetected[0]) * math.sqrt(inverse)
        missed = min(fit.attenuation, 1.0) * math.sqrt(float(fit.variances[0].mean()) / len(fit.feature_variances)) / 2
        noise_sd = self._propensity_uncertainty(source, epsilon, treated * (1 - treated) / inverse).noise_sd
        product = noise_sd * math.hypot(*noise, differing, missed)
        own = fit.noise_variance[0] + ((1 - fit.sizes[0] / fit.n[0]) * fit.undetected[0]) ** 2  # each arm's own error
        clipped = np.sqrt(own * inverse * len(fit.feature_variances)) * self._clipped(treated)
        return math.hypot(product, *clipped)

    def _clipped(self, treated: float) -> tuple[float, float]:
        """How much of each arm's outcomes clipping leaves out of weights, if logits have a standard deviation of 1."""
        places = np.linspace(-3, 3, 61)
        density = np.exp(-(places**2) / 2) / np.exp(-(places**2) / 2).sum()
        logits = [math.log(share / (1 - share)) + places for share in (1 - treated, treated)]
        control, of_treated = (np.maximum(1 - 1 / (1 + np.exp(-each)) / self.clip, 0.0) @ density for each in logits)
        return float(control), float(of_treated)

    def _propensity_uncertainty(self, source: Source, epsilon: float, spread: float) -> PropensityUncertainty:
        return PropensityUncertainty.of(
            source.n, epsilon, len(self.covariates), len(feature_names(self.covariates, source.schema)), spread
        )

    def _effect(
        self, source: Source, guarantee: Guarantee, fit: OutcomeRegressions, releases: tuple[Release, Release, Release]
    ) -> Effect:
        mean = _Mean(releases[2], source, fit, releases[0])
        residual_confounding = self._residual_confounding(source, fit, releases[1].guarantee.epsilon)
        # The regression tells the mean without treatment, of all units; the scores tell how far the other is from it.
        control = sum(source.schema.outcome_bounds) / 2 + float(fit.standardised[0, 0])
        ate = self.estimand == "ATE"
        effect = Effect(
            estimand=f"{ESTIMANDS[self.estimand]}, propensities kept within {self.clip:g} and {1 - self.clip:g}",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=mean.estimate,
            sampling_sd=mean.sampling_sd,
            noise=(*mean.noise, NoiseTerm("gaussian", residual_confounding)),
            n=source.n,
            method=f"{self.estimand} by augmented scores with private models of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=(
                f"no confounders but {', '.join(self.covariates)}",
                "outcomes are linear in these in each arm, or treatment follows a logistic regression on them",
                "one unit's outcome does not depend on another unit's arm",
                f"for the interval: few propensities lie beyond {self.clip:g} and {1 - self.clip:g}",
                *source.schema.data_handling,
            ),
            receipts=tuple(release.receipt for release in releases),
            notes=(SAMPLING_BELOW_NOISE,) * mean.floored + source.caveats,
            no_interval=hidden_arm(releases[0], source, fit)
            or self._doubt(mean, residual_confounding, fit.treated_share),
            control_mean=control if ate else None,
            treated_mean=control + mean.estimate if ate else None,
        )
        return warned(effect, source.schema, signs_of_moments(releases[0], source, fit))

    def _doubt(self, mean: "_Mean", residual_confounding: float, treated: float) -> str:
        if max(self._clipped(treated)) > 0.02:
            return f"an arm is so small that many of its propensities may lie beyond {self.clip:g}; lower clip"
        error = math.hypot(mean.sampling_sd, *(math.sqrt(term.variance) for term in mean.noise))
        if mean.cut_off > error or mean.could_be_cut_off > 2 * error:
            return "scores beyond the limit may bias the estimate by more than the interval would show; raise limit"
        if residual_confounding > error:
            return confounding_message("the models", self.covariates)
        return ""


class _Mean:
    """The mean score for each unit of target, as it follows from the released sums, and what the limit may take off."""

    def __init__(self, sums: Release, source: Source, fit: OutcomeRegressions, moments: Release) -> None:
        query: AugmentedScores = sums.query  # type: ignore[assignment]
        value = {name: sums.value(name) for name in sums.names}
        counted = "compared" in moments.names
        known = query.estimand == "ATE" and not counted  # every unit is a target
        target_sum = (
            float(fit.n[0]) if known else max(value["target_sum"], 2 * math.sqrt(sums.variance("target_sum")), 1.0)
        )
        self.estimate = value["score"] / target_sum
        self.noise = [sums.noise_term("score", 1 / target_sum)]
        if not known:
            self.noise.append(sums.noise_term("target_sum", abs(self.estimate) / target_sum))
        low, high = source.schema.outcome_bounds
        largest = (query.limit * (high - low) / 2) ** 2
        most = float(fit.n[0]) * largest
        squares = (
            most
            - value["deficit"]
            - 2 * self.estimate * value["product"]
            + self.estimate**2 * value["target_square_sum"]
        )
        # What noise could hide counts as that much, so that no luck makes an interval too narrow.
        hidden = math.sqrt(sums.variance("deficit") + (moments.variance("compared") * largest**2 if counted else 0.0))
        self.floored = squares < hidden
        self.sampling_sd = math.sqrt(min(max(squares, hidden), max(4 * most, hidden))) / target_sum
        # A score beyond the limit loses half of the limit, say.
        each, doubt = query.limit * (high - low) / 4 / target_sum, 2 * math.sqrt(sums.variance("clipped"))
        self.cut_off = value["clipped"] * each if value["clipped"] > doubt else 0.0
        self.could_be_cut_off = doubt * each


def _scale(query: Query, place: int, schema: Schema, guarantee: Guarantee) -> float:
    """The size of the noise that one of a query's numbers would have."""
    noise = calibrate(query, schema, guarantee)
    return float(noise.scales[place] or 0.0) * noise.sensitivity.coordinates[place].tick
