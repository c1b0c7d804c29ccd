"""From noisy sums of products to the weights of an effect curve, and to how well they are known."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcausal.estimators.conditional.nuisance import NuisanceModels
from dpcausal.queries import EffectMoments
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import spread_out
from dpcausal.release import Release
from dpcausal.schema import Schema

Array = NDArray[np.float64]

PRIOR_SDS = np.geomspace(1e-3, 0.5, 25)
"""By how much effects may vary between profiles: standard deviations, in whole ranges of the outcome."""

LOG_PRIOR = np.log(PRIOR_SDS) - (PRIOR_SDS / 0.2) ** 2 / 2
"""How likely each is beforehand, as a logarithm: all alike up to a fifth of the range, and hardly any beyond."""


@dataclass(frozen=True)
class WeightPosterior:
    """Weights of the functions of a basis.

    Attributes:
        weights: The weights.
        sampling: Their covariance but for privacy noise.
        privacy: The covariance of privacy noise in them.
        error: The standard error of an effect by sampling and by privacy noise, over profiles spread evenly.
        cut_off: The share of units whose part the limit cut off, as far as noise lets one see.
    """

    weights: Array
    sampling: Array
    privacy: Array
    error: float
    cut_off: float


def fit_weights(release: Release, schema: Schema, models: NuisanceModels, *, level: bool) -> WeightPosterior:
    """The weights that noisy sums of products tell.

    Weights are given a normal distribution beforehand: wide along the constant, and otherwise so that effects vary by
    as much as the sums themselves tell (all of a list are tried, and count by how likely they make the sums). Noise in
    the sums, noise in products of functions times the weights, and sampling then say how far to trust the sums. So
    where noise drowns a direction the curve is flat along it, and its error is what effects may vary by.

    Args:
        release: Sums of products.
        schema: What is public about the table.
        models: The models that the sums were made with.
        level: Whether weights are drawn towards a constant effect; otherwise each is left as it is.
    """
    query: EffectMoments = release.query  # type: ignore[assignment]
    n = models.units
    names = query.basis.names(schema)
    gram, doubt = _gram(release, query, schema, n)
    along = np.array([release.value(f"effect * {name}") for name in names]) / n
    noise = release.variance(f"effect * {names[0]}") / n**2
    low, high = schema.outcome_bounds
    largest = (query.limit * (high - low) / 2) ** 2
    hidden = math.sqrt(release.variance("deficit") + models.units_variance * largest**2) / n
    squares = min(max(largest - release.value("deficit") / n, hidden), largest)
    values = basis_values(query.basis, spread_out(query.basis.reads(schema), 512), schema)
    constant = np.linalg.pinv(values, rcond=1e-6).sum(axis=1)  # the weights that make a curve 1 everywhere

    fit = _Fit(
        gram, along, _priors(values, constant, high - low) if level else [(high - low) ** 2 * np.eye(len(names))]
    )
    weights, residual = np.zeros(len(names)), squares
    private = covariance = gain = np.zeros_like(gram)
    for _ in range(4):  # how much noise in products matters depends on the weights themselves
        own = weights**2 + np.diag(covariance)
        private = np.diag(noise + doubt * (2 * own if query.basis.disjoint else own + own.sum()))
        weights, covariance, gain = fit.posterior(residual / n * gram + private)
        missed = squares - 2 * float(weights @ along) + float(weights @ gram @ weights)
        residual = min(max(missed, squares / 20), squares)
    privacy = gain @ private @ gain.T
    cut = (release.value("clipped") - 2 * math.sqrt(release.variance("clipped"))) / n
    error = math.sqrt(max(float(((values @ covariance) * values).sum(axis=1).mean()), 0.0))
    rest = _positive(covariance - privacy) + models.residual_confounding**2 * np.outer(constant, constant)
    return WeightPosterior(weights, rest, privacy, error, max(cut, 0.0))


def _priors(values: Array, constant: Array, span: float) -> list[Array]:
    """Covariances of weights beforehand, one for each spread of effects over the profiles that values are of."""
    length = float(np.linalg.norm(constant))
    along = np.outer(constant, constant) / length**2
    across = np.eye(len(constant)) - along
    varied = float(((values @ across) * values).sum(axis=1).mean())
    return [span**2 * (length**2 * along + spread**2 / max(varied, 1e-9) * across) for spread in PRIOR_SDS]


def _gram(release: Release, query: EffectMoments, schema: Schema, n: float) -> tuple[Array, float]:
    """Mean products of functions, made a matrix without negative directions, and the variance of noise in those of two.

    Squares of functions have twice as much.
    """
    names = query.basis.names(schema)
    gram = np.zeros((len(names), len(names)))
    for i, j in query.pairs(schema):
        gram[i, j] = gram[j, i] = release.value(f"{names[i]} by {names[j]}") / n
    doubt = release.variance(f"{names[0]} by {names[0]}") / n**2
    return _positive(gram), doubt / 2


def _positive(array: Array) -> Array:
    values, vectors = np.linalg.eigh((array + array.T) / 2)
    positive: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive


class _Fit:
    """A regression along = gram · weights + error, with one or more normal distributions of weights beforehand."""

    def __init__(self, gram: Array, along: Array, priors: list[Array]) -> None:
        self._gram, self._along, self._priors = gram, along, priors
        self._likely = LOG_PRIOR if len(priors) > 1 else np.zeros(1)

    def posterior(self, errors: Array) -> tuple[Array, Array, Array]:
        """Weights, their covariance, and what they are of the sums: averages over the variances beforehand."""
        likely, means, covariances, gains = [], [], [], []
        for prior in self._priors:
            total = self._gram @ prior @ self._gram + errors + 1e-300 * np.eye(len(errors))
            gain = np.linalg.solve(total, self._gram @ prior).T
            likely.append(-(self._along @ np.linalg.solve(total, self._along) + np.linalg.slogdet(total)[1]) / 2)
            means.append(gain @ self._along)
            covariances.append(prior - gain @ self._gram @ prior)
            gains.append(gain)
        logs = np.array(likely) + self._likely
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        mean = np.tensordot(shares, means, 1)
        apart = np.array(means) - mean
        covariance = np.tensordot(shares, covariances, 1) + (apart.T * shares) @ apart
        return mean, covariance, np.tensordot(shares, gains, 1)
