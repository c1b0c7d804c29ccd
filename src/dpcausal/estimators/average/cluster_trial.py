"""A cluster-randomised trial, from noisy totals of its clusters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.queries import ClusterMoments
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.interval import merged, student_half_width

_LEVEL = 0.95
"""The level at which an interval is exactly Student's."""

_LEAST_LEFT = 0.1
"""Below this part of the variance that residuals keep there is no interval: a cluster has over 0.8 of its arm."""


@dataclass(frozen=True)
class ClusterTrial(BaseEstimator):
    """Difference in mean outcome between treated and control clusters, with an interval that allows for clustering.

    Estimand:
        The average treatment effect over persons: the mean outcome of all persons with every cluster treated minus that
        with none. A cluster counts by its number of persons.

    Assumptions:
        Clusters were randomised, and each is in one arm. Persons of one cluster may resemble or influence each other;
        clusters do not. Persons whose recorded arm is not that of their cluster are left out. For the interval: the
        clusters are a sample of many, and there are at least about eight in each arm, or their totals are near normal.
        Clusters may differ in size, as long as none holds most persons of its arm: then there is no interval.

    Privacy:
        The unit of privacy is the person. One query: size, total and sum of squares of each cluster, with noise. One
        person leaves one cluster and enters another, so noise in each does not grow with the number of clusters. That
        in a mean grows as its root, for a fixed number of persons. The list of clusters, and which of them are treated,
        must be public. Where a whole cluster is to be protected, make it the unit: docs/clusters.md.

    Attributes:
        cluster: The covariate that lists the clusters.
        treated: The values of the clusters that were allocated to treatment; all others are controls.
        icc: The expected intracluster correlation, for plans. With data it is estimated, and noted.

    Reference:
        Donner and Klar (2000), Design and Analysis of Cluster Randomization Trials in Health Research; Cochran (1977),
        Sampling Techniques, section 6.3, for the variance of a ratio. The spread of noisy cluster totals holds the
        privacy noise already, so Student's quantile with clusters - 2 degrees of freedom applies to both together.
        Where sizes differ, the mean of an arm follows its large clusters. Their residuals are then too small and there
        are fewer degrees of freedom, so both are corrected as in Bell and McCaffrey (2002), Bias Reduction in Standard
        Errors for Linear Regression with Multi-Stage Samples, with the released sizes.

    Example:
        >>> from dpcausal import Category, Real, Rehearsal, Schema, Treatment
        >>> villages = [f"village {place}" for place in range(40)]
        >>> schema = Schema(
        ...     treatment=Treatment("arm"), outcome=Real("score", 0, 100), covariates=[Category("village", villages)]
        ... )
        >>> trial = Rehearsal(schema, n=4_000, outcome_sd=15)
        >>> plan = ClusterTrial("village", treated=villages[:20], icc=0.05).estimate(trial, epsilon=1.0)
        >>> round(plan.sampling_sd, 2), round(plan.privacy_sd, 2)
        (1.21, 0.67)
    """

    also_called: ClassVar[str] = (
        "cluster clusters clustered crt cluster_randomised cluster_randomized cluster_rct group_randomized "
        "group_randomised gee"
    )
    estimates_average: ClassVar[bool] = True

    cluster: str
    treated: Sequence[Value]
    icc: float = 0.05

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return a trial of the clusters that are values of the first listed covariate; every second one is treated."""
        listed = next((column for column in schema.covariates if isinstance(column, Binary | Category)), None)
        return cls(listed.name, tuple(listed.values[1::2])) if listed else cls("", ())

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        query = ClusterMoments(self.cluster, self.treated, self.icc)
        clusters = query.clusters(source.schema)
        coordinate = f"total of {next(iter(clusters))}"
        guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), coordinate)
        release = source.release(query, guarantee)
        low, high = source.schema.outcome_bounds
        half, middle = (high - low) / 2, (low + high) / 2
        names = [[name for name, its in clusters.items() if its == arm] for arm in (0, 1)]
        labels = source.schema.treatment.labels_or_values
        means = release.estimates(labels, lambda value: [middle + _mean(its, half, value) for its in names])
        sizes = release.estimates(labels, lambda value: [_size(its, value) for its in names])
        noises = np.diag(means.covariance)
        arms = [_Arm.of(release, its, half, float(each)) for its, each in zip(names, noises, strict=True)]
        noise = merged(means.noise_along((-1.0, 1.0)))
        freedom = max(round(sum(arm.equal_clusters for arm in arms)) - 2, 1)
        widened = (student_half_width(freedom, _LEVEL) / NormalDist().inv_cdf((1 + _LEVEL) / 2)) ** 2
        refusal = _refusal(arms)
        variance = widened * sum(arm.variance for arm in arms) - noise.variance
        errors = np.diag([max(widened * arm.variance - arm.noise, 0.0) for arm in arms])
        risk = " (risk difference)" if isinstance(source.schema.outcome, Binary) else ""
        effect = Effect(
            estimand=f"average treatment effect over persons{risk}: mean outcome with all clusters treated minus mean "
            "outcome with none",
            arms=labels,
            outcome=source.schema.outcome.title,
            estimate=arms[1].mean - arms[0].mean,
            sampling_sd=None if refusal else math.sqrt(max(variance, 0.0)),
            noise=(noise,),
            n=source.n,
            method=f"difference in means of {arms[1].count} treated and {arms[0].count} control clusters by "
            f"{self.cluster}",
            guarantee=guarantee,
            assumptions=(
                "clusters were randomised, and their arms are as listed",
                "one cluster's outcomes do not depend on another cluster's arm",
                "for the interval: cluster means are near normal, or clusters are many",
                *source.schema.data_handling,
                *source.schema.covariate_handling([self.cluster]),
            ),
            receipts=(release.receipt,),
            notes=(*_clustering(arms), *source.caveats),
            no_interval=refusal,
            arm_means=None if refusal else replace(means, sampling=tuple(map(tuple, errors.tolist()))),
            arm_sizes=sizes,
        )
        sds = np.sqrt(np.diag(sizes.covariance)).tolist()
        return warned(effect, source.schema, Signs(sizes=tuple(map(Measured, sizes.values, sds))))


def _refusal(arms: Sequence["_Arm"]) -> str:
    """Return why there is no interval; empty where there is one."""
    if min(arm.count for arm in arms) < 2:
        return "an arm with one cluster does not show how clusters differ"
    if min(arm.left for arm in arms) < _LEAST_LEFT:
        return "one cluster seems to hold nearly all persons of an arm, so the others do not show how far it may be off"
    return ""


def _size(names: Sequence[str], value: ValueOf) -> Numbers:
    """Return the number of persons in some clusters, at least one for each."""
    return within(_values("size", names, value).sum(), float(len(names)), math.inf)


def _mean(names: Sequence[str], half: float, value: ValueOf) -> Numbers:
    """Return the mean outcome of all persons in some clusters, from the middle of its range."""
    return within(_values("total", names, value).sum() / _size(names, value), -half, half)


@dataclass(frozen=True)
class _Arm:
    """One arm's clusters as released. Outcomes are measured from the middle of their range.

    Attributes:
        size: The number of persons, at least one for each cluster.
        variance: The variance of that mean, sampling of clusters and privacy noise together.
        within: The variance of the outcome over persons.
        weighted_size: The mean number of persons in a person's own cluster.
        noise: The variance of the privacy noise in the mean.
        equal_clusters: How many clusters of one size would give a mean with the same error, where clusters differ.
        left: The part of the clusters' variance that their residuals from the arm's mean keep.
    """

    count: int
    size: float
    mean: float
    variance: float
    within: float
    weighted_size: float
    noise: float
    equal_clusters: float
    left: float

    @classmethod
    def of(cls, release: Release, names: Sequence[str], half: float, noise: float) -> "_Arm":
        count = len(names)
        sizes, totals, deficits = (_values(part, names, release.value) for part in ("size", "total", "deficit"))
        size, mean = float(_size(names, release.value)), float(_mean(names, half, release.value))
        residuals = totals - mean * sizes
        spread = float((residuals**2).sum()) * count / max(count - 1, 1)
        squares = half**2 - float(deficits.sum()) / size - mean**2
        size_variance = release.variance(f"size of {names[0]}")
        # Without an exact answer the sum of squared sizes may be anything; a person's own cluster holds the person.
        weighted = (float((sizes**2).sum()) - count * size_variance) / size
        equal_clusters, left = _unequal(sizes, size_variance)
        variance = spread / size**2
        # The noise is alike in all clusters, whatever their sizes.
        variance += max(variance - noise, 0.0) * max((1 - 1 / count) / max(left, _LEAST_LEFT) - 1, 0.0)
        return cls(
            count=count,
            size=size,
            mean=mean,
            variance=variance,
            within=min(max(squares, 1e-6 * half**2), half**2),
            weighted_size=max(weighted, 1.0),
            noise=noise,
            equal_clusters=equal_clusters,
            left=left,
        )

    @property
    def sampling(self) -> float:
        """The variance of the mean without privacy noise; noise may make it negative."""
        return self.variance - self.noise


def _unequal(sizes: Numbers, noise: float) -> tuple[float, float]:
    """Return how many clusters of one size count as much, and which part of their variance residuals keep.

    A cluster with a share w of its arm pulls the arm's mean along. If totals vary in proportion to sizes, the sum of
    squared residuals has 1 - 2 sum(w^3) / sum(w^2) + sum(w^2) of the variance of the mean: 1 - 1 / count for equal w.

    Args:
        noise: The variance of the noise in each size; it is taken off their spread.

    Example:
        >>> _unequal(np.array([50.0, 50.0, 50.0, 50.0]), 0.0)
        (4.0, 0.75)
        >>> [round(each, 2) for each in _unequal(np.array([850.0, 50.0, 50.0, 50.0]), 0.0)]
        [1.37, 0.05]
    """
    mean = max(float(sizes.mean()), 1.0)
    apart = sizes - sizes.mean()
    squares = float((apart**2).sum())
    expected = max(len(sizes) - 1, 1) * noise
    kept = math.sqrt(max(1 - expected / squares, 0.0)) if squares > 0 else 0.0
    shares = np.maximum(mean + kept * apart, 0.0)
    shares /= shares.sum()
    square, cube = float((shares**2).sum()), float((shares**3).sum())
    return 1 / square, 1 - 2 * cube / square + square


def _values(part: str, names: Sequence[str], value: ValueOf) -> Numbers:
    return np.array([value(f"{part} of {name}") for name in names])


def _clustering(arms: Sequence[_Arm]) -> tuple[str, ...]:
    """Return the intracluster correlation and the design effect, with the standard errors of both, as a note."""
    if min(arm.count for arm in arms) < 2:
        return ()
    alone = sum(arm.within / arm.size for arm in arms)
    factor = sum(arm.sampling for arm in arms) / alone
    error = math.sqrt(sum(2 / (arm.count - 1) * arm.variance**2 for arm in arms)) / alone
    more = sum(arm.within / arm.size * (arm.weighted_size - 1) for arm in arms) / alone
    icc = f"intracluster correlation {(factor - 1) / more:.3f} ± {error / more:.3f}, " if more > 0.5 else ""
    return (f"{icc}design effect {factor:.2f} ± {error:.2f} (noisy, with standard errors; below 0 or 1 by chance)",)
