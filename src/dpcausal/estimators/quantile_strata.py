"""Strata at quantiles of numbers, and the confounding that stays within their bins."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from dpcausal.errors import QueryError
from dpcausal.estimators.scale_fit import FittedScale
from dpcausal.queries import Cut
from dpcausal.queries.cuts import MOST_STRATA
from dpcausal.queries.query import GRID
from dpcausal.rehearsal import Rehearsal
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, innermost
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import is_number

_TAILS = 1.4
"""Edges are at so many times the standard scores of equal shares. Bins of equal shares would be too wide in the tails,
where half of the variance within bins is, and most of what a curve of treatment or outcome leaves in. For the least
variance within bins it is about 1.45, whatever their number."""

_UNITS_PER_STRATUM = 8
"""With fewer units to a stratum, too many strata lack an arm."""

_MOST_BINS = 40
"""Within so many bins 0.2 % of a number's variance stays, and more add nothing."""

_UNSURE = 0.75
"""How far the correction may be off, as a share of what it would be if numbers had all of the confounding. On tables
with skewed numbers, and with treatment and outcome that follow curves and steps, 0.7 to 1.6 times as much stayed."""

_UNEVEN = 1.5
"""The same for units that lack a value: missing by value leaves less in than by chance, or more."""

_NORMAL = NormalDist()


def numbers_without_edges(cuts: Sequence[Cut], schema: Schema, bins: int | None) -> tuple[str, ...]:
    """Return the numbers to cut at quantiles, and raise unless all strata are possible."""
    if bins is not None and not (is_number(bins) and isinstance(bins, int) and 2 <= bins <= MOST_STRATA):
        raise QueryError(
            problem=f"bins must be a whole number from 2 to {MOST_STRATA:,}, not {bins!r}",
            hint="10 to 30 are usual; without a number, Stratification chooses it.",
        )
    numbers = {column.name for column in schema.covariates if isinstance(column, Real)}
    found = tuple(cut.name for cut in cuts if cut.name in numbers and not cut.edges)
    others = math.prod(cut.bins(schema) for cut in cuts if cut.name not in found)
    if others * (bins or 2) ** len(found) > MOST_STRATA:
        raise QueryError(
            expected=f"at most {MOST_STRATA:,} strata",
            got=f"{others * (bins or 2) ** len(found):,}",
            hint="use fewer covariates or fewer bins; strata without both arms add nothing.",
        )
    return found


def bins_for(cuts: Sequence[Cut], schema: Schema, units: float, treated_share: float = 0.5) -> int:
    """Return into how many bins to cut each number without edges: as many as units allow, at least 2.

    More bins leave less confounding within them and need no more noise; but strata that lack an arm drop out.
    """
    numbers = numbers_without_edges(cuts, schema, None)
    others = math.prod(cut.bins(schema) for cut in cuts if cut.name not in numbers)
    even = 4 * treated_share * (1 - treated_share)
    strata = min(units * even / _UNITS_PER_STRATUM, MOST_STRATA) / others
    return min(max(math.floor(math.pow(strata, 1 / len(numbers)) + 1e-9), 2), _MOST_BINS)


def edge_scores(bins: int) -> list[float]:
    """Return where bins of a number end, in standard deviations from its median if it is normal.

    Example:
        >>> [round(score, 2) for score in edge_scores(4)]
        [-0.94, 0.0, 0.94]
    """
    return [_TAILS * _NORMAL.inv_cdf(place / bins) for place in range(1, bins)]


def share_within(scores: Sequence[float]) -> float:
    """Return the share of a normal number's variance within bins that end at these standard scores.

    Of the confounding by that number, this share stays in strata of these bins.

    Example:
        >>> [round(share_within(edge_scores(bins)), 3) for bins in (2, 5, 10, 30)]
        [0.363, 0.081, 0.024, 0.003]
    """
    below = [0.0, *map(_NORMAL.cdf, scores), 1.0]
    density = [0.0, *map(_NORMAL.pdf, scores), 0.0]
    between = sum(
        (before - after) ** 2 / (last - first)
        for (before, after), (first, last) in zip(itertools.pairwise(density), itertools.pairwise(below), strict=True)
        if last > first
    )
    return max(1 - between, 0.0)


@dataclass(frozen=True)
class QuantileStrata:
    """Strata whose numbers without edges are cut at quantiles.

    Attributes:
        within: The share of the confounding by numbers that is expected to stay within bins at quantiles.
        part: The part of numbers at quantiles in all confounding. Each covariate has an equal one.
        hidden: The numbers of which it is not known where values lie. Their bins follow the declared bounds.
        lacking: The share of the confounding that stays among units that lack a number, each with an equal part.
    """

    cuts: tuple[Cut, ...]
    within: float = 0.0
    part: float = 0.0
    hidden: tuple[str, ...] = ()
    lacking: float = 0.0

    @classmethod
    def of(cls, cuts: Sequence[Cut], schema: Schema, scales: Mapping[str, FittedScale], bins: int) -> "QuantileStrata":
        """Return the strata with so many bins of each number without edges."""
        numbers = numbers_without_edges(cuts, schema, bins)
        columns = {column.name: column for column in schema.covariates if isinstance(column, Real)}
        known = {name: scales[name] for name in numbers if name in scales and scales[name].found}
        made = tuple(_cut(columns[cut.name], known.get(cut.name), bins) if cut.name in numbers else cut for cut in cuts)
        hidden = tuple(name for name in numbers if name not in known)
        return cls(made, share_within(edge_scores(bins)), len(numbers) / len(cuts), hidden)

    @property
    def ratio(self) -> float:
        """How much confounding is expected to stay, for each unit that strata removed."""
        stays = self.within * self.part + self.lacking
        return stays / (1 - stays)

    @property
    def unsure(self) -> float:
        """How far that may be off: numbers may have all of the confounding, units that lack a value none or more."""
        stays = self.within * self.part + self.lacking
        return (_UNSURE * self.within + _UNEVEN * self.lacking) / (1 - stays)


@dataclass(frozen=True)
class Difference:
    """The difference between the mean outcomes of both arms, without adjustment."""

    value: float
    noise: tuple[NoiseTerm, ...]

    def expected_confounding(self, source: Source, effect: float) -> float:
        """Return how far it is from an adjusted effect; in a rehearsal, how far it is expected to be, with noise."""
        inner = innermost(source)
        if not isinstance(inner, Rehearsal):
            return abs(self.value - effect)
        noise = sum(term.variance for term in self.noise)
        return math.sqrt((inner.confounding * inner.sd) ** 2 + noise)


@dataclass(frozen=True)
class LeftWithin:
    """The confounding that stays in strata at quantiles, from what they removed of the unadjusted difference.

    Attributes:
        ratio: How much stays for each unit that was removed.
        confounding: How much stays; the estimate is corrected for it.
        noise: The noise that the unadjusted difference adds to the estimate.
    """

    ratio: float = 0.0
    confounding: float = 0.0
    bound: float = 0.0
    noise: tuple[NoiseTerm, ...] = ()

    @classmethod
    def of(cls, strata: QuantileStrata, unadjusted: Difference | None, effect: float, source: Source) -> "LeftWithin":
        """Return what stays, given the effect within strata; nothing where no number was cut at quantiles."""
        if unadjusted is None or strata.hidden or not (strata.within or strata.lacking):
            return cls()
        ratio = strata.ratio
        noise = tuple(NoiseTerm(term.family, ratio * term.scale, term.parts) for term in unadjusted.noise)
        bound = strata.unsure * unadjusted.expected_confounding(source, effect)
        return cls(ratio, ratio * (unadjusted.value - effect), bound, noise)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the correction assumes, in words."""
        if not self.ratio:
            return ()
        more = "the interval allows for none, and for more"
        return (f"in strata stays about {self.ratio:.1%} of the confounding that they remove; {more}",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was subtracted, in words."""
        if not self.ratio:
            return ()
        return (f"{format_number(self.confounding)} was subtracted for confounding that stays in strata (noisy)",)


def _cut(column: Real, scale: FittedScale | None, bins: int) -> Cut:
    """Return a number with edges at quantiles of its scale; without one, as if it were normal between its bounds."""
    middle, half = column.low + (column.high - column.low) / 2, (column.high - column.low) / 2
    scores = edge_scores(bins)
    values = [scale.quantile(_NORMAL.cdf(score)) if scale else middle + half / 3 * score for score in scores]
    edges: list[float] = []
    for value in values:
        if max(edges[-1:], default=column.low) + half / GRID < value < column.high:
            edges.append(value)
    return Cut(column.name, edges or [middle])
