"""Means of the outcome in every arm, or every arm of every stratum, with their joint error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError
from dpcausal.estimators.arm_regressions import ArmRegressions
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, Signs, warned
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CellMoments, LookMoments
from dpcausal.release import Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers, slopes, within
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.arrays import Array

MOST_CELLS = 60
"""Noise in an average over strata grows with the root of their number; more cells than these would be mostly noise."""

_SURE = 4.0
"""A cell counts as large enough where its noisy size is so many standard deviations of its noise, and 5 units."""


@dataclass(frozen=True)
class CellMeans:
    """Released sums in cells: strata by arms. Strata may be joined, and then have the noise of all of their parts.

    Attributes:
        release: The release of `CellMoments`, or of `LookMoments`, whose arms are those of one stratum.
        together: Which released strata are joined into one; empty where none are.
    """

    release: Release
    schema: Schema
    together: tuple[bool, ...] = ()

    @property
    def middle(self) -> float:
        """The middle of the outcome's range."""
        low, high = self.schema.outcome_bounds
        return (low + high) / 2

    @property
    def half(self) -> float:
        """Half of the outcome's range."""
        low, high = self.schema.outcome_bounds
        return (high - low) / 2

    @cached_property
    def _cells(self) -> Sequence[str]:
        query: CellMoments | LookMoments = self.release.query  # type: ignore[assignment]
        return query.cells(self.schema)

    def _sums(self, part: str, value: ValueOf) -> Numbers:
        sums = np.array([value(f"{part}{cell}") for cell in self._cells])
        return self._in_strata(sums.reshape(-1, len(self.schema.treatment.arms)))

    def _in_strata(self, released: Numbers) -> Numbers:
        if not any(self.together):
            return released
        chosen = np.array(self.together)
        return np.concatenate([released[chosen].sum(axis=0, keepdims=True), released[~chosen]])

    def _sizes(self, value: ValueOf) -> Numbers:
        return self._sums("size", lambda name: within(value(name), 1.0, np.inf))

    @cached_property
    def totals(self) -> Array:
        """The sum of outcomes from the middle, stratum by arm, noise included."""
        return np.asarray(self._sums("total", self.release.value))

    @cached_property
    def deficits(self) -> Array:
        """The sum of squared half ranges less squared outcomes, likewise."""
        return np.asarray(self._sums("deficit", self.release.value))

    @cached_property
    def sizes(self) -> Array:
        """The number of units, likewise, at least 1 in each released cell."""
        return np.asarray(self._sizes(self.release.value))

    @cached_property
    def parts(self) -> Array:
        """How many released cells each of these is the sum of, stratum by stratum."""
        return np.asarray(self._in_strata(np.ones(len(self._cells) // len(self.schema.treatment.arms))))

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
        if not groups.all() and replace(self, together=tuple(groups)).small[0].any():
            groups[np.argmin(np.where(groups, np.inf, self.sizes.min(axis=1)))] = True
        return replace(self, together=tuple(groups))

    def estimates(self, names: Sequence[str], formula: Callable[[Numbers, Numbers], Numbers]) -> JointEstimate:
        """Return functions of the cells' means and sizes, with their joint error.

        Args:
            formula: It takes the means, from the middle of the outcome's range, and the sizes, each stratum by arm.
        """
        by_mean, by_size = np.moveaxis(slopes(lambda both: formula(*both), [self.means, self.sizes]), 1, 0).reshape(
            2, len(names), -1
        )
        # Cells have independent means, and units are drawn from all cells.
        sampling = (by_mean * self.sampling_variances.ravel()) @ by_mean.T + (by_size * self.sizes.ravel()) @ by_size.T

        def of_sums(value: ValueOf) -> Numbers:
            sizes = self._sizes(value)
            return formula(self._sums("total", value) / sizes, sizes)

        return self.release.estimates(names, of_sums, sampling)

    def arm_sizes(self, names: Sequence[str]) -> JointEstimate:
        """Return the number of units in each arm, with the noise in it."""
        return self.release.estimates(names, lambda value: self._sizes(value).sum(axis=0))

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
    return CellMeans(source.release(query, guarantee), source.schema), guarantee


def effect_of(  # noqa: PLR0913 (all but five have names)
    source: Source,
    cells: CellMeans | ArmRegressions,
    guarantee: Guarantee,
    arm_means: JointEstimate,
    contrasts: JointEstimate,
    *,
    kind: str,
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
        estimand=f"{kind}{risk}: {estimand}",
        arms=treatment.labels_or_values,
        outcome=source.schema.outcome.title,
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
