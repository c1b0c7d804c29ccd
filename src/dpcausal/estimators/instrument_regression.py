"""Regression-adjusted effects of an assignment on the outcome and on the treatment received, with their joint error."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpcausal.estimators.covariate_scales import ScaledCovariates
from dpcausal.estimators.interval_policy import hidden_covariates
from dpcausal.estimators.noise_aware_regression import NoiseAwareRegressions, effect_noise_covariance, fit_noise_aware
from dpcausal.estimators.outcome_regression import (
    OutcomeRegressions,
    arm_refusal,
    fit_regressions,
    signs_of_moments,
    unadjusted_covariates,
)
from dpcausal.estimators.plausibility import Signs
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import left_by_scores
from dpcausal.queries import InstrumentMoments, ReceivedMoments
from dpcausal.queries.features import design_names
from dpcausal.queries.instrument_moments import RECEIVED
from dpcausal.queries.regression_moments import OUTCOME
from dpcausal.release import Release
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, WrappedSource
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise


class _ReceivedSource(WrappedSource):
    """A source as if the treatment received were its outcome."""

    def __init__(self, source: Source, received: str) -> None:
        super().__init__(source)
        schema = source.schema
        column = ReceivedMoments(received).column(schema)
        self._schema = replace(
            schema,
            outcome=replace(column, missing=None)
            if schema.required_columns
            else column,  # who may leave stays the same
            covariates=[each for each in schema.covariates if each.name != received],
            required=[name for name in schema.required if name != received],
        )

    @property
    def schema(self) -> Schema:
        """What is public about the table, with the other outcome."""
        return self._schema


class AdjustedParts(NamedTuple):
    """What regressions on covariates find."""

    parts: JointEstimate
    left_in: tuple[float, float]
    refusal: str
    signs: Signs


def adjusted_parts(
    release: Release, query: InstrumentMoments, scaled: ScaledCovariates, source: Source, names: tuple[str, str]
) -> AdjustedParts:
    """Return the effects on the outcome and on the treatment received, adjusted for covariates."""
    sources = source, _ReceivedSource(source, query.received)
    listed = [at.name for at in query.regression.sensitivity(source.schema, "record", "l1").coordinates]
    releases = [
        release.part(query.regression, listed, query.names_for(source.schema, response))
        for response in (OUTCOME, RECEIVED)
    ]
    posteriors = [fit_noise_aware(*each) for each in zip(releases, sources, strict=True)]
    plain = [
        fit_regressions(each, asked, np.array([each.values])) for each, asked in zip(releases, sources, strict=True)
    ]
    fits = [replace(fit, slopes=each.slopes[None]) for fit, each in zip(plain, posteriors, strict=True)]
    parts = JointEstimate(
        names=names,
        values=(posteriors[0].effect, posteriors[1].effect),
        sampling=_sampling(release, query, fits),
        noise=_noise(release, query.received, fits[0], posteriors),
    )
    signs = signs_of_moments(releases[0], source, plain[0])
    resolution = list(posteriors[0].resolution)
    unadjusted = unadjusted_covariates(resolution, query.covariates, source.schema, signs.unread)
    refusal = arm_refusal(releases[0], source, fits[0]) or hidden_covariates(unadjusted, query.covariates)
    features = design_names(query.covariates, source.schema)
    ends = left_at_ends(release, source)
    outcome, received = (
        left_by_scores(scaled, features, posterior.adjustments(fit), posterior.resolution, ends=ends)
        for posterior, fit in zip(posteriors, fits, strict=True)
    )
    return AdjustedParts(parts, (outcome, received), refusal, signs)


def _sampling(
    release: Release, query: InstrumentMoments, fits: list[OutcomeRegressions]
) -> tuple[tuple[float, ...], ...]:
    """Return the sampling covariance of the two effects."""
    outcome, received = fits
    name = f"outcome * {query.received}"
    signs = np.array([-1.0, 1.0])
    sizes, means = outcome.sizes[0], outcome.means[0] * received.means[0]
    if query.interaction:
        together = (release.value(name) + signs * release.value(f"arm * {name}")) / 2 / sizes - means
    else:
        together = np.full(2, (release.value(name) - sizes @ means) / sizes.sum())
    explained = np.einsum("ai,aij,aj->a", outcome.slopes[0], outcome.covariances[0], received.slopes[0])
    most = np.sqrt(outcome.variances[0] * received.variances[0])
    shared = float(outcome.shared_sampling(received, np.clip(together - explained, -most, most)[None])[0])
    variances = [float(each.sampling_variance[0]) for each in fits]
    return (variances[0], shared), (shared, variances[1])


def _noise(
    release: Release, taken: str, fit: OutcomeRegressions, posteriors: list[NoiseAwareRegressions]
) -> tuple[JointNoise, ...]:
    """Return the noise in both differences between arms, and all other parts as nearly normal terms."""
    slope = float((1 / fit.sizes[0]).mean())
    named = release.joint_noise(["arm * outcome", f"arm * {taken}"], slope * np.eye(2))
    shared = effect_noise_covariance(*posteriors)
    whole = np.array([[posteriors[0].effect_variance, shared], [shared, posteriors[1].effect_variance]])
    variances = [slope**2 * release.variance(f"arm * {name}") for name in ("outcome", taken)]
    values, vectors = np.linalg.eigh(whole - np.diag(variances))
    lines = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return *named, *(JointNoise("gaussian", tuple(map(float, line))) for line in lines)
