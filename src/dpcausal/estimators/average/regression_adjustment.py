"""Difference in means, adjusted by regressions of the outcome on covariates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcausal.arrays import Array
from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.interval_policy import MAX_VARIANCE_RATIO, noisy_adjustment
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.estimators.outcome_regression import OutcomeRegressions, arm_refusal, fit_regressions, signs_of_moments
from dpcausal.estimators.plausibility import warned
from dpcausal.interval import NoiseTerm, simulated
from dpcausal.queries import RegressionMoments
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for

_DRAWS = 400
"""How often noise is simulated; its estimated standard deviation then has a relative error of 4 %."""


@dataclass(frozen=True)
class RegressionAdjustment(BaseEstimator):
    """Difference in means, less the part that linear regressions on covariates explain.

    Estimand:
        The average treatment effect over all units.

    Assumptions:
        The covariates hold all confounders, and in each arm the outcome's mean is linear in them (each value of a
        category has a coefficient of its own). Without `interaction`, one regression serves both arms: then the effect
        should not depend on covariates.

    Privacy:
        One query: noisy sums of products of arm, outcome and covariates, from which regressions are fitted. Covariates
        and outcome need public bounds; nothing else about a unit need be public. With delta greater than 0 the noise
        grows with the number of features, with delta 0 with its square: beyond four features use a small delta.

    The adjustment, never the effect, is shrunk towards 0 where noise in it far exceeds all other error. Such an effect
    has no interval. Nor has one from so few units that noise attenuates the adjustment.

    Attributes:
        covariates: The covariates to adjust for. Keep the list short: each one costs accuracy.
        interaction: Whether each arm has a regression of its own, so that effects may depend on covariates.

    Reference:
        Wang (2018), Revisiting differentially private linear regression, for regression on noisy moments; Lin (2013),
        Agnostic notes on regression adjustments, for the interaction. The joint bound on all moments, their unequal
        shares of the noise, the correction of the inverse for noise and the shrinkage are ours.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = RegressionAdjustment(covariates=["age"]).estimate(Rehearsal(schema, n=20_000), epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (0.37, 0.16)
    """

    also_called: ClassVar[str] = "ols regression linear_regression ancova lm g_computation standardization cuped"

    covariates: Sequence[str]
    interaction: bool = True

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace with delta 0, otherwise Gaussian."""
        guarantee = guarantee_for(source, epsilon, delta)
        release = source.release(RegressionMoments(self.covariates, self.interaction), guarantee)
        fit = fit_regressions(release, source, np.array([release.values]))
        difference, adjustment = float(fit.difference[0]), float(fit.adjustment[0])
        sampling = float(fit.sampling_variance[0])
        noisier = fit_regressions(release, source, release.values + _noise(release))
        noise_variance = float(noisier.adjustment.var())
        drowned = noise_variance > MAX_VARIANCE_RATIO * (sampling + float(noisier.difference.var()))
        shrinkage = max(1 - noise_variance / adjustment**2, 0.0) if drowned and adjustment else 1.0
        means = sum(source.schema.outcome_bounds) / 2 + fit.means[0] + shrinkage * (fit.standardised - fit.means)[0]
        listed = ", ".join(self.covariates)
        risk = " (risk difference)" if isinstance(source.schema.outcome, Binary) else ""
        effect = Effect(
            estimand=f"average treatment effect{risk}: mean outcome with all treated minus mean outcome with none",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=difference - shrinkage * adjustment,
            sampling_sd=sampling**0.5,
            noise=(
                *_terms(release, fit, float((noisier.difference - shrinkage * noisier.adjustment).var())),
                NoiseTerm("gaussian", fit.residual_confounding),
            ),
            n=source.n,
            method=f"difference in means adjusted by regression {'in each arm ' * self.interaction}on {listed}",
            guarantee=guarantee,
            assumptions=(
                no_confounders_but(self.covariates),
                "outcomes are linear in these" + ("" if self.interaction else ", with one effect for all"),
                NO_INTERFERENCE,
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=(f"the adjustment was shrunk by the factor {shrinkage:.2f}",) * (shrinkage < 1) + source.caveats,
            no_interval=arm_refusal(release, source, fit)
            or noisy_adjustment(fit.attenuation, self.covariates, drowned=drowned),
            control_mean=float(means[0]),
            treated_mean=float(means[1]),
        )
        return warned(effect, source.schema, signs_of_moments(release, source, fit))


def _noise(release: Release) -> Array:
    """Simulate noise like that of the release, many times."""
    return simulated(release.family, [release.scale(name) for name in release.names], _DRAWS)


def _terms(release: Release, fit: OutcomeRegressions, variance: float) -> tuple[NoiseTerm, ...]:
    """Return the noise in the difference of the arms' totals, and all other parts as one nearly normal term."""
    contrast = release.noise_term("arm * outcome", float((1 / fit.sizes[0]).mean()))
    return contrast, NoiseTerm("gaussian", max(variance - contrast.variance, 0.0) ** 0.5)
