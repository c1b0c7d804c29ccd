"""Any estimator on outcomes that are winsorised where privacy noise would outweigh what the tail holds."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.average.complier_effect import ComplierEffect
from dpcausal.estimators.average.difference_in_differences import DifferenceInDifferences
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.outcome_tail import Tail, distances, fitted_tail
from dpcausal.guarantee import Guarantee
from dpcausal.queries import OutcomeCounts
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.results.effect import Effect, Estimator, check_estimator_object
from dpcausal.schema.real import Real
from dpcausal.source import Source, guarantee_for, narrowed
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class Winsorised(BaseEstimator):
    """An average effect on outcomes that are winsorised at bounds found for a share of epsilon.

    For outcomes such as costs, whose public bounds are far wider than most outcomes: noise in sums is in proportion to
    the bounds. A noisy histogram says where the tail begins. The bounds are those for which the noise of the effect and
    the bias of winsorising are smallest together, so they widen with n and epsilon. The interval allows for the bias.

    Estimand:
        That of the estimator, on outcomes that count as the bound where they are beyond it. The interval is one for the
        effect on outcomes as they are, too, where the assumption on the tail holds.

    Assumptions:
        Those of the estimator. For the bias bound: beyond the bounds, outcomes are as many and as large as in a
        lognormal distribution fitted to the upper half of the counts, or, where that does not fit, in a smooth tail
        between that and a power law; and the arms differ there by no more than the mean of both. A few outcomes far
        beyond all others do not show in noisy counts; a note gives the worst case.

    Privacy:
        One query of noisy counts of outcomes between public edges, with the share of epsilon and no delta; then the
        estimator's own queries, with the rest. The bounds are computed from released counts, hence public.

    Attributes:
        estimator: The estimator of an average effect to run on the winsorised outcomes.
        share: The share of epsilon for the counts. Where the public bounds are narrow already, noise grows by
            1 / (1 - share).
        anchor: A public value from which outcomes spread out. By default 0 where it is between the bounds, otherwise
            the bound nearest to 0. Edges are denser near it; only outcomes far from it are winsorised.

    Reference:
        Karwa and Vadhan (2018), Finite Sample Differentially Private Confidence Intervals, for bounds from a noisy
        histogram on a public grid; Armstrong and Kolesár (2018), Optimal Inference in a Class of Regression Models, for
        intervals with a bounded bias.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("cost", 0, 200_000))
        >>> trial = Rehearsal(schema, n=5_000, outcome_mean=5_000, outcome_sd=6_500)
        >>> for estimator in (DifferenceInMeans(), Winsorised(DifferenceInMeans())):
        ...     plan = estimator.estimate(trial, epsilon=1.0)
        ...     print(round(plan.sampling_sd), round(plan.privacy_sd), round(plan.bias_bound))
        184 447 0
        184 109 110
    """

    also_called: ClassVar[str] = (
        "winsorized winsorise winsorize winsorization winsorisation top_coded top_coding trimmed_mean clipped_mean"
    )

    advice_for_sites: ClassVar[str] = (
        "declare narrower public bounds of the outcome in the schema, and use the estimator itself."
    )

    estimator: Estimator = DifferenceInMeans()  # noqa: RUF009 (frozen)
    share: float = 0.08
    anchor: float | None = None

    def __post_init__(self) -> None:
        check_estimator_object(self.estimator)

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        anchor = self._anchor(source)
        first, rest = guarantee.split(self.share, pure_first=True)
        grid = _Grid.of(source.schema.outcome_bounds, anchor)
        counts = source.release(OutcomeCounts(grid.edges), first)
        found = _Bounds.chosen(grid, counts, self.estimator, source, rest)
        effect = self.estimator.estimate(
            narrowed(source, found.low, found.high), epsilon=rest.epsilon, delta=rest.delta
        )
        return replace(
            effect.with_bias(found.bias),
            defining={**(effect.defining or {}), "low": found.low, "high": found.high},
            estimand=effect.estimand + found.words(source.schema.outcome.title),
            method=f"{effect.method}; outcomes winsorised at bounds from noisy counts",
            guarantee=replace(guarantee, delta=effect.guarantee.delta),
            assumptions=(*effect.assumptions, *found.assumptions),
            receipts=(counts.receipt, *effect.receipts),
            notes=(*effect.notes, *found.notes(counts, grid, _units(source, list(counts.values)))),
        )

    def _anchor(self, source: Source) -> float:
        """Return the value from which outcomes spread out, and raise unless all parameters are usable."""
        outcome = source.schema.outcome
        if not isinstance(outcome, Real):
            raise SchemaError(
                problem=f"The outcome {outcome.name!r} has two values, and this needs a number",
                hint="a binary outcome has the narrowest bounds already: use the estimator without winsorising.",
            )
        anchor = min(max(0.0, outcome.low), outcome.high) if self.anchor is None else self.anchor
        valid = is_number(self.share) and 0 < self.share < 1 and is_number(anchor)
        if not (valid and outcome.low <= anchor <= outcome.high) or isinstance(self.estimator, _OTHERS):
            raise QueryError(
                problem=f"share must be between 0 and 1, anchor from {outcome.low:g} to {outcome.high:g}, and "
                "estimator "
                f"one to run on the winsorised outcomes, not share={self.share!r}, anchor={self.anchor!r}, "
                f"estimator={type(self.estimator).__name__}",
                hint="Winsorised(DifferenceInMeans()) has usual values.",
            )
        return float(anchor)


@dataclass(frozen=True)
class _Grid:
    """A public grid: edges at growing distances from the anchor, on each side where there is room."""

    low: float
    high: float
    anchor: float
    edges: tuple[float, ...]

    @classmethod
    def of(cls, bounds: tuple[float, float], anchor: float) -> "_Grid":
        low, high = bounds
        below = (anchor - distances(anchor - low))[::-1] if anchor > low else np.zeros(0)
        above = anchor + distances(high - anchor) if anchor < high else np.zeros(0)
        middle = [anchor] if low < anchor < high else []
        edges = sorted({*map(float, below), *middle, *map(float, above)})  # rounding may make two of them one
        return cls(low, high, anchor, tuple(edge for edge in edges if low < edge < high))

    def sides(self, counts: list[float]) -> tuple[list[float], list[float]]:
        """Return the counts below and above the anchor, nearest first."""
        if self.anchor in (self.low, self.high):
            return ([], counts) if self.anchor == self.low else (counts[::-1], [])
        below = sum(edge <= self.anchor for edge in self.edges)
        return counts[:below][::-1], counts[below:]

    def beyond(self, counts: list[float], low: float, high: float) -> list[float]:
        """Return the counts of the bins beyond two bounds."""
        lower = [count for edge, count in zip(self.edges, counts, strict=False) if edge <= low]
        return [*lower, *(count for edge, count in zip(self.edges, counts[1:], strict=True) if edge >= high)]


@dataclass(frozen=True)
class _Bounds:
    """Where to winsorise, and what that leaves out."""

    low: float
    high: float
    bias: float
    public: tuple[float, float]
    shape: str = ""

    @classmethod
    def chosen(
        cls, grid: _Grid, release: Release, estimator: Estimator, source: Source, guarantee: Guarantee
    ) -> "_Bounds":
        """Return the bounds for which squared noise and squared bias are smallest together."""
        counts = list(release.values)
        units, noise = _units(source, counts), release.scales[0] or 0.0
        rooms = grid.anchor - grid.low, grid.high - grid.anchor
        tails = [
            fitted_tail(room, side, noise, units, all_here=room == sum(rooms) and _public(source)) if room > 0 else None
            for room, side in zip(rooms, grid.sides(counts), strict=True)
        ]
        public = grid.low, grid.high
        if not any(tails):
            return cls(*public, 0.0, public)
        options = [
            (tail.reach, tail.excess) if tail else (np.array([room]), np.zeros(1))
            for tail, room in zip(tails, rooms, strict=True)
        ]
        slope = _noise_slope(tails, grid, estimator, source, guarantee)
        lower, upper = (reach[:, None] if place == 0 else reach for place, (reach, _) in enumerate(options))
        if tails[0] is None:  # nothing is known about this side: as far as the other one, or as the public bound
            lower = np.minimum(upper, rooms[0])
        elif tails[1] is None:
            upper = np.minimum(lower, rooms[1])
        bias = options[0][1][:, None] + options[1][1]
        cost = (slope * (lower + upper)) ** 2 + bias**2
        at = np.unravel_index(cost.argmin(), cost.shape)
        reach = [float(np.broadcast_to(each, cost.shape)[at]) for each in (lower, upper)]
        low = grid.low if reach[0] >= rooms[0] else grid.anchor - reach[0]
        high = grid.high if reach[1] >= rooms[1] else grid.anchor + reach[1]
        shapes = dict.fromkeys(tail.shape for tail in tails if tail)
        return cls(low, high, float(bias[at]), public, " or ".join(shapes))

    @property
    def _moved(self) -> list[str]:
        pairs = zip((self.low, self.high), self.public, ("below", "above"), strict=True)
        return [f"{side} {format_number(bound)}" for bound, public, side in pairs if bound != public]

    def words(self, outcome: str) -> str:
        """Return what is added to the estimand."""
        return f"; {outcome} {' and '.join(self._moved)} winsorised" if self._moved else ""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the bias bound rests on."""
        if not self._moved:
            return ()
        tail = f"outcomes {' and '.join(self._moved)} have a {self.shape} tail as noisy counts suggest"
        return (f"for the bias bound: {tail}, and arms differ in it by no more than its mean",)

    def notes(self, release: Release, grid: _Grid, units: float) -> tuple[str, ...]:
        """Return how much is winsorised, and what that could leave out in the worst case."""
        if not self._moved:
            return ("outcomes were not winsorised: within the public bounds noise is small, or hides the tail",)
        counts = grid.beyond(list(release.values), self.low, self.high)
        sd = math.sqrt(2 * len(counts)) * (release.scales[0] or 0.0)
        far = max(abs(one - other) for one, other in zip((self.low, self.high), self.public, strict=True))
        worst = min((max(sum(counts), 0.0) + 2 * sd) / units, 1.0) * far
        moved = f"outcomes {' and '.join(self._moved)} counted as that bound"
        several = f"{max(sum(counts), 0.0):,.0f} ± {2 * sd:,.0f} of {units:,.0f} units"
        return (f"{moved}: {several}; had they all the public bound, a mean would be off by {format_number(worst)}",)


def _public(source: Source) -> bool:
    """Return whether the number of units in the comparison is public."""
    return source.arm_sizes is not None or not source.schema.units_may_leave(source.schema.protects)


def _units(source: Source, counts: list[float]) -> float:
    """Return the number of units in the comparison: public, or as the counts have it with noise."""
    if source.arm_sizes is not None:
        return max(float(sum(source.arm_sizes)), 1.0)
    return float(source.n) if _public(source) else max(sum(counts), 1.0)


def _noise_slope(
    tails: list[Tail | None], grid: _Grid, estimator: Estimator, source: Source, guarantee: Guarantee
) -> float:
    """Return the noise in the effect for each unit of the outcome's range, from a rehearsal of the estimator."""
    mean = sum(sign * tail.mean for sign, tail in zip((-1, 1), tails, strict=True) if tail)
    square = sum(tail.square for tail in tails if tail)
    middle, half = (grid.low + grid.high) / 2, (grid.high - grid.low) / 2
    centre = min(max(grid.anchor + mean, middle - 0.99 * half), middle + 0.99 * half)
    spread = min(math.sqrt(max(square - mean**2, 0.0)), 0.5 * half)
    sizes = source.arm_sizes
    treated = min(max(sizes[1] / max(sum(sizes), 1), 0.01), 0.99) if sizes else 0.5
    table = Rehearsal(
        source.schema,
        source.n,
        rule=source.rule,
        treated_share=treated,
        outcome_mean=centre,
        outcome_sd=spread,
    )
    plan = estimator.estimate(table, epsilon=guarantee.epsilon, delta=guarantee.delta)
    return plan.privacy_sd / (grid.high - grid.low)


_OTHERS = (Winsorised, ComplierEffect, DifferenceInDifferences)
"""Estimators that it cannot run: their outcome is not the schema's outcome alone."""
