"""Linear regressions of the outcome in each arm that know the noise in their moments.

The least-squares equations are linear in the moments, so noise in these is an error in the equations of known size:
moments of features with the outcome miss by their own noise, and those of features by theirs times the coefficients.
With a normal prior for the coefficients, their posterior is a weighted ridge regression. Where noise hides a
direction, the posterior is as wide as the prior there. What confounding may be left in then widens an interval.

The idea is that of Bernstein and Sheldon (2019), Differentially private Bayesian linear regression. The prior is ours.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.estimators.outcome_regression import OutcomeRegressions, ProductSums, tables_of_moments
from dpcausal.estimators.scaled_features import (
    scaled_among,
    surely_varies,
    unscaled_among,
    with_known_variance,
)
from dpcausal.queries import WeightedRegressionMoments
from dpcausal.queries.regression_moments import CONSTANT, FIRST_FEATURE, OUTCOME
from dpcausal.release import Release
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.utils.arrays import Array

_EXPLAINED, _EXPLAINED_OF_BINARY = 1 / 3, 0.05
"""The share of the outcome's variance within arms that the prior expects of all features together, and once more along
the direction in which arms differ: confounders have a part in both. A rare event is hard to predict."""

ARMS_DIFFER = 0.03
"""The variance of half the difference between the arms' slopes, as a share of that of their mean."""

SPREADS_DIFFER = 0.1
"""How far the arms' covariances of features differ, as a share of what they are."""

DAMPING = 0.1
"""Noise makes the inverse of a matrix too large on average. The prior damps most of that; this share of the first-order
term, found in simulations with 2 to 13 features, damps the rest."""

_NO_DIRECTION = 1e-6
"""Arms whose mean features are no further apart, in standard deviations, differ in no direction."""

_FAR_OUT = 30.0
"""Noise exceeds so many standard deviations with a chance of 10^-18. Sums further out count as the nearest possible."""

_STEPS = 10
"""The errors of the equations depend on the coefficients: so many steps are more than enough to agree on both."""


@dataclass(frozen=True)
class NoiseAwareRegressions:
    """The posterior of each arm's regression.

    Coefficients are a constant, the mean outcome if all units were in that arm, and slopes of features, which lie
    between -1 and 1. Outcomes are measured from the middle of their range.

    Attributes:
        coefficients: One line for each arm, the constant first.
        covariance: Their posterior covariance, the control arm's first.
        effect_variance: The posterior variance of the average effect, noise in the features' means included.
        resolution: Each feature's variance as far as it is sure, in standard deviations of the noise in it.
    """

    centres: Array
    coefficients: Array
    covariance: Array
    effect_variance: float
    resolution: Array
    solution: "_Solution"

    @property
    def means(self) -> Array:
        """The mean outcome if all units were in that arm."""
        return self.coefficients[:, 0]

    @property
    def mean_covariance(self) -> Array:
        """The posterior covariance of the two means."""
        places = [0, self.coefficients.shape[1]]
        covariance: Array = self.covariance[np.ix_(places, places)]
        return covariance

    @property
    def slopes(self) -> Array:
        """The slopes, one line for each arm."""
        return self.coefficients[:, 1:]

    @property
    def effect(self) -> float:
        """The average effect."""
        return float(self.means[1] - self.means[0])

    def over(self, centres: Array, noise: Array) -> "NoiseAwareRegressions":
        """Return the same regressions, with constants that are means over units of other mean features."""
        size = self.coefficients.shape[1]
        turn = np.eye(size)
        turn[0, 1:] = centres - self.centres
        turns = np.kron(np.eye(2), turn)
        covariance = turns @ self.covariance @ turns.T
        slopes = self.slopes
        covariance[np.ix_([0, size], [0, size])] += slopes @ noise @ slopes.T
        apart = np.kron([-1.0, 1.0], np.eye(size)[0])
        between = np.kron([-1.0, 1.0], np.eye(size))[1:]
        unsure = float((between @ self.covariance @ between.T * noise).sum())
        return replace(
            self,
            centres=centres,
            coefficients=self.coefficients @ turn.T,
            covariance=covariance,
            effect_variance=float(apart @ covariance @ apart) + unsure,
        )

    def adjustments(self, fit: OutcomeRegressions) -> Array:
        """Return what each feature takes off the difference between the arms' means of these regressions."""
        control, treated = self.slopes * (fit.centres[0] - self.centres)
        taken: Array = treated - control
        return taken


@dataclass(frozen=True)
class _Equations:
    """The equations of both arms' regressions, in half ranges of the outcome.

    The unknowns are the mean of both arms' coefficients, and half their difference. With P the sums over both arms
    and D their difference, P mean + D half = the outcome's sums, and D mean + P half = their difference. Features and
    outcome are measured from their means.

    Attributes:
        shift: Turns sums of features into those of features measured from their means.
        sum_noise: The variance of the noise in P and D before the shift.
        spreads: The features' variances as far as they are sure, at least what noise could hide.
        resolution: The features' variances as far as they are sure, in standard deviations of the noise in them.
    """

    n: float
    mean: float
    shift: Array
    sums: tuple[Array, Array]
    right: Array
    sum_noise: tuple[Array, Array]
    right_noise: Array
    variance: float
    spreads: Array
    resolution: Array

    @property
    def design(self) -> Array:
        """The matrix of the equations."""
        return np.block([[self.sums[0], self.sums[1]], [self.sums[1], self.sums[0]]])

    def error(self, unknowns: Array) -> Array:
        """Return the covariance of the errors that noise makes in the equations, for these unknowns."""
        return self.shared_error(self, unknowns, unknowns) + self._turned(np.diag(self.right_noise))

    def shared_error(self, other: "_Equations", own: Array, others: Array) -> Array:
        """Return the covariance of the errors that noise in features makes in these equations and in others.

        The others are those of another response on the same features.
        """
        (both, apart), (other_both, other_apart) = self._before_shift(own), other._before_shift(others)  # noqa: SLF001
        plain, signed = self.sum_noise
        return self._turned(
            np.block(
                [
                    [
                        equation_errors(both, other_both, plain) + equation_errors(apart, other_apart, signed),
                        equation_errors(both, other_apart, plain) + equation_errors(apart, other_both, signed),
                    ],
                    [
                        equation_errors(apart, other_both, plain) + equation_errors(both, other_apart, signed),
                        equation_errors(both, other_both, signed) + equation_errors(apart, other_apart, plain),
                    ],
                ]
            )
        )

    def _before_shift(self, unknowns: Array) -> Array:
        """Return unknowns as coefficients of features before the shift."""
        shifted: Array = unknowns.reshape(2, len(self.shift)) @ self.shift
        shifted[0, 0] += self.mean
        return shifted

    def _turned(self, covariance: Array) -> Array:
        turn = np.kron(np.eye(2), self.shift)
        turned: Array = turn @ covariance @ turn.T
        return turned

    def prior(self, explained: float, arms_differ: float) -> Array:
        """Return the prior covariance of the unknowns."""
        slopes = explained * self.variance * slope_prior(self.spreads, self.sums[1][:1, 1:] / self.n)
        prior = np.zeros((2 * len(self.shift), 2 * len(self.shift)))
        for at, share in ((0, 1.0), (len(self.shift), arms_differ)):
            prior[at, at] = 1.0  # the whole range
            prior[at + 1 : at + len(self.shift), at + 1 : at + len(self.shift)] = share * slopes
        return prior


@dataclass(frozen=True)
class _Solution:
    """The equations, their unknowns, and how far each right-hand side moves each unknown; in half ranges."""

    equations: _Equations
    unknowns: Array
    gain: Array
    half: float


def equation_errors(first: Array, second: Array, noise: Array) -> Array:
    """Return the covariance of symmetric noise times the first coefficients with the same noise times the second.

    Args:
        noise: The variance of the noise in each entry of the matrix of sums.
    """
    off = 1 - np.eye(len(first))
    shared: Array = np.diag(noise @ (first * second)) + off * noise * np.outer(second, first)
    return shared


def slope_prior(spreads: Array, apart: Array) -> Array:
    """Return the prior covariance of slopes, in parts of the variance that features are expected to explain.

    Args:
        spreads: The features' variances.
        apart: How far the arms' mean features are from those of all units, one line for each direction.
    """
    _, lengths, directions = np.linalg.svd(apart / np.sqrt(spreads), full_matrices=False)
    along = directions[lengths > _NO_DIRECTION] / np.sqrt(spreads)
    prior: Array = np.diag(1 / spreads / len(spreads)) + along.T @ along
    return prior


def explained_share(schema: Schema) -> float:
    """Return the share of the outcome's variance within arms that the prior expects of all features together."""
    return _EXPLAINED_OF_BINARY if isinstance(schema.outcome, Binary) else _EXPLAINED


def solve_noise_aware(
    design: Array,
    right: Array,
    prior: Array,
    error: Callable[[Array], Array],
    damping: Callable[[Array], Array],
) -> tuple[Array, Array, Array]:
    """Return the posterior mean and covariance of unknowns, given equations with errors that depend on them.

    The third is how far each right-hand side moves each unknown.

    Args:
        design: The matrix of the equations.
        prior: The prior covariance of the unknowns; the prior mean is 0.
        error: The covariance of the equations' errors, for some unknowns.
        damping: What to add to the precision, given the inverse of that covariance.
    """
    inverse_prior = np.linalg.inv(prior)
    unknowns, gain, covariance = np.zeros(len(right)), np.zeros(design.shape), np.zeros(design.shape)
    for _ in range(_STEPS):
        weights = np.asarray(np.linalg.inv(error(unknowns)), dtype=float)
        precision = np.asarray(design.T @ weights @ design + inverse_prior, dtype=float)
        covariance[:] = np.linalg.inv(precision)
        gain[:] = np.linalg.lstsq(precision + damping(weights), design.T @ weights, rcond=None)[0]
        unknowns[:] = gain @ right
    return unknowns, covariance, gain


def fit_noise_aware(release: Release, source: Source, arms_differ: float = ARMS_DIFFER) -> NoiseAwareRegressions:
    """Return the regressions behind a release of `RegressionMoments` or of `WeightedRegressionMoments`.

    Args:
        source: What was asked.
        arms_differ: The prior variance of half the difference between the arms' slopes, as a share of that of their
            mean.
    """
    query: ProductSums = release.query  # type: ignore[assignment]
    equations = _equations(release, source)
    size, half = len(equations.shift), (source.schema.outcome_bounds[1] - source.schema.outcome_bounds[0]) / 2
    # With one regression for both arms these differ in the constant alone.
    used = np.arange(2 * size if query.interaction else size + 1)
    part = np.ix_(used, used)

    def error(unknowns: Array) -> Array:
        covariance: Array = equations.error(np.pad(unknowns, (0, 2 * size - len(used))))[part]
        return covariance

    def damping(weights: Array) -> Array:
        each = np.zeros(len(used))
        each[1:size] = DAMPING * (equations.sum_noise[0] @ np.diag(weights)[:size])[1:]
        return np.diag(each)

    unknowns, covariance, gain = np.zeros(2 * size), np.zeros((2 * size, 2 * size)), np.zeros((2 * size, 2 * size))
    unknowns[used], covariance[part], gain[part] = solve_noise_aware(
        equations.design[part],
        equations.right[used],
        equations.prior(explained_share(source.schema), arms_differ)[part],
        error,
        damping,
    )
    arms = np.kron([[1, -1], [1, 1]], np.eye(size))
    coefficients = (arms @ unknowns).reshape(2, size)
    coefficients[:, 0] += equations.mean
    apart = unknowns[size:] ** 2 + np.diag(covariance)[size:]
    moved = float(apart @ equations.sum_noise[0][0]) / equations.n**2
    return NoiseAwareRegressions(
        -equations.shift[1:, 0],
        half * coefficients,
        half**2 * arms @ covariance @ arms.T,
        4 * half**2 * (float(covariance[size, size]) + moved),
        equations.resolution,
        _Solution(equations, unknowns, gain, half),
    )


def effect_noise_covariance(first: NoiseAwareRegressions, second: NoiseAwareRegressions) -> float:
    """Return the covariance that noise in the features makes between the average effects on two responses."""
    one, other = first.solution, second.solution
    size, equations = len(one.equations.shift), one.equations
    shared = one.gain @ equations.shared_error(other.equations, one.unknowns, other.unknowns) @ other.gain.T
    apart = one.unknowns[size:] * other.unknowns[size:]
    moved = float(apart @ equations.sum_noise[0][0]) / equations.n**2
    return 4 * one.half * other.half * (float(shared[size, size]) + moved)


def _equations(release: Release, source: Source) -> _Equations:
    """Return the equations, with differences between the arms' covariances shrunk as far as noise explains them."""
    query: ProductSums = release.query  # type: ignore[assignment]
    half = (source.schema.outcome_bounds[1] - source.schema.outcome_bounds[0]) / 2
    plain, signed = (each[0] for each in tables_of_moments(query, source, np.array([release.values]), half))
    noise = np.zeros((2, *plain.shape))
    moments = query.moments(source.schema)
    for moment, name in zip(moments, release.names[: len(moments)], strict=True):
        for place in ((moment.first, moment.second), (moment.second, moment.first)):
            noise[int(moment.signed), *place] = release.variance(name)
    scale = np.ones(len(plain))
    scale[OUTCOME] = 1 / half
    scales = np.outer(scale, scale)
    plain, signed, noise = plain * scales, signed * scales, noise * scales**2
    n = float(plain[CONSTANT, CONSTANT])
    reach = n + _FAR_OUT * np.sqrt(noise)  # beyond it is no table's sum, and no noise's
    plain, signed = np.clip(plain, -reach[0], reach[0]), np.clip(signed, -reach[1], reach[1])
    chosen = [CONSTANT, *range(FIRST_FEATURE, len(plain))]
    table = np.ix_(chosen, chosen)
    sum_noise = noise[0][table], noise[1][table]
    if not isinstance(query, WeightedRegressionMoments):
        for each in sum_noise:  # a square is a count less a deficit
            each[range(1, len(chosen)), range(1, len(chosen))] += each[0, 0]
    shift = np.eye(len(chosen))
    shift[1:, 0] = -plain[CONSTANT, chosen[1:]] / n
    mean = float(plain[CONSTANT, OUTCOME]) / n
    sums = [shift @ each[table] @ shift.T for each in (plain, signed)]
    right = [shift @ (each[chosen, OUTCOME] - mean * each[chosen, CONSTANT]) for each in (plain, signed)]

    places = range(1, len(chosen))
    scaled = scaled_among(query.covariates, source.schema)
    found, noise_of = with_known_variance(np.diag(sums[0])[1:] / n, np.diag(sum_noise[0])[1:] / n**2, scaled)
    sums[0][places, places], sum_noise[0][places, places] = n * found, n**2 * noise_of
    centres = shift[1:, 0] ** 2
    of_means = 4 * centres * (sum_noise[0][0, 1:] + centres * sum_noise[0][0, 0]) / n**2
    hidden = np.sqrt(noise_of + of_means)
    surely = surely_varies(found, hidden, unscaled_among(query.covariates, source.schema))
    spreads = np.maximum(surely, hidden)
    resolution = surely / hidden
    ratio = sums[1][0, 0] / n
    inner = (slice(1, None), slice(1, None))
    expected = (SPREADS_DIFFER * n) ** 2 * np.outer(spreads, spreads)
    seen = expected / (expected + sum_noise[1][inner] + ratio**2 * sum_noise[0][inner])
    sums[1][inner] = ratio * sums[0][inner] + seen * (sums[1][inner] - ratio * sums[0][inner])
    sum_noise[1][inner] *= seen

    sizes = np.maximum((n + signed[CONSTANT, CONSTANT] * np.array([-1, 1])) / 2, 1.0)
    totals = (plain[CONSTANT, OUTCOME] + signed[CONSTANT, OUTCOME] * np.array([-1, 1])) / 2
    variance = float(plain[OUTCOME, OUTCOME] - (totals**2 / sizes).sum()) / n
    return _Equations(
        n=n,
        mean=mean,
        shift=shift,
        sums=(sums[0], sums[1]),
        right=np.concatenate(right),
        sum_noise=sum_noise,
        right_noise=np.concatenate([noise[0][chosen, OUTCOME], noise[1][chosen, OUTCOME]]),
        variance=min(max(variance, math.sqrt(max(noise[0][OUTCOME, :FIRST_FEATURE])) / n), 1.0),
        spreads=spreads,
        resolution=resolution,
    )
