"""The posterior of an effect curve's weights, from noisy sums of products (empirical Bayes)."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpcausal.estimators.conditional.nuisance import NuisanceModels
from dpcausal.queries import EffectMoments
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import spread_out
from dpcausal.queries.query import GRID
from dpcausal.release import Release
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array

PRIOR_SDS = np.geomspace(1e-3, 0.5, 25)
"""Prior standard deviations of effects between profiles, in ranges of the outcome."""

_LARGEST_SD = 0.2
"""The prior of these standard deviations is flat up to this share of the range, then it has a Gaussian decay."""

_EXPLAINED = 0.7
"""It decays earlier where scores vary little: from this share of the standard deviation that effects would have if they
explained all of the scores' mean square."""

_OVERLAP = 0.25
"""The largest mean of e (1 - e), e a propensity: the part of a squared effect that is seen in a squared residual."""

_WIDTH = 0.7
"""Effects of profiles further apart than this, in half ranges of a number, have little to do with each other."""

_ROUGH = 0.1
"""The share of the prior variance that is the same along all functions, in case the effect is less smooth."""

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

    @property
    def squares(self) -> Array:
        """The expected square of each weight."""
        found: Array = self.weights**2 + np.diag(self.sampling) + np.diag(self.privacy)
        return found


def fit_weights(release: Release, schema: Schema, models: NuisanceModels, *, level: bool) -> WeightPosterior:
    """Fit the weights to noisy sums of products.

    The prior of the weights is normal: wide along the constant, and elsewhere that of smooth effects, a mixture over
    `PRIOR_SDS` weighted by the marginal likelihood of the sums. The likelihood accounts for sampling error, for noise
    in the sums, and for noise in the products of functions. Where noise drowns a direction, the posterior shrinks the
    curve to a constant along it, and its standard error is the prior's.

    Args:
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
    codes = spread_out(query.basis.reads(schema), _PROFILES)
    values = basis_values(query.basis, codes, schema)
    constant = np.linalg.pinv(values, rcond=1e-6).sum(axis=1)  # the weights that make a curve 1 everywhere

    fit = _Fit(gram, along, [(high - low) ** 2 * np.eye(len(names))], np.zeros(1))
    if level:
        seen = squares / (_OVERLAP if query.learner == "residual" else 1.0)
        decay = min(_LARGEST_SD, _EXPLAINED * math.sqrt(seen) / (high - low))
        shape = _variation(values, constant, _kernel(tuple(query.basis.reads(schema))))
        level_prior = np.outer(constant, constant)
        priors = [(high - low) ** 2 * (level_prior + sd**2 * shape) for sd in PRIOR_SDS]
        fit = _Fit(gram, along, priors, np.log(PRIOR_SDS) - (PRIOR_SDS / decay) ** 2 / 2)
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
    rest = _positive(covariance - privacy) + models.left_in**2 * np.outer(constant, constant)
    return WeightPosterior(weights, rest, privacy, error, max(cut, 0.0))


def hidden_variation(release: Release, schema: Schema, n: int) -> float:
    """Return the standard deviation, over profiles spread evenly, up to which noise hides how effects vary.

    Where effects vary by less, noise leaves more than half of their variance uncertain. All that decides it is public:
    the functions, the noise and the number of units, which are taken to be spread evenly too.
    """
    query: EffectMoments = release.query  # type: ignore[assignment]
    names, columns = query.basis.names(schema), query.basis.reads(schema)
    codes = spread_out(columns, _PROFILES)
    values = basis_values(query.basis, codes, schema)
    shape = _variation(values, np.linalg.pinv(values, rcond=1e-6).sum(axis=1), _kernel(tuple(columns)))
    within = np.cov(values, rowvar=False, bias=True).reshape(shape.shape)
    gram = (_OVERLAP if query.learner == "residual" else 1.0) * values.T @ values / len(values)
    noise = release.variance(f"effect * {names[0]}") / n**2
    gram_noise = release.variance(f"{names[0]} by {names[0]}") / n**2 / 2

    def left(sd: float) -> float:
        """The share of the variance that stays uncertain."""
        prior = sd**2 * shape
        own = np.diag(prior)
        private = noise + gram_noise * (2 * own if query.basis.disjoint else own + own.sum())
        covariance = _Fit(gram, np.zeros(len(names)), [prior], np.zeros(1)).posterior(np.diag(private))[1]
        return float((within * covariance).sum() / (within * prior).sum())

    low, high = schema.outcome_bounds
    return next((float(sd) for sd in (high - low) * np.geomspace(1e-3, 1.0, 41) if left(sd) <= 0.5), high - low)


@lru_cache(maxsize=8)
def _kernel(columns: tuple[Column, ...]) -> Array:
    """Return the prior covariance of smooth effects at profiles: a part for each covariate, and one for all."""
    codes = spread_out(columns, _PROFILES)
    added, product = np.zeros(()), np.ones(())
    for column in columns:
        apart = (codes[column.name][:, None] - codes[column.name]).astype(float)
        own = np.exp(-((apart / (_WIDTH * GRID)) ** 2) / 2) if isinstance(column, Real) else 1.0 * (apart == 0)
        added, product = added + own / len(columns), product * own
    kernel: Array = added + product
    return kernel


def _variation(values: Array, constant: Array, kernel: Array) -> Array:
    """Return the prior covariance of weights whose effects vary with standard deviation 1 over the profiles."""
    back = np.linalg.pinv(values, rcond=1e-6)
    back = back - back.mean(axis=1, keepdims=True)  # variation is about the mean over the profiles
    smooth = back @ kernel @ back.T
    even = np.eye(len(constant)) - np.outer(constant, constant) / float(constant @ constant)

    def scaled(covariance: Array) -> Array:
        varied: Array = covariance / max(float(((values @ covariance) * values).sum(axis=1).mean()), 1e-9)
        return varied

    variation: Array = (1 - _ROUGH) * scaled(smooth) + _ROUGH * scaled(even)
    return variation


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

    def __init__(self, gram: Array, along: Array, priors: list[Array], log_prior: Array) -> None:
        self._gram, self._along, self._priors, self._log_prior = gram, along, priors, log_prior

    def posterior(self, errors: Array) -> tuple[Array, Array, Array]:
        """Return the posterior mean and covariance, and the matrix that maps sums to the mean, averaged over priors."""
        log_likelihoods, means, covariances, gains = [], [], [], []
        for prior in self._priors:
            total = self._gram @ prior @ self._gram + errors
            total += (1e-300 + 1e-15 * float(np.trace(total))) * np.eye(len(errors))
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
