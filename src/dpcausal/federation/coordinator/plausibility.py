"""Checks of sites' releases against public bounds and against the other sites. They read released numbers only.

A site can still lie within its bounds and near the others. What is impossible beyond any noise makes a response
invalid; what is unlikely becomes a warning at the head of the effect.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.pooling.heterogeneity import Heterogeneity
from dpcausal.pooling.pooled import site_variances
from dpcausal.pooling.weights import inverse_variance
from dpcausal.queries import GRID
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.schema import Schema
from dpcausal.utils.text import format_number

_IMPOSSIBLE = 15.0
"""No noise exceeds so many of its standard deviations: for a Laplace, the heaviest, the probability is 1 in 10^9."""

_ERROR = 0.002
"""The probability that one of the sites of an honest study gives a warning, for each kind of check."""

_CENTRES = tuple(place / 8 for place in range(-8, 9))
"""Where the outcome's second moment is taken, in half ranges: it is not negative about any point."""

_LEAST_VARIANCE = 0.1
"""A variance is far below the other sites' where it is less than this share of theirs."""

_USUAL_SPREAD = 0.25
"""Between two other sites, effects may differ by this share of the outcome's standard deviation."""

_FREE = "This warning uses released numbers only and cost no privacy."


@dataclass(frozen=True)
class SiteAnswer:
    """The answer of one site."""

    n: int
    arm_sizes: tuple[int, int] | None
    releases: Sequence[Release]
    effect: Effect


@dataclass(frozen=True)
class _Sum:
    """A sum of released numbers with public factors, and of a public number: its noise is known exactly."""

    constant: float
    factors: Mapping[str, float]

    def plus(self, other: "_Sum", times: float = 1.0) -> "_Sum":
        names = {*self.factors, *other.factors}
        factors = {name: self.factors.get(name, 0.0) + times * other.factors.get(name, 0.0) for name in names}
        return _Sum(self.constant + times * other.constant, factors)

    def value(self, release: Release) -> float:
        return self.constant + sum(factor * release.value(name) for name, factor in sorted(self.factors.items()))

    def noise_sd(self, release: Release) -> float:
        return math.sqrt(sum(factor**2 * release.variance(name) for name, factor in self.factors.items()))


@dataclass(frozen=True)
class _Violation:
    """A number that cannot be negative, and is.

    Attributes:
        distance: How far it is below 0, in standard deviations of its noise.
    """

    what: str
    distance: float


def why_impossible(release: Release, n: int, arm_sizes: tuple[int, int] | None, schema: Schema) -> str:
    """Return why no table within the schema's bounds has this release, whatever its noise; empty if one has."""
    beyond = (each for each in _violations(release, n, arm_sizes, schema) if each.distance > _IMPOSSIBLE)
    first = next(beyond, None)
    return f"{first.what}, by {first.distance:.0f} standard deviations of its noise" if first else ""


def suspicions(answers: Mapping[str, SiteAnswer], schema: Schema) -> tuple[str, ...]:
    """Return a warning for each check that a site fails: against public bounds, then against the other sites."""
    found = (*_beyond_bounds(answers, schema), *_small_variances(answers, schema), *_far_effects(answers, schema))
    return tuple(f"{text}. {_FREE}" for text in found)


def _limit(checks: int) -> float:
    """Return how many standard deviations so many numbers, all of them honest, stay within. No noise is heavier."""
    return math.log(checks / _ERROR) / math.sqrt(2)


def _violations(release: Release, n: int, arm_sizes: tuple[int, int] | None, schema: Schema) -> Iterator[_Violation]:
    """Yield every bound on sums over the arms' units; all of them are linear, so that their noise is exact."""
    if "total_0" not in release.names or release.query.name not in {"arm_totals", "arm_moments"}:
        return
    low, high = schema.outcome_bounds
    half, labels = (high - low) / 2, schema.treatment.labels_or_values
    for name, what, number in _bounded(release, n, arm_sizes, half, labels):
        rounding = n * half ** (2 if name == "moment" else 1) * 4 / GRID if name != "size" else 0.0
        sd, value = number.noise_sd(release), number.value(release) + rounding
        if sd > 0 or value < 0:
            yield _Violation(what, -value / sd if sd > 0 else math.inf)


def _sizes(release: Release, n: int, arm_sizes: tuple[int, int] | None) -> tuple[_Sum, _Sum]:
    """Return the arms' sizes, public or released."""
    if arm_sizes is not None:
        return _Sum(float(arm_sizes[0]), {}), _Sum(float(arm_sizes[1]), {})
    treated = _Sum(0.0, {"size_1": 1.0})
    units = _Sum(0.0, {"compared": 1.0}) if "compared" in release.names else _Sum(float(n), {})
    return units.plus(treated, -1.0), treated


def _bounded(
    release: Release, n: int, arm_sizes: tuple[int, int] | None, half: float, labels: Sequence[str]
) -> Iterator[tuple[str, str, _Sum]]:
    """Yield the kind, the meaning and the value of each number that cannot be negative."""
    sizes = _sizes(release, n, arm_sizes)
    if "compared" in release.names:
        yield "size", "its arms have more units than it has", _Sum(float(n), {"compared": -1.0})
    for arm, size in enumerate(sizes):
        nothing = _Sum(0.0, {})
        total = _Sum(0.0, {f"total_{arm}": 1.0})
        yield "size", f"its arm {labels[arm]} has fewer than no units", size
        outside = f"its mean outcome in the arm {labels[arm]} is outside the declared bounds"
        yield "total", outside, nothing.plus(size, half).plus(total)
        yield "total", outside, nothing.plus(size, half).plus(total, -1.0)
        if f"deficit_{arm}" not in release.names:
            continue
        deficit = _Sum(0.0, {f"deficit_{arm}": 1.0})
        yield "moment", f"its outcomes in the arm {labels[arm]} are outside the declared bounds", deficit
        for place in _CENTRES:
            about = nothing.plus(size, half**2 * (1 + place**2)).plus(deficit, -1.0).plus(total, -2 * place * half)
            yield "moment", f"its variance in the arm {labels[arm]} is below 0", about


def _beyond_bounds(answers: Mapping[str, SiteAnswer], schema: Schema) -> Iterator[str]:
    found = {
        site: [each for release in answer.releases for each in _violations(release, answer.n, answer.arm_sizes, schema)]
        for site, answer in answers.items()
    }
    limit = _limit(max(sum(map(len, found.values())), 1))
    for site, violations in found.items():
        first = next((each for each in violations if each.distance > limit), None)
        if first is not None:
            yield (
                f"{site} sent numbers that its noise hardly explains: {first.what}, by {first.distance:.1f} standard "
                "deviations of its noise. Examine that site"
            )


def _small_variances(answers: Mapping[str, SiteAnswer], schema: Schema) -> Iterator[str]:
    """Warn of sites whose outcomes vary far less than those of the other sites."""
    low, high = schema.outcome_bounds
    known = {
        site: (*_variance(answer.releases[0], answer, (high - low) / 2), answer.n)
        for site, answer in answers.items()
        if answer.releases and answer.releases[0].query.name == "arm_moments"
    }
    for site, (variance, noise_sd, n) in known.items():
        others = np.array([each[:2] for other, each in known.items() if other != site])
        if len(others) < 2:
            return
        usual, usual_sd = float(np.median(others[:, 0])), float(np.median(others[:, 1]))
        least = _LEAST_VARIANCE * usual
        sampling_sd = (high - low) * math.sqrt(max(least, 0.0) / n)  # fourth moments are at most this with these bounds
        if least - variance > _limit(len(known)) * math.hypot(noise_sd, sampling_sd, _LEAST_VARIANCE * usual_sd):
            yield (
                f"{site}'s outcomes have a standard deviation of {format_number(math.sqrt(max(variance, 0.0)))}, those "
                f"of the other sites {format_number(math.sqrt(usual))}: its effect looks too precise. Examine that site"
            )


def _variance(release: Release, answer: SiteAnswer, half: float) -> tuple[float, float]:
    """Return the variance within arms, and the standard deviation of the noise in it."""
    sum_of_squares, noise = 0.0, 0.0
    for arm, size in enumerate(_sizes(release, answer.n, answer.arm_sizes)):
        units = max(size.value(release), 1.0)
        mean = min(max(release.value(f"total_{arm}") / units, -half), half)
        moments = _Sum(0.0, {f"deficit_{arm}": -1.0, f"total_{arm}": -2 * mean}).plus(size, half**2 + mean**2)
        sum_of_squares += moments.value(release)
        noise += moments.noise_sd(release)
    return sum_of_squares / answer.n, noise / answer.n


def _far_effects(answers: Mapping[str, SiteAnswer], schema: Schema) -> Iterator[str]:
    """Warn of sites whose effect is far from that of all others together, whatever sites differ by.

    No site counts as more precise than the median one. Three or more other sites show how much effects differ; two
    show little, so they may differ by their distance or by a usual share of the outcome's standard deviation.
    """
    sites = list(answers)
    if len(sites) < 3:
        return
    effects = [answers[site].effect for site in sites]
    estimates = np.array([effect.estimate for effect in effects])
    variances = site_variances(effects)
    floored = np.maximum(variances, np.median(variances))
    low, high = schema.outcome_bounds
    for place, site in enumerate(sites):
        rest = np.arange(len(sites)) != place
        if len(sites) == 3:
            unit_sd = math.sqrt(float(np.median([effects[at].n * variances[at] for at in np.flatnonzero(rest)]))) / 2
            usual = _USUAL_SPREAD * max(unit_sd, (high - low) / 10)
            between = max(usual, float(np.ptp(estimates[rest]))) ** 2
        else:
            between = Heterogeneity.of(estimates[rest], floored[rest]).limit
        weights = inverse_variance(floored[rest] + between)
        others = float(weights @ estimates[rest])
        error = math.sqrt(float(floored[place] + between + weights**2 @ (floored[rest] + between)))
        apart = abs(float(estimates[place]) - others) / error
        if apart > _limit(len(sites)):
            yield (
                f"{site} has an effect of {format_number(float(estimates[place]))}, all others together "
                f"{format_number(others)}: {format_number(apart)} standard errors apart, differences between the other "
                "sites included. Examine that site"
            )
