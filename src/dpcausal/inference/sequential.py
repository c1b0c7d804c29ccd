"""Interim looks at a study that is still running, with a limit on the probability of any false claim."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from dpcausal.errors import RefusedError
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.interval import check_alpha, simulated
from dpcausal.utils.arrays import Array
from dpcausal.utils.other_names import Constructor, called_as
from dpcausal.utils.text import format_number

Spending = Literal["obrien_fleming", "pocock"]

_DRAWS = 100_000
"""Simulated studies behind the critical values; the last step is integrated, so that small levels are exact."""

_SMALLEST = 1e-4
"""Below this level an interval is normal: simulated ones cannot tell, and early looks out of many have next to none."""

_BINS, _FARTHEST = 4_000, 9.0
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Look(metaclass=Constructor):
    """One look at a running study.

    Attributes:
        fraction: The share of the planned units.
        p_value: The p-value of this look alone.
        level: The level that it is compared with.
        spent: The probability of a false claim so far, this look included.
        interval: The interval that holds at all looks together with the planned probability.
        stops: Whether an effect is shown at this look.
    """

    n: int
    fraction: float
    p_value: float
    level: float
    spent: float
    interval: tuple[float, float]
    stops: bool

    def __str__(self) -> str:
        low, high = self.interval
        verdict = "an effect is shown" if self.stops else "go on"
        return (
            f"{self.n:,} units ({self.fraction:.0%}): p = {self.p_value:.3g} against {self.level:.3g}, "
            f"{format_number(low)} to {format_number(high)}: {verdict}"
        )


@called_as("sequential_looks([first, second], planned_n=10_000)")
def sequential_looks(  # noqa: PLR0913 (all but the first have names)
    effects: Sequence[Effect],
    *,
    planned_n: int,
    alpha: float = 0.05,
    spending: Spending = "obrien_fleming",
    null: float = 0.0,
    noise_correlations: Array | None = None,
) -> tuple[Look, ...]:
    """Return what each look at a growing table says, so that all looks together make a false claim with at most alpha.

    Alpha is spent over the looks by the share of planned units (Lan and DeMets 1983). Each look has sampling error in
    common with the later ones, and privacy noise of its own; critical values account for both. The times of the looks
    need not be planned, but must not depend on the results.

    Privacy: every look asks the table again, and the prices add up for those who were there from the start; unless the
    looks are a schedule that was paid for once (`ScheduledDifference`).

    Args:
        effects: The effects so far, by the same estimator on a growing table, in order.
        planned_n: The number of units at the end of the study.
        alpha: The probability of a false claim at any look, two-sided.
        spending: `obrien_fleming` spends little at first and keeps most of alpha for the end; `pocock` spends it
            evenly.
        null: The effect under the hypothesis.
        noise_correlations: How the privacy noise of each two looks correlates, as a schedule tells it; None where each
            look has noise of its own. Those of later looks may be part of it.

    Example:
        >>> [round(level, 4) for level in spent_alpha([0.5, 1.0], 0.05, "obrien_fleming")]
        [0.0031, 0.05]
    """
    check_alpha(alpha)
    if not isinstance(effects, Sequence) or not all(isinstance(effect, Effect) for effect in effects):
        raise RefusedError(
            expected="a list of effects, one for each look",
            got=type(effects).__name__,
            hint="write sequential_looks([first, second], planned_n=10_000).",
        )
    sizes = [effect.n for effect in effects]
    if not effects or sizes != sorted(set(sizes)) or sizes[-1] > planned_n or spending not in get_args(Spending):
        raise RefusedError(
            expected="effects on growing numbers of units up to the planned one, and a spending out of "
            f"{', '.join(get_args(Spending))}",
            got=f"{sizes} units of {planned_n} planned, spending {spending!r}",
            hint="give one effect for each look, the first look first.",
        )
    fractions = [size / planned_n for size in sizes]
    spent = spent_alpha(fractions, alpha, spending)
    criticals = critical_values(correlations(effects, noise_correlations), spent)
    looks = []
    for effect, fraction, total, critical in zip(effects, fractions, spent, criticals, strict=True):
        level = 2 * _NORMAL.cdf(-critical)
        p_value = effect.p_value(null)
        half = critical * (effect.standard_error or 0.0) + effect.bias_bound
        normal = effect.estimate - half, effect.estimate + half
        interval = effect.interval(1 - level) if level > _SMALLEST else normal
        looks.append(Look(effect.n, fraction, p_value, level, total, interval, p_value <= level))
    return tuple(looks)


def spent_alpha(fractions: Iterable[float], alpha: float, spending: Spending) -> list[float]:
    """Return how much of alpha is spent when these shares of the units have been seen."""
    if spending == "pocock":
        return [alpha * math.log(1 + (math.e - 1) * share) for share in fractions]
    quantile = _NORMAL.inv_cdf(1 - alpha / 4)  # each side spends half of alpha
    return [4 * _NORMAL.cdf(-quantile / math.sqrt(share)) for share in fractions]


def correlations(effects: Sequence[Effect], noise: Array | None = None) -> Array:
    """Return how the errors of looks at a growing table correlate: sampling errors do, fresh privacy noise does not.

    The sampling error of a look and of a later one have the later one's variance in common. Noise that is not fresh has
    correlations of its own.
    """
    sampling = np.array([effect.sampling_sd or 0.0 for effect in effects])
    total = np.array([effect.standard_error or 0.0 for effect in effects])
    common = np.minimum.outer(sampling, sampling) ** 2
    if noise is not None:
        privacy = np.array([effect.privacy_sd for effect in effects])
        common = common + noise[: len(effects), : len(effects)] * np.outer(privacy, privacy)
    matrix: Array = common / np.outer(total, total)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def critical_values(matrix: Array, spent: Sequence[float]) -> list[float]:
    """Return how many standard errors each look needs, given the correlations and what may be spent up to each.

    Example:
        >>> share = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
        >>> matrix = np.sqrt(np.minimum.outer(share, share) / np.maximum.outer(share, share))
        >>> [round(each, 1) for each in critical_values(matrix, spent_alpha(share, 0.05, "pocock"))]
        [2.4, 2.4, 2.4, 2.4, 2.4]
    """
    looks = len(spent)
    root = np.linalg.cholesky(matrix + 1e-9 * np.eye(looks))
    draws = simulated("gaussian", [1.0] * looks, _DRAWS)
    inside = np.ones(_DRAWS, dtype=bool)
    criticals, before = [], 0.0
    edges = np.linspace(-_FARTHEST, _FARTHEST, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    for place in range(looks):
        means = draws[inside, :place] @ root[place, :place]
        shares = np.histogram(np.clip(means, -_FARTHEST, _FARTHEST), edges)[0] / _DRAWS
        held = shares > 0
        critical = _crossing(
            middles[held] if place else np.zeros(1), shares[held], root[place, place], spent[place] - before
        )
        criticals.append(critical)
        before = spent[place]
        inside &= np.abs(draws[:, : place + 1] @ root[place, : place + 1]) < critical
    return criticals


def _crossing(means: Array, shares: Array, sd: float, level: float) -> float:
    """Return the limit that normal errors with these means exceed with this probability, in either direction."""
    low, high = 0.0, 2 * _FARTHEST
    for _ in range(60):
        middle = (low + high) / 2
        beyond = float(shares @ (_below((means - middle) / sd) + _below((-means - middle) / sd)))
        low, high = (middle, high) if beyond > level else (low, middle)
    return high


def _below(values: Array) -> Array:
    """Return the standard normal distribution function of many values, from a table."""
    points, known = _normal_table()
    found: Array = np.interp(values, points, known)
    return found


@cache
def _normal_table() -> tuple[Array, Array]:
    points = np.linspace(-_FARTHEST, _FARTHEST, 40_001)
    return points, np.array([_NORMAL.cdf(point) for point in points.tolist()])
