"""Difference in means, adjusted by regressions of the outcome on covariates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.adjusted_means import adjusted_means
from dpcausal.estimators.all_units import EFFECTS_VARY, OVER_ALL, ask_all_units, missing_at_random
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.estimators.interval_policy import hidden_covariates, whole_range
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.narrower import narrower, spent
from dpcausal.estimators.noise_aware_regression import ARMS_DIFFER, fit_noise_aware
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    ProductSums,
    arm_refusal,
    fit_regressions,
    sampling_covariance,
    signs_of_moments,
    unadjusted_covariates,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import left_by_scores
from dpcausal.guarantee import Guarantee
from dpcausal.queries import RegressionMoments, VaryingEffectMoments
from dpcausal.queries.features import design_names
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.interval import NoiseTerm, half_width


@dataclass(frozen=True)
class RegressionAdjustment(BaseEstimator):
    """Difference in means, less the part that linear regressions on covariates explain.

    Estimand:
        The average treatment effect over all units with an outcome. With `include_missing` over all units in the two
        arms, with an outcome or without.

    Assumptions:
        The covariates hold all confounders, and in each arm the outcome's mean is linear in them (each value of a
        category has a coefficient of its own). Without `interaction`, one regression serves both arms: then the effect
        should not depend on covariates. Outcomes are missing at random given covariates and arm.

    Privacy:
        One query: noisy sums of products of arm, outcome and covariates, from which regressions are fitted. Covariates
        and outcome need public bounds; nothing else about a unit need be public. With delta 0 the noise grows with the
        square of the number of features, with a delta in proportion to it: from three on allow a small delta. Where
        delta 0 needs less noise, delta is not used.
        Numbers enter models by scores on a scale of their own. Where `typical` does not declare it, it comes from
        counts of all numbers' values: one more query, for at most a fifth of epsilon, which later estimators use again.
        With `include_missing` a tenth of what is left goes to sums of covariates over all units.

    The regressions know the size of the noise in their moments. Where noise hides what a covariate explains, the
    confounding that may be left in is part of the standard error, as privacy noise. It follows from a prior: covariates
    explain a third of the outcome's variance, or a twentieth of a binary outcome's, and as much again along the
    direction in which arms differ. The interval also allows for outcomes that are linear in a number itself or in its
    normal score: the scale is halfway between both, unless `transform` declares a shape. There is no interval where it
    would be as wide as the range of possible effects, or where noise hides how a covariate varies: not
    one of its values alone, but all of them.

    All units count alike, so in a trial randomisation alone makes the effect right, whatever the shape of outcomes is
    (Lin 2013). `DoublyRobust` has less noise with many covariates: in its regressions units far out count less, and
    its weighted residuals correct for that.

    Attributes:
        covariates: The covariates to adjust for. Keep the list short: each one costs accuracy.
        interaction: Whether each arm has a regression of its own, so that effects may depend on covariates.
        include_missing: Whether the average is over units without an outcome too. By default it is over those with one.

    Reference:
        Bernstein and Sheldon (2019), Differentially private Bayesian linear regression, for regressions that know the
        noise; Lin (2013), Agnostic notes on regression adjustments, for the interaction. The joint bound on all
        moments, their unequal shares of the noise and the prior are ours.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = RegressionAdjustment(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.37, 0.12)
    """

    also_called: ClassVar[str] = (
        "ols regression linear_regression ancova lm g_computation standardization cuped cupac cupid"
    )
    estimates_average: ClassVar[bool] = True

    covariates: Sequence[str]
    interaction: bool = True
    include_missing: bool = False

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and at most delta; delta is 0 where that needs less noise."""
        allowed = guarantee_for(source, epsilon, delta)
        self._includes_missing(source)  # before anything is spent
        scaled = with_scales(source, self.covariates, allowed)
        return replace(self, covariates=scaled.covariates)._adjusted(scaled, allowed)  # noqa: SLF001 (its own copy)

    def _adjusted(self, scaled: ScaledCovariates, allowed: Guarantee) -> Effect:
        """Return the effect, adjusted for covariates that have a scale."""
        source = scaled.source
        everyone, rest = None, scaled.rest
        query: ProductSums = RegressionMoments(self.covariates, self.interaction)
        if self._includes_missing(source):
            query = VaryingEffectMoments(self.covariates)
            everyone, rest = ask_all_units(source, self.covariates, rest)
        release = source.release(query, narrower(query, source, rest, "arm * outcome"))
        receipts = (*scaled.receipts, *([everyone.receipt] if everyone else []), release.receipt)
        posterior = fit_noise_aware(release, source, EFFECTS_VARY if everyone else ARMS_DIFFER)
        fit = fit_regressions(release, source, np.array([release.values]))
        sampled, adjusted = replace(fit, slopes=posterior.slopes[None]), np.abs(posterior.adjustments(fit))
        variance = float(sampled.sampling_variance[0])
        if everyone:
            adjusted += np.abs((everyone.centre - posterior.centres) * (posterior.slopes[1] - posterior.slopes[0]))
            posterior = posterior.over(everyone.centre, everyone.noise)
            variance = float(sampled.sampling_variance_over(everyone.n, everyone.centre)[0])
        sampling_sd = variance**0.5
        noise = _terms(release, fit, posterior.effect_variance)
        means = sum(source.schema.outcome_bounds) / 2 + posterior.means
        listed = ", ".join(self.covariates)
        signs = signs_of_moments(release, source, fit)
        unadjusted = unadjusted_covariates(list(posterior.resolution), self.covariates, source.schema, signs.unread)
        refusal = arm_refusal(release, source, fit)
        kind = " (risk difference)" * isinstance(source.schema.outcome, Binary) + OVER_ALL * bool(everyone)
        effect = Effect(
            estimand=f"average treatment effect{kind}: mean outcome with all treated minus mean outcome with none",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=posterior.effect,
            sampling_sd=sampling_sd,
            noise=noise,
            n=source.n,
            method=f"difference in means adjusted by regression {'in each arm ' * self.interaction}on {listed}",
            guarantee=spent(allowed, receipts),
            assumptions=(
                no_confounders_but(self.covariates),
                "outcomes are linear in these" + ("" if self.interaction else ", with one effect for all"),
                *((missing_at_random(self.covariates),) if everyone else ()),
                NO_INTERFERENCE,
                *source.schema.data_handling,
            ),
            receipts=receipts,
            includes_missing=everyone is not None,
            notes=(*scaled.notes, *(everyone.notes if everyone else ()), *source.caveats),
            unadjusted=() if refusal else unadjusted,
            no_interval=refusal
            or hidden_covariates(unadjusted, self.covariates)
            or whole_range(half_width(sampling_sd, noise, 0.95), source.schema.outcome_bounds, self.covariates),
            arm_means=adjusted_means(
                source.schema,
                means,
                sampling_sd=sampling_sd,
                noise=noise,
                sampling=sampling_covariance(fit),
                noise_covariance=posterior.mean_covariance,
            ),
        )
        features = design_names(self.covariates, source.schema)
        allowance = left_by_scores(scaled, features, adjusted, posterior.resolution, ends=left_at_ends(release, source))
        return warned(effect.with_bias(allowance), source.schema, signs)

    def _includes_missing(self, source: Source) -> bool:
        """Return whether the average is over units without an outcome too, where there can be any."""
        if self.include_missing and not self.interaction:
            raise QueryError(
                expected="interaction=True with include_missing=True, so that effects may depend on covariates",
                got="interaction=False",
                hint="leave interaction=False out, or include_missing=True: one effect for all is that of all units.",
            )
        return self.include_missing and source.schema.outcome_may_be_missing


def _terms(release: Release, fit: OutcomeRegressions, variance: float) -> tuple[NoiseTerm, ...]:
    """Return the noise in the difference of the arms' totals, and all other parts as one nearly normal term."""
    contrast = release.noise_term("arm * outcome", float((1 / fit.sizes[0]).mean()))
    return contrast, NoiseTerm("gaussian", max(variance - contrast.variance, 0.0) ** 0.5)
