"""Difference in means, adjusted by regressions of the outcome on covariates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import remedy
from dpcausal.estimators.outcome_regression import (
    Array,
    OutcomeRegressions,
    fit_regressions,
    hidden_arm,
    signs_of_moments,
)
from dpcausal.estimators.plausibility import warned
from dpcausal.interval import NoiseTerm, simulated
from dpcausal.queries import RegressionMoments
from dpcausal.release import Release
from dpcausal.source import Source, guarantee_for

_OUTWEIGHS = 4.0
"""Noise in the adjustment counts as too much where its variance is so many times that of all other error."""

_MAX_ATTENUATION = 0.05
"""And where noise takes so much of the adjustment for a covariate."""

_DRAWS = 400
"""How often noise is drawn anew to see what it does; its standard deviation is then known to within 4 %."""

_NO_INTERVAL = "privacy noise leaves some confounding in, by an amount nobody knows"


@dataclass(frozen=True)
class RegressionAdjustment(BaseEstimator):
    """Difference in means, less what covariates explain of it by linear regressions.

    Estimand:
        The average treatment effect over all units.

    Assumptions:
        The covariates hold all confounders, and in each arm the outcome's mean is linear in them (each value of a
        category has a coefficient of its own). Without `interaction`, one regression serves both arms: then the effect
        should not depend on covariates.

    Privacy:
        One query: noisy sums of products of arm, outcome and covariates, of which regressions are made. Covariates and
        outcome need public bounds; nothing else about a unit need be public. With delta greater than 0 the noise grows
        with the number of features, with delta 0 with its square: beyond four features a small delta is worth it.

    The adjustment, never the effect, is shrunk towards 0 where noise in it outweighs all other error by far. Such an
    effect has no interval, nor has one from so few units that noise blurs how covariates belong together.

    Attributes:
        covariates: The covariates to adjust for. A short list: each one costs accuracy.
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

    covariates: Sequence[str]
    interaction: bool = True

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """The effect, for epsilon and delta in all; delta 0 gives Laplace noise, a positive delta Gaussian noise."""
        guarantee = guarantee_for(source, epsilon, delta)
        release = source.release(RegressionMoments(self.covariates, self.interaction), guarantee)
        fit = fit_regressions(release, source, np.array([release.values]))
        difference, adjustment = float(fit.difference[0]), float(fit.adjustment[0])
        sampling = float(fit.sampling_variance[0])
        noisier = fit_regressions(release, source, release.values + _noise(release))
        doubt = float(noisier.adjustment.var())
        too_noisy = doubt > _OUTWEIGHS * (sampling + float(noisier.difference.var()))
        kept = max(1 - doubt / adjustment**2, 0.0) if too_noisy and adjustment else 1.0
        means = sum(source.schema.outcome_bounds) / 2 + fit.means[0] + kept * (fit.standardised - fit.means)[0]
        listed = ", ".join(self.covariates)
        risk = " (risk difference)" if isinstance(source.schema.outcome, Binary) else ""
        effect = Effect(
            estimand=f"average treatment effect{risk}: mean outcome with all treated minus mean outcome with none",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=difference - kept * adjustment,
            sampling_sd=sampling**0.5,
            noise=(
                *_terms(release, fit, float((noisier.difference - kept * noisier.adjustment).var())),
                NoiseTerm("gaussian", fit.residual_confounding),
            ),
            n=source.n,
            method=f"difference in means adjusted by regression {'in each arm ' * self.interaction}on {listed}",
            guarantee=guarantee,
            assumptions=(
                f"no confounders but {listed}",
                "outcomes are linear in these" + ("" if self.interaction else ", with one effect for all"),
                "one unit's outcome does not depend on another unit's arm",
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=(f"the adjustment was multiplied by {kept:.2f}",) * (kept < 1) + source.caveats,
            no_interval=hidden_arm(release, source, fit)
            or (
                f"{_NO_INTERVAL}; {remedy(self.covariates)}" if too_noisy or fit.attenuation > _MAX_ATTENUATION else ""
            ),
            control_mean=float(means[0]),
            treated_mean=float(means[1]),
        )
        return warned(effect, source.schema, signs_of_moments(release, source, fit))


def _noise(release: Release) -> Array:
    """Noise as the release has it, many times over, to see what it does."""
    return simulated(release.family, [release.scale(name) for name in release.names], _DRAWS)


def _terms(release: Release, fit: OutcomeRegressions, variance: float) -> tuple[NoiseTerm, ...]:
    """The noise in the difference of the arms' totals by itself, and the many other parts as one, nearly normal."""
    contrast = release.noise_term("arm * outcome", float((1 / fit.sizes[0]).mean()))
    return contrast, NoiseTerm("gaussian", max(variance - contrast.variance, 0.0) ** 0.5)
