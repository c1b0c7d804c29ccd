"""The difference between arms in how the outcome changed from before to after."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.messages import NO_INTERFERENCE
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.two_means import joint_means, joint_sizes
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Cells, ChangeMoments, Cut, SubgroupMoments
from dpcausal.queries.change_moments import widest_change
from dpcausal.release import Receipt, Release, ValueOf
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RequiringSource, Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers, within
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import is_number

_CERTAIN = 10.0
"""An interval needs every cell to hold so many times as many units as the standard deviation of the noise in it."""


@dataclass(frozen=True)
class DifferenceInDifferences(BaseEstimator):
    """Difference between the two arms in the mean change of the outcome from before to after.

    Either `before` or `period` is given. With `before`, each unit has both values: the outcome is the value after, and
    a covariate holds the value before. With `period`, each unit was seen once: a covariate holds the period, and the
    four means of arms and periods are compared (repeated cross-sections).

    Estimand:
        The average treatment effect on the treated, after the treatment began.

    Assumptions:
        Parallel trends: without treatment the treated arm would have changed by as much, on average, as the control arm
        did. Arms need not be comparable otherwise. Nobody reacted before the treatment began.

    Privacy:
        With `before`, one query with the noise of `DifferenceInMeans` for an outcome with the bounds of the change;
        with `earlier` a second one, and epsilon is divided. With `period`, one query, whatever the number of periods.

    Interval:
        For sampling error and privacy noise. A variance is at least the standard deviation of the noise in it, so where
        changes fill a small part of their bounds in a small table intervals are somewhat too wide.

    Attributes:
        before: The covariate that holds each unit's value before.
        period: The covariate that holds the period: a Binary, or a Category whose values are listed in the order of
            time. The last two are compared, and each pair before them gives a placebo.
        earlier: With `before`: a covariate with the value at a still earlier time. Its change to `before` is a placebo,
            which should be 0 if trends are parallel.
        change: With `before`: public bounds of the change, lower and upper, where they are narrower than those that
            follow from the bounds of both columns; a change beyond counts as the bound.
        placebo_share: With `earlier`: the share of epsilon for the placebo.

    Reference:
        Card and Krueger (1994); Roth, Sant'Anna, Bilinski and Poe (2023), What's trending in
        difference-in-differences? Proof of privacy: docs/proofs/sums.md.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> pain = [Real("pain_before", 0, 10)]
        >>> schema = Schema(treatment=Treatment("arm"), outcome=Real("pain_after", 0, 10), covariates=pain)
        >>> clinic = Rehearsal(schema, n=2_000, outcome_sd=2.0)
        >>> wide = DifferenceInDifferences(before="pain_before").estimate(clinic, epsilon=1.0)
        >>> narrow = DifferenceInDifferences(before="pain_before", change=(-6, 6)).estimate(clinic, epsilon=1.0)
        >>> round(wide.privacy_sd, 3), round(narrow.privacy_sd, 3)
        (0.06, 0.036)
    """

    identified_by_design: ClassVar[bool] = True
    also_called: ClassVar[str] = (
        "did diff_in_diff diff_in_diffs dind change_score change_scores change_from_baseline gain_score twfe "
        "before_after repeated_cross_sections"
    )

    before: str = ""
    period: str = ""
    earlier: str = ""
    change: Sequence[float] = ()
    placebo_share: float = 1 / 3

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator whose value before is the first number, or whose period is the first listed covariate."""
        names = {isinstance(column, Real): column.name for column in reversed(schema.covariates)}
        return cls(before=names[True]) if True in names else cls(period=names.get(False, ""))

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        self._check()
        guarantee = guarantee_for(source, epsilon, delta)
        return self._by_period(source, guarantee) if self.period else self._by_change(source, guarantee)

    def _check(self) -> None:
        valid = (
            all(isinstance(name, str) for name in (self.before, self.period, self.earlier))
            and bool(self.before) != bool(self.period)
            and not (self.period and (self.earlier or self.change))
            and len(self.change) in (0, 2)
            and is_number(self.placebo_share)
            and 0 < self.placebo_share < 1
        )
        if not valid:
            raise QueryError(
                problem="DifferenceInDifferences takes either before, or period without earlier and change; change is "
                f"two bounds, and placebo_share between 0 and 1. It was given before={self.before!r}, "
                f"period={self.period!r}, earlier={self.earlier!r}, change={self.change!r}, "
                f"placebo_share={self.placebo_share!r}",
                hint='write DifferenceInDifferences(before="score_before"), or period="wave".',
            )

    def _by_change(self, source: Source, guarantee: Guarantee) -> Effect:
        """Compare the mean change of units that were seen before and after."""
        source = RequiringSource(source, [self.before])
        schema = source.schema
        query = self._query(schema, self.before, "", self.change)
        placebo_query = self._query(schema, self.earlier, self.before, ()) if self.earlier else None
        first, rest = guarantee.split(self.placebo_share) if placebo_query else (guarantee, guarantee)
        spent = narrower(query, source, rest, "total_1")
        release = source.release(query, spent)
        means = joint_means(release, source, (query.low, query.high), floored=True)
        placebo, receipts = None, [release.receipt]
        if placebo_query:
            second = source.release(placebo_query, narrower(placebo_query, source, first, "total_1"))
            name = f"placebo: {self.earlier} to {self.before}"
            changes = joint_means(second, source, (placebo_query.low, placebo_query.high), floored=True)
            placebo = changes.mapped([name], _difference)
            receipts.append(second.receipt)
        low, high = format_number(query.low), format_number(query.high)
        return self._effect(
            source,
            guarantee if placebo_query else spent,
            means.mapped(["effect"], _difference),
            method=f"difference in differences: change from {self.before}, for each unit",
            handling=(f"changes lie within {low} and {high}; changes beyond were moved to the bound",),
            receipts=receipts,
            placebo=placebo,
            means=means,
            sizes=joint_sizes(release, source),
        )

    def _query(self, schema: Schema, before: str, after: str, change: Sequence[float]) -> ChangeMoments:
        """Return the query for a change, with the widest bounds unless narrower ones are given."""
        columns = ChangeMoments(before, after, -1.0, 1.0).columns(schema)
        low, high = change or widest_change(columns[0][1], columns[1][1])
        query = ChangeMoments(before, after, low, high)
        query.sensitivity(schema, "record", "l1")  # which raises where bounds do not fit
        return query

    def _by_period(self, source: Source, allowed: Guarantee) -> Effect:
        """Compare the means of arms and periods."""
        columns = [each for each in source.schema.covariates if isinstance(each, Binary | Category)]
        known = [each.name for each in columns]
        if self.period not in known:
            raise QueryError(
                expected=f"a Binary or Category covariate as period, out of: {', '.join(known)}",
                got=repr(self.period),
                hint='declare the periods in the order of time: Category("wave", ["2022", "2023", "2024"]).',
            )
        query = SubgroupMoments(Cells([Cut(self.period)]))
        groups = query.cells.names(source.schema)
        guarantee = narrower(query, source, allowed, f"total_1 of {groups[-1]}")
        release = source.release(query, guarantee)
        cells, surest = _cell_means(release, source, groups)
        names = [f"placebo: {one} to {other}" for one, other in pairwise(groups[:-1])]
        placebo = cells.mapped(names, lambda means: _changes(means)[:-1]) if names else None
        return self._effect(
            source,
            guarantee,
            cells.mapped(["effect"], lambda means: _changes(means)[-1:]),
            method=f"difference in differences: {groups[-2]} and {groups[-1]}, units seen once",
            handling=("units in one period are not those of another, or their errors are independent",),
            receipts=[release.receipt],
            placebo=placebo,
            no_interval=""
            if surest >= _CERTAIN
            else "an arm has so few units in a period that noise dominates their number",
        )

    def _effect(  # noqa: PLR0913
        self,
        source: Source,
        guarantee: Guarantee,
        effect: JointEstimate,
        *,
        method: str,
        handling: tuple[str, ...],
        receipts: list[Receipt],
        placebo: JointEstimate | None,
        means: JointEstimate | None = None,
        sizes: JointEstimate | None = None,
        no_interval: str = "",
    ) -> Effect:
        names = [name for name in (self.before, self.period, self.earlier) if name]
        return Effect(
            estimand="average treatment effect on the treated: mean change with treatment minus mean change without",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            quantity=f"mean change of {source.schema.outcome.title}",
            estimate=effect.values[0],
            sampling_sd=effect.sampling_sd((1.0,)),
            noise=effect.noise_along((1.0,)),
            n=source.n,
            method=method,
            guarantee=guarantee,
            assumptions=(
                "parallel trends: without treatment both arms would have changed by as much, on average",
                "nobody reacted to the treatment before it began",
                NO_INTERFERENCE,
                *source.schema.data_handling,
                *handling,
                *source.schema.covariate_handling(names),
            ),
            receipts=tuple(receipts),
            notes=(*_trends(placebo), *source.caveats),
            no_interval=no_interval,
            arm_means=None,
            arm_sizes=sizes,
            contrasts=_with_means(placebo, means),
        )


def _with_means(placebo: JointEstimate | None, means: JointEstimate | None) -> JointEstimate | None:
    """Return the placebos, or without any the mean change in each arm."""
    if placebo is not None or means is None:
        return placebo
    return replace(means, names=tuple(f"mean change in {name}" for name in means.names))


def _trends(placebo: JointEstimate | None) -> tuple[str, ...]:
    if placebo is None:
        return ("nothing in this result checks that trends are parallel",)
    return ("a placebo whose interval excludes 0 speaks against parallel trends; one that includes 0 is no proof",)


def _difference(means: Numbers) -> Numbers:
    """Return the treated arm's mean minus the control arm's."""
    return means[1:] - means[:1]


def _changes(means: Numbers) -> Numbers:
    """Return how much more the treated arm's mean changes than the control arm's, from each period to the next."""
    changes = np.diff(means.reshape(-1, 2), axis=0)
    return changes[:, 1] - changes[:, 0]


def _cell_means(release: Release, source: Source, groups: Sequence[str]) -> tuple[JointEstimate, float]:
    """Return the mean of each arm in each period, and the smallest number of units over the noise in it."""
    low, high = source.schema.outcome_bounds
    half, middle = (high - low) / 2, (low + high) / 2
    names = [f"{arm} of {group}" for group in groups for arm in (0, 1)]
    errors, surest = [], np.inf

    def mean_and_size(name: str, value: ValueOf) -> tuple[Numbers, Numbers]:
        size = within(value(f"size_{name}"), max(release.variance(f"size_{name}") ** 0.5, 2.0), math.inf)
        return value(f"total_{name}") / size, size

    for name in names:
        size_sd = release.variance(f"size_{name}") ** 0.5
        surest = min(surest, release.value(f"size_{name}") / size_sd)
        mean, size = mean_and_size(name, release.value)
        square = mean**2 - (release.variance(f"total_{name}") + mean**2 * size_sd**2) / size**2
        least = release.variance(f"deficit_{name}") ** 0.5 / size
        spread = min(max(half**2 - release.value(f"deficit_{name}") / size - square, least), half**2)
        errors.append(spread / (size - 1))
    means = release.estimates(
        names, lambda value: [middle + mean_and_size(name, value)[0] for name in names], np.diag(errors)
    )
    return means, float(surest)
