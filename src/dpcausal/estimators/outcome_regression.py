"""Linear regressions of the outcome in each arm, from noisy moments."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcausal.estimators.interval_policy import arm_below_noise, not_adjusted
from dpcausal.estimators.plausibility import Measured, Signs
from dpcausal.queries import GRID, Query, RegressionMoments, VaryingEffectMoments, WeightedRegressionMoments
from dpcausal.queries.features import covariates_named, design_names
from dpcausal.queries.profiles import missing_ticks
from dpcausal.queries.regression_moments import CONSTANT, FIRST_FEATURE, OUTCOME, Moment
from dpcausal.release import Release
from dpcausal.schema.columns import Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, units_compared
from dpcausal.utils.arrays import Array

ProductSums = RegressionMoments | VaryingEffectMoments | WeightedRegressionMoments
"""What regressions are fitted from."""

_HIDDEN_SHARE = 0.05
"""A covariate counts as constant only where noise could hide no larger a share of its largest variance."""

_NARROWEST = 0.02
"""The smallest standard deviation of a covariate between declared bounds, in half ranges, that is not to be taken for
none. Where `missing` is declared, it is a usual value, and the mean of a narrow covariate may be there."""

_MIN_VARIANCE, _DAMPING = 1e-6, 1e-12
"""Floors that make divisions finite where a feature does not vary at all."""


@dataclass(frozen=True)
class OutcomeRegressions:
    """Regressions of the outcome on features, one for each arm, for several versions of the moments at once.

    Features are those of the query, between -1 and 1. The first axis of every array is the version, the second the arm.

    Attributes:
        means: The outcome's mean, measured from the middle of its range.
        variances: The outcome's residual variance, at least what noise could hide.
        noise_variance: The variance of the noise in the covariances of features with the outcome.
        covariance_noise_variance: The variance of the noise in the features' covariances.
        undetected: How far the arms' covariances of features with the outcome may differ below the noise.
        hidden_variances: The residual variance that noise could hide.
    """

    n: Array
    sizes: Array
    means: Array
    centres: Array
    covariances: Array
    slopes: Array
    variances: Array
    noise_variance: Array
    covariance_noise_variance: Array
    undetected: Array
    hidden_variances: Array

    @property
    def feature_variances(self) -> Array:
        """The features' variances in the first version, over both arms, at least what noise could hide."""
        shares = self.sizes[0, :, None] / self.n[0]
        variances: Array = (shares * np.diagonal(self.covariances[0], axis1=1, axis2=2)).sum(axis=0)
        return np.maximum(variances, max(math.sqrt(self._excess), _MIN_VARIANCE))

    @property
    def _excess(self) -> float:
        return float(_excess(self.covariance_noise_variance[0].max(), self.slopes.shape[2]))

    @property
    def residual_confounding(self) -> float:
        """Residual confounding from undetected differences in slopes, where arms differ in size (first version)."""
        uneven = abs(float(self.sizes[0, 1] - self.sizes[0, 0])) / float(self.n[0])
        return uneven * float(self.undetected[0]) * float(np.linalg.norm(self.imbalance[0] / self.feature_variances))

    @property
    def difference(self) -> Array:
        """The difference between the arms' mean outcomes."""
        difference: Array = self.means[:, 1] - self.means[:, 0]
        return difference

    @property
    def imbalance(self) -> Array:
        """The difference between the arms' mean features."""
        imbalance: Array = self.centres[:, 1] - self.centres[:, 0]
        return imbalance

    @property
    def standardised(self) -> Array:
        """Each arm's mean outcome if all units were in it, measured from the middle of the range."""
        gained = (self.imbalance[:, None, :] * self.slopes).sum(axis=2)
        means: Array = self.means + self.sizes[:, ::-1] / self.n[:, None] * gained * (1, -1)
        return means

    @cached_property
    def adjustment(self) -> Array:
        """The part of the difference that features explain: each arm's slopes, weighted by the other arm's share."""
        slopes = (self.sizes[:, ::-1, None] / self.n[:, None, None] * self.slopes).sum(axis=1)
        adjustment: Array = (self.imbalance * slopes).sum(axis=1)
        return adjustment

    @property
    def sampling_variance(self) -> Array:
        """The sampling variance of the difference less the adjustment, without privacy noise."""
        return self.shared_sampling(self, self.variances)

    def shared_sampling(self, other: "OutcomeRegressions", residuals: Array) -> Array:
        """Return the sampling covariance of the adjusted differences in this response and in another."""
        centre = (self.sizes[:, :, None] * self.centres).sum(axis=1) / self.n[:, None]
        return self._shared_sampling(other, residuals, centre, self.n)

    def sampling_variance_over(self, units: float, centre: Array) -> Array:
        """Return the sampling variance of the difference of predictions for so many units, of these mean features."""
        return self._shared_sampling(
            self, self.variances, np.tile(centre, (len(self.n), 1)), np.full_like(self.n, units)
        )

    def _shared_sampling(self, other: "OutcomeRegressions", residuals: Array, centre: Array, units: Array) -> Array:
        away = centre[:, None, :] - self.centres
        length = np.maximum((away * _solve(self.covariances, away, self.covariance_noise_variance)).sum(axis=2), 0.0)
        around: Array = (residuals / self.sizes * (1 + length)).sum(axis=1)
        change, changed = self.slopes[:, 1] - self.slopes[:, 0], other.slopes[:, 1] - other.slopes[:, 0]
        shares = self.sizes / self.n[:, None]
        varied = np.einsum("va,vi,vaij,vj->v", shares, change, self.covariances, changed)
        varied += (shares * (away * change[:, None]).sum(axis=2) * (away * changed[:, None]).sum(axis=2)).sum(axis=1)
        shared: Array = around + (np.maximum(varied, 0.0) if other is self else varied) / units
        return shared


def sampling_covariance(fit: OutcomeRegressions) -> Array:
    """Return the sampling covariance of the standardised means: residuals in each arm, and features in both."""
    slopes = fit.slopes[0].mean(axis=0)
    spread = (fit.sizes[0, :, None, None] / fit.n[0] * fit.covariances[0]).sum(axis=0)
    shared = max(float(slopes @ spread @ slopes), 0.0) / fit.n[0]
    covariance: Array = np.diag(fit.variances[0] / fit.sizes[0]) + shared
    return covariance


def fit_regressions(release: Release, source: Source, versions: Array) -> OutcomeRegressions:
    """Fit the regressions for several versions of the values of a release, one version a line.

    The release is of `RegressionMoments`, or of `WeightedRegressionMoments`: then units count as much as their weights,
    which are at most 1, so that variances are rather too large than too small.
    """
    query: ProductSums = release.query  # type: ignore[assignment]
    moments = query.moments(source.schema)
    noise = dict(zip(moments, map(release.variance, release.names[: len(moments)]), strict=True))
    half = (source.schema.outcome_bounds[1] - source.schema.outcome_bounds[0]) / 2
    plain, signed = tables_of_moments(query, source, versions, half)

    n = plain[:, CONSTANT, CONSTANT]
    least = np.ones_like(n)
    if _known_sizes(query, source) is None:
        least = np.minimum(max(math.sqrt(noise[Moment(CONSTANT, CONSTANT, signed=True)]), 1.0), n / 4)
    halves = (n[:, None] + np.outer(signed[:, CONSTANT, CONSTANT], (-1, 1))) / 2
    sizes = np.clip(halves, least[:, None], (n - least)[:, None])
    arms = np.stack([(plain - signed) / 2, (plain + signed) / 2], axis=1) / sizes[:, :, None, None]
    lines = arms[:, :, CONSTANT, :]
    squares = lines[:, :, :, None] * lines[:, :, None, :]
    pooled = (plain - (sizes[:, :, None, None] * squares).sum(axis=1)) / n[:, None, None]
    shared = np.stack([pooled, pooled], axis=1)
    own = arms - squares if query.interaction else shared

    features = slice(FIRST_FEATURE, None)
    covariances, covariance_noise, _ = _separate_arms(
        shared[:, :, features, features], own[:, :, features, features], sizes, noise, FIRST_FEATURE
    )
    along, noise_variance, undetected = _separate_arms(
        shared[:, :, OUTCOME, features], own[:, :, OUTCOME, features], sizes, noise, OUTCOME
    )
    slopes = _solve(covariances, along, covariance_noise)
    deficits = sum(variance for moment, variance in noise.items() if moment.deficit and moment.first == OUTCOME)
    hidden = np.minimum(math.sqrt(deficits) / 2 / sizes, half**2)
    around = np.clip(own[:, :, OUTCOME, OUTCOME] - (slopes * along).sum(axis=2), hidden, half**2)
    means, centres = lines[:, :, OUTCOME], lines[:, :, features]
    return OutcomeRegressions(
        n, sizes, means, centres, covariances, slopes, around, noise_variance, covariance_noise, undetected, hidden
    )


def _separate_arms(
    shared: Array, own: Array, sizes: Array, noise: Mapping[Moment, float], first: int
) -> tuple[Array, Array, Array]:
    """Shrink each arm's covariances towards the shared ones, as far as noise explains their difference.

    Returns:
        The covariances, the variance of the noise in each of their entries, and the difference between arms that noise
        could hide in an entry.
    """
    n = sizes.sum(axis=1)
    plain, signed = (_mean_noise(noise, first, signed=signed) for signed in (False, True))
    own_noise = np.broadcast_to(plain / n[:, None] ** 2, sizes.shape)
    if signed is None:  # there is one regression for both arms
        return shared, own_noise, np.zeros(len(n))
    apart = own[:, 1] - own[:, 0]
    ratio = (sizes[:, 1] - sizes[:, 0]) / n
    between = (signed + ratio**2 * plain) * (n / sizes[:, 0] / sizes[:, 1] / 2) ** 2
    length = (apart**2).sum(axis=tuple(range(1, apart.ndim)))
    hidden = np.minimum(between * apart[0].size, length)
    seen = 1 - np.divide(hidden, length, out=np.ones_like(length), where=length > 0)  # nothing, in a rehearsal
    parts = np.stack([-sizes[:, 1] / n, sizes[:, 0] / n], axis=1) * seen[:, None]
    shrunk = shared + parts.reshape(*parts.shape, *(1 for _ in apart.shape[1:])) * apart[:, None]
    return shrunk, own_noise + parts**2 * between[:, None], (1 - seen) * np.sqrt(between)


def _mean_noise(noise: Mapping[Moment, float], first: int, *, signed: bool) -> float | None:
    """Return the mean variance of the noise in products of the outcome, or of features, with features."""
    found = [
        (variance, 2.0 if FIRST_FEATURE <= moment.first < moment.second else 1.0)
        for moment, variance in noise.items()
        if moment.signed is signed
        and moment.second >= FIRST_FEATURE
        and (moment.first >= FIRST_FEATURE if first == FIRST_FEATURE else moment.first == first)
    ]
    return sum(map(math.prod, found)) / sum(times for _, times in found) if found else None


def arm_refusal(release: Release, source: Source, fit: OutcomeRegressions) -> str:
    """Return why there is no interval where an arm may be nearly empty; empty where both arms are seen."""
    known = _known_sizes(release.query, source)
    noise_sd = 0.0 if known is not None else release.variance("arm") ** 0.5 / 2
    return arm_below_noise(float(fit.sizes[0].min()), noise_sd)


def signs_of_moments(release: Release, source: Source, fit: OutcomeRegressions) -> Signs:
    """Return what the moments of a regression show about arms, outcome and covariates."""
    schema, n, sizes = source.schema, float(fit.n[0]), fit.sizes[0]
    low, high = schema.outcome_bounds
    # Units with weights count as less: their arms are shares of all units that are compared.
    units = units_compared(source, release) if isinstance(release.query, WeightedRegressionMoments) else n
    counted = next((release.variance(name) for name in ("weight", "compared") if name in release.names), 0.0)
    known = _known_sizes(release.query, source)
    size_sd = 0.0 if known is not None else math.sqrt(release.variance("arm") + counted) / 2
    total = math.sqrt(release.variance("outcome") + release.variance("arm * outcome")) / 2
    deficit = _mean(release, "deficit of outcome", n, ((high - low) / 2) ** 2)
    square = ((high - low) / 2) ** 2 - deficit.value
    return Signs(
        sizes=tuple(Measured(float(size) * units / n, size_sd * units / n) for size in sizes),
        means=tuple(
            Measured((low + high) / 2 + float(mean), math.hypot(total, float(mean) * size_sd) / float(size))
            for mean, size in zip(fit.means[0], sizes, strict=True)
        ),
        variance=Measured(
            square - float(sizes @ fit.means[0] ** 2) / n,
            math.hypot(deficit.noise_sd, ((high - low) / 2) ** 2 * counted**0.5 / n),
        ),
        unread=_unread(release, source, n),
    )


def _unread(release: Release, source: Source, n: float) -> tuple[str, ...]:
    query: ProductSums = release.query  # type: ignore[assignment]
    return unread_covariates(query.covariates, source.schema, lambda name: _mean(release, name, n, 1.0))


def _mean(release: Release, name: str, n: float, most: float) -> Measured:
    """Return the mean of a number over so many units; a deficit is what the square of one lacks to its most."""
    of = name.removeprefix("deficit of ")
    if name in release.names:
        return Measured(release.value(name) / n, math.sqrt(release.variance(name)) / n)
    square = f"{of} * {of}"
    return Measured(most - release.value(square) / n, math.sqrt(release.variance(square)) / n)


def unread_covariates(covariates: Sequence[str], schema: Schema, mean: Callable[[str], Measured]) -> tuple[str, ...]:
    """Return the covariates of which every cell may be unreadable.

    Args:
        mean: The mean over units of a feature, or of a `deficit of` one.
    """
    found = []
    for column in covariates_named(covariates, schema):
        names = design_names([column.name], schema)
        if isinstance(column, Real):
            missing = missing_ticks(column) / GRID
            lacking = mean(f"deficit of {column.name}")
            usual = column.missing is not None and column.scale is None
            all_there = (
                mean(column.name).is_at(missing)
                and lacking.is_at(1 - missing**2)
                and lacking.resolves(_NARROWEST**2 if usual else _HIDDEN_SHARE)
            )
        else:
            places = range(1, len(column.values))
            at = list(column.values).index(column.missing_value)
            all_there = all(
                mean(name).is_at(1 if at == place else -1) for name, place in zip(names, places, strict=True)
            )
            all_there = all_there and mean(names[0]).resolves(_HIDDEN_SHARE)
        found += [column.name] * all_there
    return tuple(found)


def unadjusted_covariates(
    resolution: Sequence[float], covariates: Sequence[str], schema: Schema, unread: Sequence[str]
) -> tuple[str, ...]:
    """Return the covariates that a regression may not adjust for, as `not_adjusted` has it.

    Whether a value is missing is none of them: the share of units that lack it bounds what it can confound.
    """
    features = {name: design_names([name], schema) for name in covariates}
    spared = {column.name for column in covariates_named(covariates, schema) if isinstance(column, Indicator)}
    return tuple(name for name in not_adjusted(resolution, features, unread) if name not in spared)


def as_score_coefficients(
    fit: OutcomeRegressions, arm: int, covariates: Sequence[str], schema: Schema
) -> tuple[float, ...]:
    """Return one arm's regression as coefficients of a score's features, for outcomes in half ranges.

    A score has a feature of 0 or 1 for every value of a category, and divides features by their largest length.
    """
    low, high = schema.outcome_bounds
    slopes = list(fit.slopes[0, arm])
    constant = float(fit.means[0, arm] - fit.centres[0, arm] @ fit.slopes[0, arm])
    coefficients = []
    for column in covariates_named(covariates, schema):
        if isinstance(column, Real) or len(column.values) == 2:
            coefficients.append(slopes.pop(0))
        else:
            own = [slopes.pop(0) for _ in column.values[1:]]
            constant -= sum(own)
            coefficients += [0.0, *(2 * each for each in own)]
    scale = math.sqrt(len(covariates) + 1) / ((high - low) / 2)
    return tuple(float(each) * scale for each in (constant, *coefficients))


def _known_sizes(query: Query, source: Source) -> tuple[int, int] | None:
    """Return the number of units in each arm where it is public; none where units count as much as their weights."""
    return None if isinstance(query, WeightedRegressionMoments) else source.arm_sizes


def tables_of_moments(query: ProductSums, source: Source, versions: Array, half: float) -> tuple[Array, Array]:
    """Return moments as symmetric tables of all products of two numbers, without and with the arm's sign."""
    moments, known = query.moments(source.schema), _known_sizes(query, source)
    last = moments[-1].second + 1
    largest = np.ones(last)
    largest[OUTCOME] = half**2
    tables = np.zeros((2, len(versions), last, last))
    tables[0, :, CONSTANT, CONSTANT] = source.n if known is None else max(sum(known), 2)
    for moment, values in zip(moments, versions.T[: len(moments)], strict=True):
        table = tables[int(moment.signed)]
        if moment == Moment(CONSTANT, CONSTANT, signed=False):
            values = np.clip(values, 2.0, source.n)  # noqa: PLW2901 (as it is used below)
        ones = table[:, CONSTANT, CONSTANT] * largest[moment.first]
        value = ones - values if moment.deficit and not isinstance(query, WeightedRegressionMoments) else values
        table[:, moment.first, moment.second] = table[:, moment.second, moment.first] = value
        if moment.signed and known is not None:
            table[:, CONSTANT, CONSTANT] = known[1] - known[0]
    return tables[0], tables[1]


def _solve(covariances: Array, right: Array, noise_variance: Array | float = 0.0) -> Array:
    """Solve covariances · slopes = right, where each entry of the matrix has noise of this variance.

    The inverse of a noisy matrix is too large on average, by the factor 1 + excess / eigenvalue². The damping corrects
    that, and keeps directions that noise drowns out of the result.
    """
    values, vectors = np.linalg.eigh(covariances)
    damping = np.asarray(_excess(noise_variance, covariances.shape[-1]))[..., None] + _DAMPING
    inverse = np.where(values > 0, values / (values**2 + damping), 0.0)
    solution: Array = np.einsum("vaij,vaj->vai", vectors, inverse * np.einsum("vaji,vaj->vai", vectors, right))
    return solution


def _excess(noise_variance: Array | float, features: int) -> Array | float:
    """Return what noise adds to the mean inverse of a matrix of so many features, times an eigenvalue cubed."""
    return noise_variance * (features + 1)
