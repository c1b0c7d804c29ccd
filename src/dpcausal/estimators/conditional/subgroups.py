"""Effects in the groups of a public partition."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.meta_learners import DRLearner, learn
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.queries import Cells, Cut, SubgroupMoments
from dpcausal.queries.cuts import cuts_of
from dpcausal.release import Release
from dpcausal.results.curve import EffectCurve, matrix
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.arrays import Array

_SEEN_SDS, _FLOOR_SDS = 4.0, 2.0
"""An arm of a group is seen above so many standard deviations of the noise in its size, and never counts as smaller
than the second: with many groups, some noise goes beyond 3."""


@dataclass(frozen=True)
class SubgroupEffects(BaseEstimator):
    """The effect in each group of a public partition, with simultaneous intervals.

    Estimand:
        The average treatment effect in each group.

    Assumptions:
        Without `covariates`: within a group, arms are comparable, as in a trial. With `covariates`: as for `DRLearner`.

    Privacy:
        Without `covariates` one query: numbers of units and sums of outcomes in each arm of each group. A unit is in
        one group, so the noise does not grow with the number of groups. With `covariates` the queries of
        `DRLearner`. Groups must be public: listed values or public edges, chosen without looking at the table.

    Attributes:
        by: The covariates that define groups: names of listed ones, and `Cut`s of real ones.
        covariates: Confounders to adjust for; none in a trial.
        propensity: The probability of treatment where it is known; only where `covariates` is given.

    Example:
        >>> from dpcausal import Category, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(
        ...     treatment=Treatment("treat"),
        ...     outcome=Real("score", 0, 100),
        ...     covariates=[Category("ward", ["a", "b", "c"])],
        ... )
        >>> plan = SubgroupEffects(by=["ward"]).estimate(Rehearsal(schema, n=6_000), epsilon=1.0)
        >>> sampling, privacy = plan.standard_errors({"ward": ["a"]})
        >>> round(float(sampling[0]), 2), round(float(privacy[0]), 2)
        (1.29, 0.31)
    """

    by: Sequence[str | Cut]
    covariates: Sequence[str] | None = None
    propensity: float | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Estimate the effects of all groups for a total of epsilon and delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        cells = Cells(cuts_of(self.by))
        if self.covariates is None and self.propensity is not None:
            raise QueryError(
                expected="a propensity only where confounders are named (of)",
                got=repr(self.propensity),
                hint="in a trial omit both: arms are compared without adjustment.",
            )
        if self.covariates is not None:
            adjusted = DRLearner(self.covariates, cells, self.propensity)
            return learn(adjusted, "augmented", source, guarantee, level=False)
        release = source.release(SubgroupMoments(cells), guarantee)
        groups = _Groups(release, source, cells.names(source.schema))
        return EffectCurve.of(
            source,
            estimand="average treatment effect in each group",
            basis=cells,
            weights=tuple(float(each) for each in groups.effects),
            sampling=matrix(np.diag(groups.sampling)),
            privacy=matrix(np.diag(groups.privacy)),
            family=release.family,
            method="difference in means in each group",
            guarantee=guarantee,
            assumptions=(
                "within each group arms are comparable without adjustment, as in a randomised trial",
                NO_INTERFERENCE,
                *source.schema.data_handling,
            ),
            receipts=(release.receipt,),
            notes=_note(groups.hidden),
            parts=2 * release.parts,  # one arm's and the other's
        )


def _note(hidden: Sequence[str]) -> tuple[str, ...]:
    if not hidden:
        return ()
    return (f"sizes below the noise, so that intervals are as wide as possible: {', '.join(hidden)}",)


class _Groups:
    """The groups' effects, and the variances of their two errors. The first axis of an array is the group."""

    def __init__(self, release: Release, source: Source, names: Sequence[str]) -> None:
        low, high = source.schema.outcome_bounds
        half = (high - low) / 2

        def numbers(part: str) -> Array:
            return np.array([[release.value(f"{part}_{arm} of {name}") for arm in (0, 1)] for name in names])

        size_noise, total_noise, deficit_noise = (
            release.variance(f"{part}_0 of {names[0]}") for part in ("size", "total", "deficit")
        )
        counted = numbers("size")
        hidden = np.any(counted < _SEEN_SDS * math.sqrt(size_noise), axis=1)
        sizes = np.maximum(counted, max(_FLOOR_SDS * math.sqrt(size_noise), 2.0))
        means = np.clip(numbers("total") / sizes, -half, half)
        noise = (total_noise + means**2 * size_noise) / sizes**2
        own = half**2 - numbers("deficit") / sizes - means**2 + noise
        within = np.clip(_pooled(own, sizes, deficit_noise / sizes**2), 0.0, half**2)
        self.effects = means[:, 1] - means[:, 0]
        self.sampling = (within / (sizes - 1)).sum(axis=1)
        self.privacy = noise.sum(axis=1) + hidden * (2 * half) ** 2
        self.hidden = [name for name, below in zip(names, hidden.tolist(), strict=True) if below]


def _pooled(own: Array, sizes: Array, noise: Array) -> Array:
    """Shrink the variances of all arms of all groups towards their mean, as far as noise explains their differences."""
    mean = float((sizes * own).sum() / sizes.sum())
    apart = float(((own - mean) ** 2).mean())
    shrinkage = max(1 - float(noise.mean()) / apart, 0.0) if apart > 0 else 0.0
    pooled: Array = mean + shrinkage * (own - mean)
    return pooled
