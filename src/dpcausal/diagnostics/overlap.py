"""Overlap of the arms: numbers of units by arm, in strata or in bins of a private score."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from dpcausal.diagnostics.diagnosis import LEVEL, Diagnosis, Reading, readings, versions
from dpcausal.diagnostics.score import BEFORE, Asks, scored
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Cells, Cut, ScoreCounts, StratumCounts
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import feature_names, name_tuple
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.release import Release
from dpcausal.results.propensity_score import PropensityScore
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.interval import half_width
from dpcausal.utils.arrays import Array
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import is_number


@dataclass(frozen=True)
class Overlap(metaclass=Constructor):
    """The number of units of each arm, in strata (`by`) or in bins of a private propensity score (`covariates`).

    Where an arm is almost absent, its outcomes there cannot be estimated. An arm is *thin* in a bin where it has less
    than `clip` of the bin's units. The overlap passes if at most `most` of all units are in such bins, whatever the
    noise in the counts, and fails if more are. A score that is mostly noise, or misspecified, mixes arms that do not
    overlap, and then passes wrongly. Strata cannot be wrong in this way.

    Privacy:
        One query for the counts. Their noise does not grow with the number of bins. A score that was not released
        before takes a private logistic regression too, which gets `share` of epsilon.

    Attributes:
        covariates: The covariates of the score.
        by: In place of a score, the covariates that define strata: names of listed ones, and `Cut`s of real ones.
        clip: The share of a bin below which an arm is thin, and where scores would be clipped.
        most: The largest share of units in thin bins that passes.
        share: The share of epsilon for a new score.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = Overlap(covariates=["age"]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.bins[0].treated.bar)  # units
        13
    """

    _example = 'Overlap(covariates=["age"]), or Overlap(by=["ward"]) for strata'

    covariates: Sequence[str] = ()
    _: KW_ONLY
    by: Sequence[str | Cut] = ()
    clip: float = 0.1
    most: float = 0.05
    share: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    @look_ahead
    def estimate(
        self, source: Source, *, epsilon: float, delta: float = 0.0, score: PropensityScore | Release | None = None
    ) -> "OverlapTable":
        """Estimate the overlap for a total of epsilon and delta.

        Args:
            delta: With 0 all noise is Laplace noise; with a positive one the counts get Gaussian noise.
            score: A score of the same covariates that `PropensityModel` released before; then all of epsilon is for
                the counts.
        """
        guarantee = guarantee_for(source, epsilon, delta)
        self._check()
        if self.by:
            cuts = cuts_of(self.by)
            strata = source.release(StratumCounts(Cells(cuts)), guarantee)
            return self._result(source, guarantee, (strata,), f"in strata of {', '.join(map(str, cuts))}", ())
        edges = _edges(self.clip)
        nothing = [0.0] * len(feature_names(self.covariates, source.schema))
        ScoreCounts(self.covariates, nothing, edges).sensitivity(
            source.schema, "record", "l1"
        )  # before anything is spent

        def then(covariates: Sequence[str], coefficients: Sequence[float], rest: Guarantee) -> Asks:
            return [(ScoreCounts(covariates, coefficients, edges), rest)]

        scaled, made, (counts,) = scored(source, self.covariates, guarantee, self.share, score, then)
        releases, notes = ((made, counts), ()) if score is None else ((counts,), (BEFORE,))
        by = f"by a private score of {', '.join(scaled.covariates)}"
        table = self._result(scaled.source, guarantee, releases, by, (*notes, *scaled.notes))
        return replace(table, receipts=(*scaled.receipts, *table.receipts))

    def _check(self) -> None:
        if bool(self.by) == bool(self.covariates):
            raise QueryError(
                problem="Overlap takes either strata (by=) or the covariates of a score (covariates=), not "
                f"by={self.by!r} and covariates={self.covariates!r}",
                hint='write for instance Overlap(by=["ward"]) or Overlap(covariates=["age"]).',
            )
        numbers = is_number(self.clip) and is_number(self.most)
        if not (numbers and 1e-3 <= self.clip < 0.5 and 0 < self.most < 1):
            raise QueryError(
                problem=f"clip must be from 0.001 to below 0.5, and most between 0 and 1, not clip={self.clip!r} and "
                f"most={self.most!r}",
                hint="0.1 and 0.05 are usual.",
            )

    def _result(
        self, source: Source, guarantee: Guarantee, releases: tuple[Release, ...], where: str, notes: tuple[str, ...]
    ) -> "OverlapTable":
        counts = releases[-1]
        units = _units(source, counts)
        bar = half_width(0.0, [counts.noise_term(counts.names[0], 1.0)], LEVEL)
        sizes = [Reading(value, bar) for value in counts.values]
        names = (name.removeprefix("size_0 of ") for name in counts.names[::2])
        (drawn,) = versions(counts)
        control, treated = readings(effective_sizes(drawn.reshape(len(drawn), -1, 2), self.clip))
        return OverlapTable(
            arms=source.schema.treatment.labels_or_values,
            n=source.n,
            method=f"numbers of units {where}",
            guarantee=guarantee,
            receipts=tuple(release.receipt for release in releases),
            notes=(*notes, *source.caveats),
            bins=tuple(OverlapBin(*each) for each in zip(names, sizes[::2], sizes[1::2], strict=True)),
            thin=thin_share(counts, self.clip, units),
            clip=self.clip,
            most=self.most,
            clipped=_beyond(counts, units) if self.covariates else None,
            effective=(control, treated),
        )


@dataclass(frozen=True)
class OverlapBin:
    """A stratum, or a bin of the score."""

    name: str
    control: Reading
    treated: Reading


@dataclass(frozen=True, kw_only=True)
class OverlapTable(Diagnosis):
    """The number of units of each arm in each bin, and the verdict.

    Attributes:
        thin: A lower and an upper bound of the share of units in bins where an arm is thin, allowing for noise.
        clip: The share of a bin below which an arm is thin.
        most: The largest share in thin bins that passes.
        clipped: The share of units whose score is beyond clip; None where there is no score.
        effective: Each arm's effective number of units once weighted to the population of both arms, with weights of
            at most 1 / clip; None where noise hides it.
    """

    bins: tuple[OverlapBin, ...]
    thin: tuple[float, float]
    clip: float
    most: float
    clipped: Reading | None
    effective: tuple[Reading | None, Reading | None]

    @property
    def passes(self) -> bool | None:
        """Whether few enough units are in thin bins, whatever the noise; None where noise decides."""
        low, high = self.thin
        return True if high <= self.most else False if low > self.most else None

    @property
    def found(self) -> str:
        """The finding, in one sentence."""
        low, high = self.thin
        score = "" if self.clipped is None else " of a noisy linear score"
        thin = f"an arm has less than {self.clip:.0%} of the units in their bin{score}"
        return f"{low:.1%} to {high:.1%} of units lack overlap (threshold {self.most:.0%}): {thin}"

    @property
    def remedy(self) -> str:
        """What to do if it fails."""
        return (
            "restrict the table to units that could have been in either arm, or choose the estimand ATO, in a new "
            "study."
        )

    def _lines(self) -> list[tuple[str, str]]:
        if self.rehearsed:
            return [("each count", f"expect ± {self.bins[0].control.bar:,.0f} units of noise")]
        lines = [
            ("control, treated", f"{bin_.name}: {_count(bin_.control)}, {_count(bin_.treated)}") for bin_ in self.bins
        ]
        lines = [(label if place == 0 else "", text) for place, (label, text) in enumerate(lines)]
        if self.clipped is not None:
            lines.append(("beyond clip", f"{self.clipped.value:.2%} ± {self.clipped.bar:.2%} of scores"))
        sizes = ", ".join("hidden by noise" if each is None else _count(each) for each in self.effective)
        return [*lines, ("effective units", f"{sizes} (control, treated), weighted to the population of both arms")]


def effective_sizes(counts: Array, clip: float) -> Array:
    """Return Kish's effective number of units in each arm, for versions of the counts.

    It is (sum of weights)² / sum of squared weights.

    A unit weighs one over its arm's share of the bin, but at most 1 / clip.

    Args:
        counts: Version by bin by arm.
        clip: The least share that counts.
    """
    sizes = np.maximum(counts, 0.0)
    shares = sizes / np.maximum(sizes.sum(axis=2, keepdims=True), 1e-300)
    weights = 1 / np.maximum(shares, clip)
    squares = (sizes * weights**2).sum(axis=1)
    effective: Array = np.where(squares > 0, (sizes * weights).sum(axis=1) ** 2 / np.maximum(squares, 1e-300), np.nan)
    return effective


def _units(source: Source, counts: Release) -> float:
    """Return the number of units in the comparison: public, or the sum of noisy counts."""
    if source.arm_sizes is not None:
        return float(sum(source.arm_sizes))
    if not source.schema.units_may_leave(source.schema.protects):
        return float(source.n)
    return min(max(sum(counts.values), 1.0), float(source.n))


def thin_share(counts: Release, clip: float, n: float) -> tuple[float, float]:
    """Return a lower and an upper bound of the share of units in bins where an arm has less than clip of them."""
    sizes, first = np.array(counts.values).reshape(-1, 2), counts.names[0]
    above = (1 - clip) * sizes - clip * sizes[:, ::-1]
    bar = half_width(0.0, [counts.noise_term(first, 1 - clip), counts.noise_term(first, clip)], LEVEL)

    def off(bins: int) -> float:
        """Return the half width of the noise in the number of units in so many bins."""
        term = replace(counts.noise_term(first, math.sqrt(2 * bins)), parts=max(2 * bins, 1) * counts.parts)
        return half_width(0.0, [term], LEVEL)

    surely, perhaps = ((above < edge).any(axis=1) for edge in (-bar, bar))
    low = max(float(sizes[surely].sum()) - off(int(surely.sum())), 0.0) / n
    high = min(float(sizes[perhaps].sum()) + off(int(perhaps.sum())), n) / n
    return low, max(low, high)


def _beyond(counts: Release, n: float) -> Reading:
    """Return the share of scores in the first and the last bin."""
    ends = (*counts.names[:2], *counts.names[-2:])
    bar = half_width(0.0, [counts.noise_term(name, 1 / n) for name in ends], LEVEL)
    return Reading(sum(map(counts.value, ends)) / n, bar)


def _edges(clip: float) -> tuple[float, ...]:
    """Return the edges of bins: where scores are clipped, and every tenth between."""
    tenths = (tenth / 10 for tenth in range(1, 10))
    return (clip, *(edge for edge in tenths if clip + 0.02 < edge < 1 - clip - 0.02), 1 - clip)


def _count(reading: Reading) -> str:
    return f"{reading.value:,.0f} ± {reading.bar:,.0f}"
