"""The posterior of an effect curve's weights, from noisy sums of products (empirical Bayes)."""

import math
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Array
from dpcausal.estimators.conditional.nuisance import NuisanceModels
from dpcausal.queries import EffectMoments
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import spread_out
from dpcausal.release import Release
from dpcausal.schema import Schema

PRIOR_SDS = np.geomspace(1e-3, 0.5, 25)
"""Prior standard deviations of effects between profiles, in ranges of the outcome."""

LOG_PRIOR = np.log(PRIOR_SDS) - (PRIOR_SDS / 0.2) ** 2 / 2
"""Log prior of these: flat up to 0.2 of the range, then Gaussian decay."""

_PROFILES = 512
"""How many profiles, spread evenly, an effect's error and variation are averaged over."""

_ITERATIONS = 4
"""Passes of the fixed point between the weights and the noise that depends on them."""

_MIN_RESIDUAL = 1 / 20
"""The least residual variance, as a share of the scores' mean square: noise must not pretend a perfect fit."""


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of the weights of a basis.

    Attributes:
        weights: The posterior mean.
        sampling: The posterior covariance without privacy noise.
        privacy: The covariance of the privacy noise in the mean.
        error: The RMS posterior standard deviation of an effect, over profiles spread evenly.
        cut_off: The share of scores that the limit cut off; a lower bound, because of noise.
    """

    weights: Array
    sampling: Array
    privacy: Array
    error: float
    cut_off: float


def fit_weights(release: Release, schema: Schema, models: NuisanceModels, *, level: bool) -> WeightPosterior:
    """Fit the weights to noisy sums of products.

    The prior of the weights is normal: wide along the constant, and elsewhere a mixture over `PRIOR_SDS`, weighted by
    the marginal likelihood of the sums. The likelihood accounts for sampling error, for noise in the sums, and for
    noise in the products of functions. Where noise drowns a direction, the posterior shrinks the curve to a constant
    along it, and its standard error is the prior's.

    Args:
        release: Sums of products.
        schema: What is public about the table.
        models: The nuisance models behind the sums.
        level: Whether to shrink the curve towards a constant effect; otherwise every weight has one wide prior.
    """
    query: EffectMoments = release.query  # type: ignore[assignment]
    n = models.units
    names = query.basis.names(schema)
    gram, gram_noise = _gram(release, query, schema, n)
    along = np.array([release.value(f"effect * {name}") for name in names]) / n
    noise = release.variance(f"effect * {names[0]}") / n**2
    low, high = schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    hidden = math.sqrt(release.variance("deficit") + models.units_variance * largest**2) / n
    squares = min(max(largest - release.value("deficit") / n, hidden), largest)
    values = basis_values(query.basis, spread_out(query.basis.reads(schema), _PROFILES), schema)
    constant = np.linalg.pinv(values, rcond=1e-6).sum(axis=1)  # the weights that make a curve 1 everywhere

    fit = _Fit(
        gram, along, _priors(values, constant, high - low) if level else [(high - low) ** 2 * np.eye(len(names))]
    )
    weights, residual = np.zeros(len(names)), squares
    private = covariance = gain = np.zeros_like(gram)
    for _ in range(_ITERATIONS):  # the effect of noise in products depends on the weights
        own = weights**2 + np.diag(covariance)
        private = np.diag(noise + gram_noise * (2 * own if query.basis.disjoint else own + own.sum()))
        weights, covariance, gain = fit.posterior(residual / n * gram + private)
        unexplained = squares - 2 * float(weights @ along) + float(weights @ gram @ weights)
        residual = min(max(unexplained, squares * _MIN_RESIDUAL), squares)
    privacy = gain @ private @ gain.T
    cut = (release.value("clipped") - 2 * math.sqrt(release.variance("clipped"))) / n
    error = math.sqrt(max(float(((values @ covariance) * values).sum(axis=1).mean()), 0.0))
    rest = _positive(covariance - privacy) + models.residual_confounding**2 * np.outer(constant, constant)
    return WeightPosterior(weights, rest, privacy, error, max(cut, 0.0))


def _priors(values: Array, constant: Array, span: float) -> list[Array]:
    """Return the prior covariances of weights, one for each prior standard deviation of effects over the profiles."""
    length = float(np.linalg.norm(constant))
    along = np.outer(constant, constant) / length**2
    across = np.eye(len(constant)) - along
    varied = float(((values @ across) * values).sum(axis=1).mean())
    return [span**2 * (length**2 * along + sd**2 / max(varied, 1e-9) * across) for sd in PRIOR_SDS]


def _gram(release: Release, query: EffectMoments, schema: Schema, n: float) -> tuple[Array, float]:
    """Return the mean products of functions, projected to a positive matrix, and the variance of the noise in them.

    The variance is that of a product of two different functions; squares have twice as much.
    """
    names = query.basis.names(schema)
    gram = np.zeros((len(names), len(names)))
    for i, j in query.pairs(schema):
        gram[i, j] = gram[j, i] = release.value(f"{names[i]} by {names[j]}") / n
    noise = release.variance(f"{names[0]} by {names[0]}") / n**2
    return _positive(gram), noise / 2


def _positive(array: Array) -> Array:
    values, vectors = np.linalg.eigh((array + array.T) / 2)
    positive: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive


class _Fit:
    """A Bayesian regression along = gram · weights + error, with one or more normal priors of the weights."""

    def __init__(self, gram: Array, along: Array, priors: list[Array]) -> None:
        self._gram, self._along, self._priors = gram, along, priors
        self._log_prior = LOG_PRIOR if len(priors) > 1 else np.zeros(1)

    def posterior(self, errors: Array) -> tuple[Array, Array, Array]:
        """Return the posterior mean and covariance, and the matrix that maps sums to the mean, averaged over priors."""
        log_likelihoods, means, covariances, gains = [], [], [], []
        for prior in self._priors:
            total = self._gram @ prior @ self._gram + errors + 1e-300 * np.eye(len(errors))
            gain = np.linalg.solve(total, self._gram @ prior).T
            log_likelihoods.append(
                -(self._along @ np.linalg.solve(total, self._along) + np.linalg.slogdet(total)[1]) / 2
            )
            means.append(gain @ self._along)
            covariances.append(prior - gain @ self._gram @ prior)
            gains.append(gain)
        logs = np.array(log_likelihoods) + self._log_prior
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        mean = np.tensordot(shares, means, 1)
        apart = np.array(means) - mean
        covariance = np.tensordot(shares, covariances, 1) + (apart.T * shares) @ apart
        return mean, covariance, np.tensordot(shares, gains, 1)
