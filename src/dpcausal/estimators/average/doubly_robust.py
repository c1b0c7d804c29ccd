"""Augmented inverse probability weighting: outcome regressions, corrected by weighting their residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.adjusted_means import adjusted_means
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.interval_policy import (
    MAX_CUT_OFF,
    MIN_RESOLUTION,
    arm_clipped,
    hidden_features,
    hidden_names,
    limit_bias,
    whole_range,
)
from dpcausal.estimators.messages import MEANS_BY_REGRESSION, NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.model_errors import PropensityError
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions, fit_noise_aware
from dpcausal.estimators.observed_scores import effect_in_all
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    arm_refusal,
    as_score_coefficients,
    fit_regressions,
    sampling_covariance,
    signs_of_moments,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.propensity import ESTIMANDS, PropensityUncertainty, score_query
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import SCALED_VARIANCE, left_by_scores
from dpcausal.estimators.score_limit import best_limit, cut_off_loss, far_outcomes
from dpcausal.estimators.weighted_moments import (
    Moments,
    slope_moments,
    spread_as_all_units,
    units_compared,
)
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import AugmentedScores, Query, WeightedRegressionMoments
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.features import design_names, feature_names, numbers_among
from dpcausal.queries.regression_moments import FIRST_FEATURE, OUTCOME, Moment
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.sums.limits import TooMuchWorkError
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.interval import NoiseTerm, half_width
from dpcausal.utils.validation import is_number

_WEIGHTS: dict[AugmentedEstimand, float] = {"ATE": 1.0, "ATT": 0.5, "ATO": 0.25}
"""The size of the weights, and so of scores, relative to those of ATE where arms are even."""

_NUMBER_LIMIT, _BINARY_LIMIT = 5.0, 20.0
"""Default limits: single units of a binary outcome have far larger residuals."""

_SHARES = tuple((moments, propensity) for moments in (0.15, 0.2, 0.3, 0.4) for propensity in (0.2, 0.25, 0.3))
"""The shares of epsilon that moments and propensity may get."""

_OVERLAP = 1 / 6
"""The propensity's e (1 - e), on average, that the choice of shares expects: arms are seldom even and alike."""

_EXPLAINED_SD = 0.2
"""The standard deviation that covariates explain, in half ranges: half of an outcome's 0.4, as the choice expects."""

_CLIPS = (0.05, 0.04, 0.03, 0.02, 0.015, 0.01)
"""The default clips, of which the largest is used that leaves out little."""

LARGEST_CLIP = _CLIPS[0]
"""The default clip where arms overlap well."""

_FAR = 2.0**20
"""A coefficient beyond all others."""

_SEEN_SDS, _SURE_SDS = 1.0, 2.0
"""Scores beyond the limit count where their number exceeds so many standard deviations of its noise. An interval is
refused for what is beyond so many: luck must not refuse it."""


@dataclass(frozen=True)
class DoublyRobust(BaseEstimator):
    """The mean of augmented scores (AIPW): predictions of outcome regressions plus weighted means of their residuals.

    Estimand:
        The average treatment effect over all units (ATE), over the treated (ATT), or over the overlap population, where
        a unit counts as e (1 - e), e its propensity score (ATO). Units are those with an outcome. With
        `include_missing` they are all units in the two arms, with an outcome or without.

    Assumptions:
        The covariates hold all confounders, and one of two models is right: outcomes are linear in covariates in each
        arm, or treatment follows a logistic regression on them. Propensities beyond `clip` and scores beyond `limit`
        are rare. Outcomes are missing at random given covariates and arm. With `include_missing` the second model
        includes that having an outcome follows a logistic regression in each arm, and no unit hardly ever has one.

    Privacy:
        Three queries share epsilon and delta: noisy moments for the outcome regressions, a private logistic
        regression, and sums of scores that use both. The shares depend on n, epsilon, delta and the schema only. They
        minimise the noise in the sums and the residual confounding from noise in the models, taken together. The
        logistic regression has no delta, nor has a query that needs less noise without one. With a delta, units whose
        covariates are far out count less in the outcome regressions, which makes the noise in these much smaller. The
        scores correct the difference for that, but not the level: such an effect has no means of the arms.
        With `include_missing` there are five: also sums of covariates over all units, and private logistic regressions
        of having an outcome, which is as protected as the outcome.
        Numbers have scales as for `RegressionAdjustment`, perhaps from one more query.

    The interval allows for models that are linear in a number itself or in its normal score: the scale is halfway
    between both, unless `transform` declares a shape. The score is corrected for its ridge. What noise in both models
    leaves in is part of the standard error, as privacy noise: its distribution follows from the posterior of the
    regressions and from the known noise in the score. There is no interval where clipping leaves out more than a tenth
    of an arm's weights, where scores beyond the limit seem to bias the estimate by more than twice its standard error
    (it allows for less), where noise hides how a number varies that has no scale, or every covariate, or where the
    interval would be as wide as the range of possible effects.

    Attributes:
        covariates: The covariates of all models. Keep the list short: each one costs accuracy.
        estimand: `ATE`, `ATT` or `ATO`.
        clip: Propensities are clipped to clip and 1 - clip. By default the largest of 0.05, 0.04, 0.03, 0.02, 0.015 and
            0.01 that leaves out at most 2 % of an arm's weights, by the released score.
        limit: Scores are limited to so many half ranges of the outcome, half as many for ATT and a quarter for ATO,
            where weights are smaller. Noise in the estimate is in proportion to it. By default 20 for a binary outcome,
            where single units have large residuals, and 5 for a number, more with a clip below 0.05, in proportion to
            its root. For a number, and for ATO, it is between a sixteenth of that and twice that: where the released
            residual variance, arms' means and propensities suggest that the interval is narrowest.
        include_missing: Whether the average is over units without an outcome too, for ATE. By default it is over those
            with one. Residuals are then over the probability to have an outcome too, clipped to at least `clip`.

    Reference:
        Robins, Rotnitzky and Zhao (1994) for augmented scores. Of the private versions, that of Schröder, Hartenstein
        and Feuerriegel (2025) does not pay for the models, and that of Lebeda, Even, Bellet and Josse (2025) trains
        them in each of many folds. Here the models are private themselves and serve all units; the
        distribution of what their noise leaves in is ours.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = DoublyRobust(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.37, 0.1)
    """

    also_called: ClassVar[str] = "aipw dr aipwe dml double_ml doubleml tmle augmented_inverse_probability_weighting"
    estimates_average: ClassVar[bool] = True

    covariates: Sequence[str]
    estimand: AugmentedEstimand = "ATE"
    clip: float | None = None
    limit: float | None = None
    include_missing: bool = False

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and at most delta."""
        allowed = guarantee_for(source, epsilon, delta)
        over_all = self._includes_missing(source)  # before anything is spent
        scaled = with_scales(source, self.covariates, allowed)
        if over_all:
            clips = _CLIPS if self.clip is None else (self.clip,)
            return effect_in_all(scaled, allowed, clips, partial(self._limit, source.schema))
        shares = self._shares(scaled.source, allowed)  # of what was declared: indicators must not change a price
        return replace(self, covariates=scaled.covariates)._augmented(scaled, allowed, shares)  # noqa: SLF001

    def _augmented(self, scaled: ScaledCovariates, allowed: Guarantee, shares: tuple[float, float]) -> Effect:
        """Return the effect, from models of covariates that have a scale."""
        source = scaled.source
        moments_from, propensity_from, sums_from = self._split(source, scaled.rest, shares)
        score, outcomes = score_query(self.covariates, source.schema), self._moments(source, scaled.rest)
        propensity = source.release(score, propensity_from)  # of fewest units: first
        moments = source.release(outcomes, moments_from)
        regressions = fit_noise_aware(moments, source)
        fit = _with(regressions, fit_regressions(moments, source, np.array([moments.values])))
        spread = spread_as_all_units(fit, moments, source)
        error = PropensityError.of(propensity, spread, regressions.centres, source.schema)
        lines = replace(fit, means=regressions.means[None], centres=np.array([[regressions.centres] * 2]))
        models = [as_score_coefficients(lines, arm, self.covariates, source.schema) for arm in (0, 1)]
        query = self._query(source.schema, error.released, *models, clip=self._clip(error))
        # Of a binary outcome with large weights, far scores are few, alike in sign, and not as a mean risk has them.
        if self.limit is None and (self.estimand == "ATO" or not isinstance(source.schema.outcome, Binary)):
            query = replace(query, limit=self._best_limit(query, error, fit, source, sums_from))
        sums = source.release(query, sums_from)
        return self._effect(scaled, allowed, (fit, regressions, error), (moments, propensity, sums))

    def _includes_missing(self, source: Source) -> bool:
        """Return whether the average is over units without an outcome too, where there can be any."""
        if self.include_missing and self.estimand != "ATE":
            raise QueryError(
                expected='estimand="ATE" with include_missing=True',
                got=f"estimand={self.estimand!r}",
                hint="leave include_missing out for the effect among units with an outcome.",
            )
        return self.include_missing and source.schema.outcome_may_be_missing

    def _clip(self, propensity: PropensityError) -> float:
        """Return the clip: the largest one that leaves out little of both arms, by the released score."""
        if self.clip is not None:
            return self.clip
        return next((clip for clip in _CLIPS if _cut_off(propensity, clip) <= MAX_CUT_OFF), _CLIPS[-1])

    def _query(
        self,
        schema: Schema,
        propensity: Sequence[float],
        control: Sequence[float],
        treated: Sequence[float],
        *,
        clip: float,
    ) -> AugmentedScores:
        scaled = self._limit(schema, clip)
        return AugmentedScores(self.covariates, propensity, control, treated, self.estimand, clip, scaled)

    def _limit(self, schema: Schema, clip: float) -> float:
        """Return the limit of scores, in half ranges of the outcome."""
        limit = self.limit
        if limit is None:
            limit = _BINARY_LIMIT if isinstance(schema.outcome, Binary) else _NUMBER_LIMIT
            limit *= math.sqrt(max(_CLIPS[0] / clip, 1.0)) if is_number(clip) and clip > 0 else 1.0
        return limit * _WEIGHTS.get(self.estimand, 1.0) if is_number(limit) else limit  # the query refuses the rest

    def _best_limit(
        self,
        query: AugmentedScores,
        propensity: PropensityError,
        fit: OutcomeRegressions,
        source: Source,
        guarantee: Guarantee,
    ) -> float:
        """Return the limit of scores, by released residuals and propensities, given a query with the usual one."""
        schema, binary = source.schema, isinstance(source.schema.outcome, Binary)
        half, units = (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2, float(fit.n[0])
        weights, variances = propensity.weights(self.estimand, query.clip), fit.variances[0] / half**2
        squares = sum(
            float(frequent @ weight**2 * variance)
            for (weight, frequent), variance in zip(weights, variances, strict=True)
        )
        seen = bool((fit.variances[0] > fit.hidden_variances[0]).all())

        def spread(limit: float) -> float:
            if limit > query.limit and not seen:  # a variance that is mostly noise asks for no larger limit
                return math.inf
            try:
                sds = _noise_sds(replace(query, limit=limit), schema, guarantee, source.rule)
            except TooMuchWorkError:  # a vault would refuse it, after models are paid for
                return math.inf
            # A sampling error that noise could hide counts as that much.
            sampling = max(squares * units, sds["deficit"] / half**2)
            return math.sqrt(sampling + (sds["score"] / half) ** 2) / units

        outcomes = [
            far_outcomes(float(fit.means[0, arm]) / half, float(variances[arm]), binary=binary) for arm in (0, 1)
        ]
        return best_limit(query.limit, spread, weights, outcomes)

    def _shares(self, source: Source, guarantee: Guarantee) -> tuple[float, float]:
        """Return the shares of moments and propensity with the least expected error.

        Noise is taken to be in proportion to 1 / epsilon, and arms to be even.
        """
        schema, variance = source.schema, SCALED_VARIANCE
        features = len(design_names(self.covariates, schema))
        score, moments = score_query(self.covariates, schema), self._moments(source, guarantee)
        kinds = [Moment(first, FIRST_FEATURE, signed=False) for first in (OUTCOME, FIRST_FEATURE)]
        places, sds = map(moments.moments(schema).index, kinds), _noise_sds(moments, schema, guarantee, source.rule)
        slope, square = (list(sds.values())[place] / source.n for place in places)
        sums = self._far_scores(schema)
        least = narrower(sums, source, guarantee, "score")
        noise = _noise_sds(sums, schema, least, source.rule)["score"] / source.n
        explained = _EXPLAINED_SD * (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2 / math.sqrt(features)

        def expected(shares: tuple[float, float]) -> float:
            noise_sd = PropensityUncertainty.of(
                source.n, guarantee.epsilon * shares[1], score, schema, _OVERLAP
            ).noise_sd
            attenuation = min((features + 1) * (square / shares[0] / variance) ** 2, 1.0)
            residual = noise_sd * math.hypot(slope / shares[0] / math.sqrt(variance), attenuation * explained)
            return math.hypot(noise / _WEIGHTS[self.estimand] / (1 - shares[0] - shares[1]), residual)

        return min(_SHARES, key=expected)

    def _split(
        self, source: Source, guarantee: Guarantee, shares: tuple[float, float]
    ) -> tuple[Guarantee, Guarantee, Guarantee]:
        """Split the guarantee for moments, propensity and sums."""
        second, rest = guarantee.split(shares[1], pure_first=True)
        first, third = rest.split(shares[0] / (1 - shares[1]))
        # Laplace noise is smaller in the few sums, so that the moments may have all of delta.
        third = narrower(self._far_scores(source.schema), source, third, "score")
        if third.delta == 0:
            first = replace(first, delta=guarantee.delta)
        return narrower(self._moments(source, guarantee), source, first, "arm * outcome"), second, third

    def _far_scores(self, schema: Schema) -> AugmentedScores:
        """Return a query of scores with a propensity that makes them reach their limit."""
        nothing = [0.0] * self._coefficients(schema)
        far = [0.0, *(_FAR for _ in nothing[1:])]
        return self._query(schema, far, nothing, nothing, clip=_CLIPS[0] if self.clip is None else self.clip)

    def _moments(self, source: Source, guarantee: Guarantee) -> Moments:
        return slope_moments(self.covariates, source, guarantee)

    def _coefficients(self, schema: Schema) -> int:
        return len(feature_names(self.covariates, schema))

    def _effect(
        self,
        scaled: ScaledCovariates,
        allowed: Guarantee,
        models: tuple[OutcomeRegressions, NoiseAwareRegressions, PropensityError],
        releases: tuple[Release, Release, Release],
    ) -> Effect:
        source, (fit, regressions, propensity) = scaled.source, models
        receipts = (*scaled.receipts, *(release.receipt for release in releases))
        query: AugmentedScores = releases[2].query  # type: ignore[assignment]
        usual = self._limit(source.schema, query.clip)
        mean = _Mean(releases[2], source, units_compared(releases[0], source), releases[0], usual)
        left_in = NoiseTerm("gaussian", propensity.left_in(regressions, self.estimand, query.clip))
        noise = (*mean.noise, left_in)
        cut_off = 0.0 if self.estimand == "ATO" else _cut_off(propensity, query.clip)
        names = design_names(self.covariates, source.schema)
        hidden = hidden_features(list(regressions.resolution), names)
        numbers = numbers_among(self.covariates, source.schema)
        # Of a value of a category, its share bounds what it can confound; of a hidden number, nothing does.
        unadjusted = tuple(name for name in hidden_names(list(regressions.resolution), names) if name in numbers)
        if float(regressions.resolution.max()) < MIN_RESOLUTION:
            unadjusted = tuple(self.covariates)
        refusal = arm_refusal(releases[0], source, fit)
        # The regression gives the mean of all units without treatment; the scores give the distance to the other.
        # One of units with weights does not: nothing corrects it where outcomes are not linear.
        has_means = self.estimand == "ATE" and not isinstance(releases[0].query, WeightedRegressionMoments)
        control = sum(source.schema.outcome_bounds) / 2 + float(regressions.means[0])
        effect = Effect(
            estimand=ESTIMANDS[self.estimand],
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=mean.estimate,
            sampling_sd=mean.sampling_sd,
            noise=noise,
            n=source.n,
            method=f"{self.estimand} by augmented scores with private models of {', '.join(self.covariates)}, "
            f"propensities clipped to {query.clip:g} and {1 - query.clip:g}",
            guarantee=spent(allowed, receipts),
            assumptions=(
                no_confounders_but(self.covariates),
                "outcomes are linear in these in each arm, or treatment follows a logistic regression on them",
                NO_INTERFERENCE,
                f"for the interval: few propensities are beyond {query.clip:g} and {1 - query.clip:g}",
                *((MEANS_BY_REGRESSION,) if has_means else ()),
                *source.schema.data_handling,
            ),
            receipts=receipts,
            sampling_is_a_bound=bool(mean.floored),
            target=self.estimand,
            clip=query.clip,
            notes=(hidden,) * bool(hidden) + scaled.notes + source.caveats,
            unadjusted=() if refusal else unadjusted,
            no_interval=refusal
            or (hidden if unadjusted else "")
            or arm_clipped(cut_off, query.clip)
            or limit_bias(mean.surely_cut_off, mean.error)
            or whole_range(half_width(mean.sampling_sd, noise, 0.95), source.schema.outcome_bounds, self.covariates),
            arm_means=adjusted_means(
                source.schema,
                (control, control + mean.estimate),
                sampling_sd=mean.sampling_sd,
                noise=noise,
                sampling=sampling_covariance(fit),
                # The level has the noise of the moments, the difference that of the scores.
                noise_covariance=np.full((2, 2), regressions.mean_covariance[0, 0])
                + np.diag([0.0, sum(term.variance for term in noise)]),
            )
            if has_means
            else None,
        )
        by_scores = left_by_scores(
            scaled,
            names,
            regressions.adjustments(fit),
            regressions.resolution,
            ends=left_at_ends(releases[0], source),
        )
        effect = effect.with_bias(mean.cut_off + by_scores)
        return warned(effect, source.schema, signs_of_moments(releases[0], source, fit))


class _Mean:
    """The mean score over the target population, from the released sums, and the bias that the limit may cause.

    Args:
        usual: The limit where none was chosen.
    """

    def __init__(self, sums: Release, source: Source, units: float, moments: Release, usual: float) -> None:
        query: AugmentedScores = sums.query  # type: ignore[assignment]
        value = {name: sums.value(name) for name in sums.names}
        counted = "compared" in moments.names
        known = query.estimand == "ATE" and not counted  # every unit is a target
        least = max(2 * math.sqrt(sums.variance("target_sum")), 1.0)

        def targets(value: ValueOf) -> Numbers:
            return units if known else within(value("target_sum"), least, math.inf)

        mean = sums.estimates(["mean score"], lambda value: [value("score") / targets(value)])
        self.estimate, self.noise, target_sum = mean.values[0], mean.noise_along((1.0,)), targets(sums.value)
        low, high = source.schema.outcome_bounds
        square = (query.limit * (high - low) / 2) ** 2
        most = units * square
        correction = self.estimate * (self.estimate * value["target_square_sum"] - 2 * value["product"])
        squares = most - value["deficit"] + correction
        # A sum below what noise could hide counts as that much, so that luck cannot make an interval too narrow.
        hidden = math.sqrt(sums.variance("deficit") + (moments.variance("compared") * square**2 if counted else 0.0))
        self.floored = squares < hidden
        self.sampling_sd = math.sqrt(min(max(squares, hidden), max(4 * most, hidden))) / target_sum
        self.error = math.hypot(self.sampling_sd, *(math.sqrt(term.variance) for term in self.noise))
        loss = cut_off_loss(query.limit, usual) * (high - low) / 2 / target_sum
        noise_sd = math.sqrt(sums.variance("clipped"))
        self.cut_off = value["clipped"] * loss if value["clipped"] > _SEEN_SDS * noise_sd else 0.0
        self.surely_cut_off = max(value["clipped"] - _SURE_SDS * noise_sd, 0.0) * loss


def _with(regressions: NoiseAwareRegressions, fit: OutcomeRegressions) -> OutcomeRegressions:
    return replace(fit, slopes=regressions.slopes[None])


def _cut_off(propensity: PropensityError, clip: float) -> float:
    """Return the share of units that clipping leaves out of the weights, in the arm where it is larger."""
    return max(float(each[0]) for each in propensity.clipped(clip))


def _noise_sds(query: Query, schema: Schema, guarantee: Guarantee, rule: Rule) -> dict[str, float]:
    """Return the standard deviation of the noise in each of a query's numbers, in their order."""
    noise = calibrate(query, schema, guarantee, rule)
    root = math.sqrt(2) if noise.family == "laplace" else 1.0
    coordinates = zip(noise.sensitivity.coordinates, noise.scales, strict=True)
    return {each.name: float(scale or 0.0) * each.tick * root for each, scale in coordinates}
