"""Means of the outcome in every arm, or every arm of every stratum, with their joint error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpcausal.arrays import Array
from dpcausal.columns import Binary
from dpcausal.effect import Effect
from dpcausal.errors import QueryError
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.guarantee import Guarantee
from dpcausal.joint_estimate import JointEstimate, JointNoise
from dpcausal.queries import CellMoments, LookMoments
from dpcausal.release import Release
from dpcausal.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.treatment import Treatment

MOST_CELLS = 60
"""Noise in an average over strata grows with the root of their number; more cells than these would be mostly noise."""

_SURE = 4.0
"""A cell counts as large enough where its noisy size is so many standard deviations of its noise, and 5 units."""


@dataclass(frozen=True)
class CellMeans:
    """Released sums in cells: strata by arms. Strata may be joined, and then have the noise of all of their parts.

    Attributes:
        release: The release.
        middle: The middle of the outcome's range.
        half: Half of the outcome's range.
        totals: The sum of outcomes from the middle, stratum by arm, noise included.
        deficits: The sum of squared half ranges less squared outcomes, likewise.
        sizes: The number of units, likewise, at least 1.
        parts: How many released cells each of these is the sum of, stratum by stratum.
    """

    release: Release
    middle: float
    half: float
    totals: Array
    deficits: Array
    sizes: Array
    parts: Array

    @classmethod
    def of(cls, release: Release, schema: Schema) -> Self:
        """Return the cells of a release of `CellMoments`, or the arms of one of `LookMoments`."""
        low, high = schema.outcome_bounds
        query: CellMoments | LookMoments = release.query  # type: ignore[assignment]
        cells, arms = query.cells(schema), len(schema.treatment.arms)
        totals, deficits, sizes = (
            np.array([release.value(f"{part}{cell}") for cell in cells]).reshape(-1, arms)
            for part in ("total", "deficit", "size")
        )
        parts = np.ones(len(sizes))
        return cls(release, (low + high) / 2, (high - low) / 2, totals, deficits, np.maximum(sizes, 1.0), parts)

    @property
    def means(self) -> Array:
        """The mean outcome in each cell, from the middle of its range."""
        means: Array = self.totals / self.sizes
        return means

    @property
    def outcome_variances(self) -> Array:
        """The outcome's variance within each cell, corrected for the noise in the squares of the means."""
        noise = (self.variance("total") + self.means**2 * self.variance("size")) / self.sizes**2
        return np.clip(self.half**2 - self.deficits / self.sizes - self.means**2 + noise, 0.0, self.half**2)

    @property
    def sampling_variances(self) -> Array:
        """The variance of each cell's mean without privacy noise."""
        variances: Array = self.outcome_variances / np.maximum(self.sizes - 1, 1.0)
        return variances

    def variance(self, part: str) -> Array:
        """Return the variance of the noise in the totals, deficits or sizes: one column, stratum by stratum."""
        return self.release.variance(self._first(part)) * self.parts[:, None]

    def _first(self, part: str) -> str:
        return next(name for name in self.release.names if name.startswith(part))

    @property
    def small(self) -> NDArray[np.bool_]:
        """Whether a cell may hold hardly any units, stratum by arm."""
        few: NDArray[np.bool_] = self.sizes < np.maximum(_SURE * np.sqrt(self.variance("size")), 5.0)
        return few

    def joined(self) -> "CellMeans":
        """Return the same with all strata joined into one in which an arm may hold hardly any units.

        That uses released numbers only. Where the joined one is still small, it is joined with the smallest other.
        """
        groups = np.atleast_1d(self.small.any(axis=1))
        if not groups.any() or len(groups) == 1:
            return self
        if not groups.all() and self._summed(groups).small[0].any():
            groups[np.argmin(np.where(groups, np.inf, self.sizes.min(axis=1)))] = True
        return self._summed(groups)

    def _summed(self, chosen: NDArray[np.bool_]) -> "CellMeans":
        def summed(values: Array) -> Array:
            return np.concatenate([values[chosen].sum(axis=0, keepdims=True), values[~chosen]])

        return CellMeans(
            self.release,
            self.middle,
            self.half,
            *(summed(each) for each in (self.totals, self.deficits, self.sizes, self.parts)),
        )

    def averaged(
        self, names: Sequence[str], weights: Array, by_size: Array | None = None, sampling: Array | None = None
    ) -> JointEstimate:
        """Return linear combinations of the cells' means, with their joint error.

        Args:
            names: What each is.
            weights: For each one, the weight of each cell's mean; their sum is 1 for a mean and 0 for a contrast.
            by_size: For each one, its derivative by the size of each cell, through the weights alone.
            sampling: A part of the covariance of the sampling errors that comes from the weights.
        """
        flat = weights.reshape(len(names), -1)
        through = np.zeros_like(flat) if by_size is None else by_size.reshape(len(names), -1)
        means, sizes = self.means.ravel(), self.sizes.ravel()
        arms = self.sizes.shape[1]
        covariance = (flat * self.sampling_variances.ravel()) @ flat.T + (0.0 if sampling is None else sampling)
        slopes = {"total": flat / sizes, "size": through - flat * means / sizes}
        noise = [
            self._noise(part, along[:, place], int(self.parts[place // arms]))
            for place in range(len(means))
            for part, along in slopes.items()
        ]
        middle = self.middle * np.round(flat.sum(axis=1), 9)
        return JointEstimate(
            tuple(names),
            tuple(map(float, middle + flat @ means)),
            tuple(tuple(map(float, line)) for line in covariance),
            tuple(each for each in noise if any(each.scales)),
        )

    def _noise(self, part: str, slopes: Array, parts: int) -> JointNoise:
        one = self.release.joint_noise(self._first(part), tuple(map(float, slopes * parts**0.5)))
        return JointNoise(one.family, one.scales, one.parts * parts)

    def arm_sizes(self, names: Sequence[str]) -> JointEstimate:
        """Return the number of units in each arm, with the noise in it."""
        arms, parts = len(names), int(self.parts.sum())
        none = tuple((0.0,) * arms for _ in names)
        noise = (self._noise("size", np.eye(arms)[place], parts) for place in range(arms))
        return JointEstimate(tuple(names), tuple(map(float, self.sizes.sum(axis=0))), none, tuple(noise))

    def signs(self, places: Sequence[int], means: JointEstimate) -> Signs:
        """Return what the release shows about the two compared arms."""
        sd = float(np.sqrt(self.variance("size").sum()))
        lines = np.eye(len(means.names))[list(places)].tolist()
        noise = [sum(term.variance for term in means.noise_along(line)) ** 0.5 for line in lines]
        spread = self.variance("deficit") / self.sizes**2
        return Signs(
            sizes=tuple(Measured(float(self.sizes[:, place].sum()), sd) for place in places),
            means=tuple(Measured(means.values[place], each) for place, each in zip(places, noise, strict=True)),
            variance=Measured(
                float(np.mean(self.outcome_variances)), float(np.sqrt(spread.sum()) / np.prod(self.sizes.shape))
            ),
        )


def released_cells(query: CellMoments, source: Source, epsilon: float, delta: float) -> tuple[CellMeans, Guarantee]:
    """Ask for the sums in all cells; noise is Laplace, or Gaussian where that is smaller."""
    count = len(query.cells(source.schema))
    if count > MOST_CELLS:
        raise QueryError(
            expected=f"at most {MOST_CELLS} cells: arms times strata, or arms times levels of the factor",
            got=str(count),
            hint="use fewer strata: noise in an average over them grows with the root of their number. For two arms, "
            "Stratification has noise that does not.",
        )
    guarantee = narrower(query, source, guarantee_for(source, epsilon, delta), f"total{query.cells(source.schema)[0]}")
    return CellMeans.of(source.release(query, guarantee), source.schema), guarantee


class ReleasedArms(Protocol):
    """What an effect of several arms is made of."""

    @property
    def release(self) -> Release:
        """The release."""
        ...

    @property
    def small(self) -> NDArray[np.bool_]:
        """Whether a cell may hold hardly any units, stratum by arm."""
        ...

    def arm_sizes(self, names: Sequence[str]) -> JointEstimate:
        """Return the number of units in each arm, with the noise in it."""
        ...

    def signs(self, places: Sequence[int], means: JointEstimate) -> Signs:
        """Return what the release shows about the two compared arms."""
        ...


def effect_of(  # noqa: PLR0913 (all but five have names)
    source: Source,
    cells: ReleasedArms,
    guarantee: Guarantee,
    arm_means: JointEstimate,
    contrasts: JointEstimate,
    *,
    estimand: str,
    method: str,
    assumptions: Sequence[str],
    notes: Sequence[str] = (),
    no_interval: str = "",
    unadjusted: tuple[str, ...] = (),
) -> Effect:
    """Return the effect of the declared comparison, with all means and contrasts."""
    treatment = source.schema.treatment
    places = treatment.compared_places
    line = [float(place == places[1]) - float(place == places[0]) for place in range(len(arm_means.names))]
    few = [treatment.every_label[place] for place in range(len(treatment.arms)) if cells.small[:, place].any()]
    hidden = bool(cells.small[:, list(places)].any())
    values = arm_means.values
    risk = " (risk difference)" if isinstance(source.schema.outcome, Binary) else ""
    effect = Effect(
        estimand=estimand.replace("effect", f"effect{risk}", 1),
        arms=treatment.labels_or_values,
        outcome=source.schema.outcome.name,
        estimate=values[places[1]] - values[places[0]],
        sampling_sd=arm_means.sampling_sd(line),
        noise=arm_means.noise_along(line),
        n=source.n,
        method=method,
        guarantee=guarantee,
        assumptions=(*assumptions, _arms_read(treatment), *source.schema.data_handling[1:]),
        receipts=(cells.release.receipt,),
        notes=(*notes, *([f"noise may hide all units of {', '.join(few)}"] if few else []), *source.caveats),
        no_interval="a compared arm is so small that noise may hide all of its units" if hidden else no_interval,
        unadjusted=() if hidden else unadjusted,
        arm_means=arm_means,
        arm_sizes=cells.arm_sizes(treatment.every_label),
        contrasts=contrasts,
    )
    return warned(effect, source.schema, cells.signs(places, arm_means))


def _arms_read(treatment: Treatment) -> str:
    """Return where units count whose arm is missing or not declared, in words."""
    if treatment.undeclared is None:
        return "units whose arm is missing or not declared count in no arm"
    return f"a missing or undeclared arm counted as {treatment.label(treatment.undeclared)}"
