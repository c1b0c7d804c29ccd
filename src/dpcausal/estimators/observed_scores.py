"""The effect in all units, with an outcome or without: regressions averaged over all, and residuals weighted to all.

If outcomes are missing at random given arm and covariates, the residuals of units with an outcome, over the probability
to be in their arm and that to have an outcome in it, stand for those of all units in both arms. So the effect is that
of the regressions at the mean covariates of all, plus the mean of weighted residuals. It is right if the regressions
are, or if both probabilities are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpcausal.estimators.adjusted_means import adjusted_means
from dpcausal.estimators.all_units import EFFECTS_VARY, OVER_ALL, AllUnits, ask_all_units, missing_at_random
from dpcausal.estimators.covariate_scales import ScaledCovariates
from dpcausal.estimators.interval_policy import (
    MAX_CLIPPED,
    MAX_CUT_OFF,
    hidden_covariates,
    limit_bias,
    score_drowned,
    whole_range,
)
from dpcausal.estimators.messages import MEANS_BY_REGRESSION, NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.model_errors import FittedOn, PropensityError, averaged, second_moments
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions, fit_noise_aware
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    arm_refusal,
    as_score_coefficients,
    fit_regressions,
    sampling_covariance,
    signs_of_moments,
    unadjusted_covariates,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import left_by_scores
from dpcausal.guarantee import Guarantee
from dpcausal.queries import AllUnitsLogistic, ObservedLogistic, ObservedScores, VaryingEffectMoments
from dpcausal.queries.features import design_names, feature_names
from dpcausal.release import Receipt, Release
from dpcausal.results.effect import Effect
from dpcausal.source import Source
from dpcausal.uncertainty.interval import NoiseTerm, half_width
from dpcausal.utils.arrays import Array

_PROPENSITY, _OBSERVED, _MOMENTS = 0.15, 0.25, 0.5
"""The share of the guarantee that the propensity gets; those that the probability of an outcome, and then the moments,
get of what is left."""

_MODELS = (
    "outcomes are linear in these in each arm, or logistic regressions on them describe who is treated and who has an "
    "outcome in each arm"
)

_SEEN_SDS, _SURE_SDS = 1.0, 2.0
"""As in `DoublyRobust`."""

_LOSS = 0.5
"""What a score beyond the limit loses on average, in limits."""


def _chance(logits: Array) -> Array:
    chance: Array = 1 / (1 + np.exp(-logits))
    return chance


@dataclass(frozen=True)
class ModelsOfAll:
    """What was released about all units, and the models of it.

    Attributes:
        regressions: The posterior of `fit`, averaged over units with an outcome.
        observed: The probability to have an outcome in each arm; its `arms` are all units.
    """

    everyone: AllUnits
    moments: Release
    fit: OutcomeRegressions
    regressions: NoiseAwareRegressions
    averaged: NoiseAwareRegressions
    propensity: PropensityError
    observed: tuple[PropensityError, PropensityError]
    receipts: tuple[Receipt, ...]

    @classmethod
    def ask(cls, source: Source, covariates: Sequence[str], allowed: Guarantee) -> tuple[Self, Guarantee]:
        """Return the models, and what is left of a guarantee for the scores."""
        everyone, rest = ask_all_units(source, covariates, allowed)
        first, rest = rest.split(_PROPENSITY, pure_first=True)
        second, rest = rest.split(_OBSERVED, pure_first=True)
        third, last = rest.split(_MOMENTS)
        score = source.release(AllUnitsLogistic(covariates), first)
        seen = source.release(ObservedLogistic(covariates), second)
        query = VaryingEffectMoments(covariates)
        moments = source.release(query, narrower(query, source, third, "arm * outcome"))
        posterior = fit_noise_aware(moments, source, EFFECTS_VARY)
        fit = fit_regressions(moments, source, np.array([moments.values]))
        fit = replace(fit, slopes=posterior.slopes[None])

        centres, units = posterior.centres, everyone.n
        # Covariates vary among all units as among those with an outcome, around another mean.
        moved = np.eye(len(centres) + 1)
        moved[1:, 0] = everyone.centre - centres
        whole = moved @ second_moments(fit, centres).sum(axis=0) @ moved.T
        on_all = FittedOn(score, centres, source.schema, units, whole)
        error = PropensityError.corrected(score.values, on_all, whole[None])
        treated = averaged(error.coefficients, whole, _chance)
        arms = np.array([whole - treated, treated])
        names = feature_names(covariates, source.schema)
        observed = [
            PropensityError.corrected(
                [seen.value(name) for name in ObservedLogistic.of_arm(place, names)],
                FittedOn(seen, centres, source.schema, units * arm[0, 0], arm / arm[0, 0]),
                whole[None],
            )
            for place, arm in enumerate(arms)
        ]
        made = cls(
            everyone,
            moments,
            fit,
            posterior,
            posterior.over(everyone.centre, everyone.noise),
            replace(error, arms=arms),
            (observed[0], observed[1]),
            (everyone.receipt, score.receipt, seen.receipt, moments.receipt),
        )
        return made, last

    @property
    def whole(self) -> Array:
        """The second moments of all units."""
        whole: Array = self.propensity.arms.sum(axis=0)
        return whole

    def query(self, covariates: Sequence[str], source: Source, clip: float, limit: float) -> ObservedScores:
        """Return the query of scores with these models."""
        lines = replace(
            self.fit, means=self.regressions.means[None], centres=np.array([[self.regressions.centres] * 2])
        )
        control, treated = (as_score_coefficients(lines, arm, covariates, source.schema) for arm in (0, 1))
        in_control, in_treated = (each.released for each in self.observed)
        return ObservedScores(
            covariates, self.propensity.released, control, treated, in_control, in_treated, clip, limit
        )

    def largest_clip(self, clips: Sequence[float]) -> float:
        """Return the largest of some clips that leaves out little of the weights."""
        return next((clip for clip in clips if self.cut_off(clip) <= MAX_CUT_OFF), clips[-1])

    def cut_off(self, clip: float) -> float:
        """Return the share of units that clipping leaves out of the weights, in the arm where it is larger."""
        return max(float(each[0]) for each in self._clipped(clip))

    def _clipped(self, clip: float) -> list[Array]:
        """Return the mean features of what clipping leaves out of each arm's weights, the share of units first."""
        by_arm = self.propensity.clipped(clip)
        return [of_arm + seen.clipped(clip)[1] for of_arm, seen in zip(by_arm, self.observed, strict=True)]

    def left_in(self, clip: float) -> float:
        """Return the standard deviation of what noise in the models leaves in the mean of scores.

        It is the product of two errors: of an arm's regression, and of the logarithm of its weights. The latter is an
        error of a logit, times the probability not to be in the arm, or not to have an outcome.
        """
        covariance = self.regressions.covariance
        control, treated = self.propensity.arms
        pairs = [(self.propensity.covariance, np.hstack([treated, control]))]
        for arm, seen in enumerate(self.observed):
            missing = averaged(seen.coefficients, self.whole, lambda logits: 1 - _chance(logits))
            pairs.append((seen.covariance, np.hstack([missing * (arm == 0), missing * (arm == 1)])))
        product = sum(float((noise * (weights @ covariance @ weights.T)).sum()) for noise, weights in pairs)
        clipped = self._clipped(clip)
        alone = np.concatenate([-clipped[0], clipped[1]])
        return math.sqrt(max(product, 0.0) + max(float(alone @ covariance @ alone), 0.0))

    @property
    def weight_noise_sd(self) -> float:
        """The standard deviation, over units, of the noise in the logarithm of weights, in the arm with more of it."""

        def of(error: PropensityError, share: Callable[[Array], Array]) -> float:
            return float((error.covariance * averaged(error.coefficients, self.whole, lambda at: share(at) ** 2)).sum())

        arms = (_chance, lambda logits: _chance(-logits))
        noise = [
            of(self.propensity, other) + of(seen, lambda logits: _chance(-logits))
            for other, seen in zip(arms, self.observed, strict=True)
        ]
        return math.sqrt(max(*noise, 0.0))


class _Mean:
    """The effect in all units, from the models of these and the released sums of scores."""

    def __init__(self, models: ModelsOfAll, sums: Release, source: Source) -> None:
        query: ObservedScores = sums.query  # type: ignore[assignment]
        everyone, value = models.everyone, {name: sums.value(name) for name in sums.names}
        units, added = everyone.n, value["score"] / everyone.n
        slopes = models.averaged.slopes[1] - models.averaged.slopes[0]
        # The regression gives the mean of all units without treatment; the scores give the distance to the other.
        self.control, self.estimate = float(models.averaged.means[0]), models.averaged.effect + added
        moved = math.sqrt(max(float(slopes @ everyone.noise @ slopes), 0.0))
        left_in = NoiseTerm("gaussian", math.hypot(models.left_in(query.clip), moved))
        self.noise = (sums.noise_term("score", 1 / units), left_in)
        # A sum below what noise could hide counts as that much, so that luck cannot make an interval too narrow.
        hidden, squares = math.sqrt(sums.variance("square")), value["square"] - units * added**2
        self.floored = squares < hidden
        line = np.concatenate([[0.0], slopes])
        spread = models.whole - np.outer(models.whole[0], models.whole[0])
        varied = max(float(line @ spread @ line), 0.0) / units
        self.sampling_sd = math.sqrt(max(squares, hidden) / units**2 + varied)
        error = math.hypot(self.sampling_sd, *(math.sqrt(term.variance) for term in self.noise))
        low, high = source.schema.outcome_bounds
        loss, noise_sd = _LOSS * query.limit * (high - low) / 2 / units, math.sqrt(sums.variance("clipped"))
        self.cut_off = value["clipped"] * loss if value["clipped"] > _SEEN_SDS * noise_sd else 0.0
        self.refusal = (
            _probabilities_clipped(models.cut_off(query.clip), query.clip)
            or score_drowned(models.weight_noise_sd, query.covariates)
            or limit_bias(max(value["clipped"] - _SURE_SDS * noise_sd, 0.0) * loss, error)
        )


def effect_in_all(
    scaled: ScaledCovariates, allowed: Guarantee, clips: Sequence[float], limit: Callable[[float], float]
) -> Effect:
    """Return the effect in all units, from models of covariates that have a scale.

    Args:
        scaled: The covariates, and what is left of the guarantee.
        clips: The clips to choose from, the largest first.
        limit: The limit of scores for a clip, in half ranges of the outcome.
    """
    source, covariates = scaled.source, scaled.covariates
    schema, names = source.schema, design_names(covariates, source.schema)
    models, last = ModelsOfAll.ask(source, covariates, scaled.rest)
    clip = models.largest_clip(clips)
    query = models.query(covariates, source, clip, limit(clip))
    sums = source.release(query, narrower(query, source, last, "score"))
    mean, everyone, fit = _Mean(models, sums, source), models.everyone, models.fit
    receipts = (*scaled.receipts, *models.receipts, sums.receipt)
    signs = signs_of_moments(models.moments, source, fit)
    resolution = models.regressions.resolution
    unadjusted = unadjusted_covariates(list(resolution), covariates, schema, signs.unread)
    refusal = arm_refusal(models.moments, source, fit)
    effect = Effect(
        estimand=f"average treatment effect{OVER_ALL}: mean outcome with all treated minus mean outcome with none",
        arms=schema.treatment.labels_or_values,
        outcome=schema.outcome.title,
        estimate=mean.estimate,
        sampling_sd=mean.sampling_sd,
        noise=mean.noise,
        n=source.n,
        method=f"ATE by augmented scores with private models of {', '.join(covariates)}, weighted for being observed, "
        f"probabilities clipped to at least {clip:g}",
        guarantee=spent(allowed, receipts),
        assumptions=(
            no_confounders_but(covariates),
            missing_at_random(covariates),
            _MODELS,
            NO_INTERFERENCE,
            f"for the interval: few probabilities of an arm, or of an outcome, are below {clip:g}",
            MEANS_BY_REGRESSION,
            *schema.data_handling,
        ),
        receipts=receipts,
        sampling_is_a_bound=bool(mean.floored),
        includes_missing=True,
        target="ATE",
        clip=clip,
        notes=(*scaled.notes, *everyone.notes, *source.caveats),
        unadjusted=() if refusal else unadjusted,
        no_interval=refusal
        or hidden_covariates(unadjusted, covariates)
        or mean.refusal
        or whole_range(half_width(mean.sampling_sd, mean.noise, 0.95), schema.outcome_bounds, covariates),
        arm_means=adjusted_means(
            schema,
            tuple(sum(schema.outcome_bounds) / 2 + mean.control + each for each in (0.0, mean.estimate)),
            sampling_sd=mean.sampling_sd,
            noise=mean.noise,
            sampling=sampling_covariance(fit),
            noise_covariance=np.full((2, 2), models.averaged.mean_covariance[0, 0])
            + np.diag([0.0, sum(term.variance for term in mean.noise)]),
        ),
    )
    apart = models.regressions.slopes[1] - models.regressions.slopes[0]
    adjusted = np.abs(models.regressions.adjustments(fit))
    adjusted += np.abs((everyone.centre - models.regressions.centres) * apart)
    allowance = left_by_scores(scaled, names, adjusted, resolution, ends=left_at_ends(models.moments, source))
    return warned(effect.with_bias(mean.cut_off + allowance), schema, signs)


def _probabilities_clipped(cut_off: float, clip: float) -> str:
    """Refuse where clipping leaves too many units without weights."""
    if cut_off <= MAX_CLIPPED:
        return ""
    few = "so few units that are like others in the covariates are in an arm and have an outcome"
    return f"{few} that many probabilities may be below {clip:g}; lower clip"
