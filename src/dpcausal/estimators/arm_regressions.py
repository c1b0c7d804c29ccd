"""Linear regressions of the outcome in every declared arm that know the noise in their moments.

The equations, their errors and the prior are those of `noise_aware_regression`. Here each arm has moments of its own,
with noise of its own. The prior joins the arms: their slopes differ little, so a small arm borrows from the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.estimators.interval_policy import ARM_NOISE_SDS
from dpcausal.estimators.noise_aware_regression import (
    ARMS_DIFFER,
    DAMPING,
    SPREADS_DIFFER,
    equation_errors,
    explained_share,
    slope_prior,
    solve_noise_aware,
)
from dpcausal.estimators.outcome_regression import unread_covariates
from dpcausal.estimators.plausibility import Measured, Signs
from dpcausal.estimators.scaled_features import surely_varies, unscaled_among
from dpcausal.queries.regression_moments import CONSTANT, FIRST_FEATURE, OUTCOME
from dpcausal.release import Release
from dpcausal.schema.schema import Schema
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array

if TYPE_CHECKING:
    from dpcausal.queries import ArmRegressionMoments

_VARIANCES_DIFFER = 0.3
"""How far the arms' residual variances differ, as a share of what they are."""


@dataclass(frozen=True)
class _Moments:
    """Released sums of every arm, in half ranges of the outcome. The first axis of tables is the arm.

    Attributes:
        tables: Sums of all products of two numbers: a constant, the outcome and the features.
        noise: The variance of the noise in each. That of a square, a count less a deficit, is that of both.
        sizes: The number of units, at least what noise could hide.
    """

    tables: Array
    noise: Array
    sizes: Array

    @classmethod
    def of(cls, release: Release, schema: Schema) -> Self:
        """Return the sums of a release of `ArmRegressionMoments`."""
        query: ArmRegressionMoments = release.query  # type: ignore[assignment]
        products, arms = query.products(schema), len(schema.treatment.arms)
        half = (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2
        last = products[-1][1] + 1
        tables, noise = np.zeros((2, arms, last, last))
        scales = np.ones(last)
        scales[OUTCOME] = 1 / half
        for arm in range(arms):
            for (first, second), name in zip(products, query.names(schema, arm), strict=True):
                scale = scales[first] * scales[second]
                value, variance = release.value(name) * scale, release.variance(name) * scale**2
                if first == second == CONSTANT:
                    value = max(value, math.sqrt(variance), 1.0)
                elif first == second:
                    value, variance = tables[arm, 0, 0] - value, variance + noise[arm, 0, 0]
                tables[arm, first, second] = tables[arm, second, first] = value
                noise[arm, first, second] = noise[arm, second, first] = variance
        return cls(tables, noise, tables[:, CONSTANT, CONSTANT].copy())


def _one_matrix(blocks: Array) -> Array:
    """Return blocks, one for each two arms, as one matrix."""
    arms, _, size, _ = blocks.shape
    matrix: Array = blocks.transpose(0, 2, 1, 3).reshape(arms * size, arms * size)
    return matrix


@dataclass(frozen=True)
class _Equations:
    """The equations of all arms' regressions. Features and outcome are measured from their means over all arms.

    Attributes:
        shift: Turns sums of features into those of features measured from their means.
        sums: For each arm, the sums of products of a constant and the features.
        right: For each arm, those of these with the outcome.
        sum_noise: For each two arms, the covariance of the noise in their sums before the shift.
        right_noise: For each arm, the variance of the noise in the right-hand sides.
        mean_noise: The variance of the noise in the sums of a constant and the features over all arms.
        spreads: The features' variances as far as they are sure, at least what noise could hide.
        resolution: The features' variances as far as they are sure, in standard deviations of the noise in them.
    """

    sizes: Array
    mean: float
    shift: Array
    sums: Array
    right: Array
    sum_noise: Array
    right_noise: Array
    mean_noise: Array
    variance: float
    spreads: Array
    resolution: Array

    @classmethod
    def of(cls, moments: _Moments, unscaled: Sequence[bool]) -> Self:
        """Return the equations, with the arms' covariances of features shrunk towards shared ones as noise asks for."""
        tables, sizes = moments.tables, moments.sizes
        n, arms = float(sizes.sum()), len(sizes)
        chosen = [CONSTANT, *range(FIRST_FEATURE, tables.shape[1])]
        table = np.ix_(range(arms), chosen, chosen)
        inner = np.s_[..., 1:, 1:]
        noise = moments.noise[table]
        shift = np.eye(len(chosen))
        shift[1:, 0] = -tables[:, CONSTANT, chosen[1:]].sum(axis=0) / n
        mean = float(tables[:, CONSTANT, OUTCOME].sum()) / n
        sums = shift @ tables[table] @ shift.T
        right = (tables[:, chosen, OUTCOME] - mean * tables[:, chosen, CONSTANT]) @ shift.T
        shared, shared_noise = sums.sum(axis=0)[inner], noise.sum(axis=0)
        centres = shift[1:, 0] ** 2
        of_means = 4 * centres * (shared_noise[0, 1:] + centres * shared_noise[0, 0])
        hidden = np.sqrt(np.diag(shared_noise)[1:] + of_means) / n
        surely = surely_varies(np.diag(shared) / n, hidden, unscaled)
        spreads = np.maximum(surely, hidden)

        sum_noise = np.zeros((arms, arms, len(chosen), len(chosen)))
        sum_noise[range(arms), range(arms)] = noise
        share = sizes / n
        part = share[:, None, None]
        apart_noise = np.maximum((1 - 2 * part) * noise[inner] + part**2 * shared_noise[inner], 0.0)
        expected = (SPREADS_DIFFER * sizes[:, None, None]) ** 2 * np.outer(spreads, spreads)
        seen = expected / (expected + apart_noise)
        sums[inner] = part * shared + seen * (sums[inner] - part * shared)
        sum_noise[inner] = np.outer(share, share)[:, :, None, None] * shared_noise[inner]
        sum_noise[range(arms), range(arms), 1:, 1:] += seen * apart_noise

        squares = tables[:, OUTCOME, OUTCOME].sum() - (tables[:, CONSTANT, OUTCOME] ** 2 / sizes).sum()
        least = math.sqrt(float(moments.noise[:, OUTCOME, OUTCOME].sum())) / n
        return cls(
            sizes=sizes,
            mean=mean,
            shift=shift,
            sums=sums,
            right=right,
            sum_noise=sum_noise,
            right_noise=moments.noise[:, chosen, OUTCOME],
            mean_noise=shared_noise[0],
            variance=min(max(float(squares) / n, least), 1.0),
            spreads=spreads,
            resolution=surely / hidden,
        )

    def error(self, unknowns: Array) -> Array:
        """Return the covariance of the errors that noise makes in the equations, for these unknowns."""
        arms, size = len(self.sizes), len(self.shift)
        shifted = unknowns.reshape(arms, size) @ self.shift  # as coefficients of features before the shift
        shifted[:, 0] += self.mean
        blocks = np.zeros((arms, arms, size, size))
        for one in range(arms):
            for other in range(arms):
                blocks[one, other] = equation_errors(shifted[one], shifted[other], self.sum_noise[one, other])
            blocks[one, one] += np.diag(self.right_noise[one])
        return _one_matrix(self.shift @ blocks @ self.shift.T)

    def damping(self, weights: Array) -> Array:
        """Return what to add to the precision of the arms' mean slopes."""
        arms, size = len(self.sizes), len(self.shift)
        own = np.diag(weights).reshape(arms, size)
        excess = sum(self.sum_noise[arm, arm] @ own[arm] for arm in range(arms))
        each = np.diag(DAMPING * excess * (np.arange(size) > 0)) / arms**2
        return np.asarray(np.kron(np.ones((arms, arms)), each), dtype=float)

    def prior(self, explained: float) -> Array:
        """Return the prior covariance: constants within the range, slopes that differ little between arms."""
        arms, size = len(self.sizes), len(self.shift)
        blocks = np.zeros((arms, arms, size, size))
        alike = (1 - ARMS_DIFFER) * np.ones((arms, arms)) + 2 * ARMS_DIFFER * np.eye(arms)
        slopes = explained * self.variance * slope_prior(self.spreads, self.sums[:, 0, 1:] / self.sizes[:, None])
        blocks[:, :, 1:, 1:] = alike[:, :, None, None] * slopes
        blocks[range(arms), range(arms), 0, 0] = 2.0
        return _one_matrix(blocks)


@dataclass(frozen=True)
class ArmRegressions:
    """The posterior of every arm's regression, from a release of `ArmRegressionMoments`.

    Outcomes are in half ranges, from the middle of their range. Features lie between -1 and 1, and are measured from
    their means over all arms: a constant is the mean outcome if all units of declared arms were in that arm.

    Attributes:
        coefficients: One line for each arm, the constant first.
        covariance: Their posterior covariance, arm by arm.
    """

    release: Release
    schema: Schema
    moments: _Moments
    equations: _Equations
    coefficients: Array
    covariance: Array

    @classmethod
    def of(cls, release: Release, schema: Schema) -> Self:
        """Fit the regressions."""
        moments = _Moments.of(release, schema)
        query: ArmRegressionMoments = release.query  # type: ignore[assignment]
        equations = _Equations.of(moments, unscaled_among(query.covariates, schema))
        arms = range(len(moments.sizes))
        design = np.zeros((len(arms), len(arms), *equations.shift.shape))
        design[arms, arms] = equations.sums
        unknowns, covariance, _ = solve_noise_aware(
            _one_matrix(design),
            equations.right.ravel(),
            equations.prior(explained_share(schema)),
            equations.error,
            equations.damping,
        )
        return cls(release, schema, moments, equations, unknowns.reshape(len(arms), -1), covariance)

    @property
    def _half(self) -> float:
        low, high = self.schema.outcome_bounds
        return (high - low) / 2

    @property
    def slopes(self) -> Array:
        """The slopes, one line for each arm."""
        return self.coefficients[:, 1:]

    def _slope_covariance(self, one: int, other: int) -> Array:
        size = self.coefficients.shape[1]
        covariance: Array = self.covariance[one * size + 1 : (one + 1) * size, other * size + 1 : (other + 1) * size]
        return covariance

    @property
    def resolution(self) -> Array:
        """Each feature's variance as far as it is sure, in standard deviations of the noise in it."""
        return self.equations.resolution

    @property
    def small(self) -> NDArray[np.bool_]:
        """Whether an arm may hold hardly any units, as one line."""
        few: NDArray[np.bool_] = self.moments.sizes < np.maximum(ARM_NOISE_SDS * self._size_sds, 5.0)
        return few[None]

    @property
    def _size_sds(self) -> Array:
        sds: Array = np.sqrt(self.moments.noise[:, CONSTANT, CONSTANT])
        return sds

    @cached_property
    def within(self) -> Array:
        """The covariance of the features within arms, shared by all."""
        equations = self.equations
        centres = equations.sums[:, 0, 1:] / equations.sizes[:, None]
        between = (equations.sizes[:, None, None] * centres[:, :, None] * centres[:, None, :]).sum(axis=0)
        covariance = (equations.sums[:, 1:, 1:].sum(axis=0) - between) / equations.sizes.sum()
        hidden = float((equations.spreads / np.maximum(equations.resolution, 1.0)).min())
        values, vectors = np.linalg.eigh(covariance)
        floored: Array = (vectors * np.maximum(values, hidden)) @ vectors.T
        return floored

    @cached_property
    def residual_variances(self) -> Array:
        """The outcome's variance around each regression: own ones as far as noise shows that arms differ."""
        equations, moments, sizes = self.equations, self.moments, self.moments.sizes
        centres = equations.sums[:, 0, 1:] / sizes[:, None]
        apart = equations.right[:, 0] / sizes
        along = equations.right[:, 1:] / sizes[:, None] - centres * apart[:, None]
        total = moments.tables[:, OUTCOME, OUTCOME] / sizes - (equations.mean + apart) ** 2
        unsure = [float(np.sum(self.within * self._slope_covariance(arm, arm))) for arm in range(len(sizes))]
        explained = 2 * (self.slopes * along).sum(axis=1) - ((self.slopes @ self.within) * self.slopes).sum(axis=1)
        own = total - explained + np.array(unsure)
        hidden = np.sqrt(moments.noise[:, OUTCOME, OUTCOME]) / sizes
        pooled = max(float(sizes @ own), math.sqrt(float(moments.noise[:, OUTCOME, OUTCOME].sum()))) / sizes.sum()
        expected = (_VARIANCES_DIFFER * pooled) ** 2
        seen = expected / (expected + hidden**2)
        clipped: Array = np.clip(pooled + seen * (own - pooled), pooled / 4, 1.0)
        return clipped

    def means(self) -> JointEstimate:
        """Return every arm's mean outcome if all units of declared arms were in it."""
        equations, half = self.equations, self._half
        arms, n = len(equations.sizes), float(equations.sizes.sum())
        names = self.schema.treatment.every_label
        # Noise in the features' means over all arms moves every arm's mean along its slopes.
        centres = -equations.shift[1:, 0]
        at_centre = self.slopes @ centres
        moved = np.outer(at_centre, at_centre) * equations.mean_noise[0]
        unsure = np.array([[np.diag(self._slope_covariance(a, b)) for b in range(arms)] for a in range(arms)])
        moved = moved + (self.slopes[:, None] * self.slopes + unsure) @ equations.mean_noise[1:]
        places = np.arange(arms) * self.coefficients.shape[1]
        noise = self.covariance[np.ix_(places, places)] + moved / n**2
        totals = [f"arm_{arm} * outcome" for arm in range(arms)]
        own = self.release.joint_noise(totals, np.diag(1 / equations.sizes))
        known = np.diag(list(map(self.release.variance, totals))) / (half * equations.sizes) ** 2
        values, vectors = np.linalg.eigh(noise - known)
        rest = half * vectors * np.sqrt(np.maximum(values, 0.0))
        middle = sum(self.schema.outcome_bounds) / 2
        return JointEstimate(
            names,
            tuple(map(float, middle + half * (equations.mean + self.coefficients[:, 0]))),
            tuple(tuple(map(float, line)) for line in half**2 * self._sampling()),
            (*own, *(JointNoise("gaussian", tuple(map(float, line))) for line in rest.T)),
        )

    def _sampling(self) -> Array:
        """Return the covariance of the means without privacy noise: residuals in each arm, and features in all."""
        equations, sizes = self.equations, self.equations.sizes
        centres = equations.sums[:, 0, 1:] / sizes[:, None]
        length = np.maximum((centres * np.linalg.solve(self.within, centres.T).T).sum(axis=1), 0.0)
        around = np.diag(self.residual_variances / sizes * (1 + length))
        spread = equations.sums[:, 1:, 1:].sum(axis=0) / sizes.sum()
        shared: Array = self.slopes @ spread @ self.slopes.T / sizes.sum()
        return around + shared

    def adjustments(self, first: int, second: int) -> Array:
        """Return what each feature takes off the difference between two arms' means."""
        centres = self.equations.sums[:, 0, 1:] / self.equations.sizes[:, None]
        taken: Array = self._half * (self.slopes[second] * centres[second] - self.slopes[first] * centres[first])
        return taken

    def arm_sizes(self, names: Sequence[str]) -> JointEstimate:
        """Return the number of units in each arm, with the noise in it."""
        arms = len(names)
        noise = self.release.joint_noise([f"arm_{arm}" for arm in range(arms)], np.eye(arms))
        none = tuple((0.0,) * arms for _ in names)
        return JointEstimate(tuple(names), tuple(map(float, self.moments.sizes)), none, noise)

    def signs(self, places: Sequence[int], means: JointEstimate) -> Signs:
        """Return what the release shows about the two compared arms, and about covariates."""
        query: ArmRegressionMoments = self.release.query  # type: ignore[assignment]
        arms, n = range(len(means.names)), float(self.moments.sizes.sum())
        lines = np.eye(len(means.names))[list(places)].tolist()
        noise = [sum(term.variance for term in means.noise_along(line)) ** 0.5 for line in lines]

        def mean(name: str) -> Measured:
            names = [f"arm_{arm} * {name}" for arm in arms]
            return Measured(
                sum(map(self.release.value, names)) / n, math.sqrt(sum(map(self.release.variance, names))) / n
            )

        return Signs(
            sizes=tuple(Measured(float(self.moments.sizes[place]), float(self._size_sds[place])) for place in places),
            means=tuple(Measured(means.values[place], each) for place, each in zip(places, noise, strict=True)),
            variance=Measured(
                self._half**2 * self.equations.variance,
                self._half**2 * math.sqrt(float(self.moments.noise[:, OUTCOME, OUTCOME].sum())) / n,
            ),
            unread=unread_covariates(query.covariates, self.schema, mean),
        )
