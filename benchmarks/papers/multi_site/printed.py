"""The multi-site paper's estimators and rules as they were printed, to compare with.

Koga, Chaudhuri and Page 2024, "Differentially private multi-site treatment effect estimation". A site divides its
epsilon and delta evenly: one part for the effect, one for the sampling variance and, with smooth sensitivity, one for
the size of the noise. As printed the last is not private: the smooth sensitivity is off by one where an arm of a
stratum runs out, and so not smooth. A variance is passed on as it is, below zero too.

The smooth sensitivity of the variance is left to a search over all tables at each distance. It is done here at the
corner, where the smaller arm of a stratum has lost as many units, and the larger has gained as many, as the distance
allows. But for rounding the largest value is there; what is left out by that is in the paper's favour.

Random numbers are numpy's: this is a simulation of the paper and protects nobody.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator

from benchmarks.datasets import DataSet
from benchmarks.papers.multi_site.sensitivity import paper_beta, smoothed
from benchmarks.papers.multi_site.tables import Floats, Int64s, arms_of, cells_of
from dpcausal.pooling.weights import Rule, weights_of


@dataclass(frozen=True)
class Said:
    """What a site sends.

    Attributes:
        estimate: Its noisy effect.
        variance: The noisy variance of that.
        noise: The part of it that the noise in the effect has, which the server can tell or is told.
        n: The number of units.
    """

    estimate: float
    variance: float
    noise: float
    n: int


@dataclass(frozen=True)
class Trial:
    """What difference in means needs of a table: sizes, sums and sums of squares of the control and treated arm."""

    sizes: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, data: DataSet) -> "Trial":
        """Return the same of a table."""
        arms, outcomes = arms_of(data), data.column(data.outcome.name).astype(float)
        sides = [outcomes[arms == arm] for arm in (0, 1)]
        counted = [(len(side), side.sum(), (side**2).sum()) for side in sides]
        return cls(*np.array(counted, dtype=float).T)

    def said(self, epsilon: float, delta: float, generator: Generator) -> dict[str, Said]:  # noqa: ARG002 (pure)
        """Return what the site sends (section III-A1), half of epsilon for each of sums and squares."""
        scale = 2 / epsilon
        means = (self.sums + generator.laplace(0, scale, 2)) / self.sizes
        squares = (self.squares + generator.laplace(0, scale, 2)) / self.sizes
        sampling = ((squares - means**2) / self.sizes).sum()
        noise = float((2 * scale**2 / self.sizes**2).sum())
        said = Said(float(means[1] - means[0]), float(sampling) + noise, noise, int(self.sizes.sum()))
        return {"difference in means": said}


@dataclass(frozen=True)
class Matched:
    """What exact matching needs of a table.

    Attributes:
        n: The number of units.
        sizes: The numbers of treated and of control units in each stratum that has any.
        effect: The estimate (algorithm 1).
        variance: The sampling variance (appendix B, section C).
    """

    n: int
    sizes: Int64s
    effect: float
    variance: float

    @classmethod
    def of(cls, data: DataSet) -> "Matched":
        """Return the same of a table, ties broken by its order."""
        cells, arms, outcomes = cells_of(data), arms_of(data), data.column(data.outcome.name).astype(float)
        sizes, effect, squares = [], 0.0, 0.0
        for cell in np.unique(cells):
            treated, control = (outcomes[(cells == cell) & (arms == arm)] for arm in (1, 0))
            t, c = len(treated), len(control)
            sizes.append((t, c))
            if t and c:
                of_treated, of_control = np.arange(t) % c, np.arange(c) % t
                gains, losses = treated - control[of_treated], treated[of_control] - control
                effect += gains.sum() + losses.sum()
                serves = np.bincount(of_control, minlength=t), np.bincount(of_treated, minlength=c)
                squares += ((1 + serves[0]) ** 2 * gains**2).sum() + ((1 + serves[1]) ** 2 * losses**2).sum()
        return cls(data.n, np.array(sizes), effect / data.n, squares / 2 / data.n**2)

    def said(self, epsilon: float, delta: float, generator: Generator) -> dict[str, Said]:
        """Return what the site sends, by what its noise is in proportion to."""
        return {
            "exact matching, smooth": self._smooth(epsilon, delta, generator),
            "exact matching, global": self._global(epsilon, delta, generator),
        }

    def _smooth(self, epsilon: float, delta: float, generator: Generator) -> Said:
        """Algorithm 2, a third of epsilon and delta each for effect, sampling variance and smooth sensitivity."""
        epsilon, delta = epsilon / 3, delta / 3
        beta = paper_beta(epsilon, delta)
        sensitivity = _of_effect(self.sizes.tobytes(), self.n, beta)
        blur = math.sqrt(2 * math.log(1.25 / delta)) * beta / epsilon
        seen = sensitivity * math.exp(generator.normal(0, blur) - blur**2 / 2)
        estimate = self.effect + 2 * sensitivity / epsilon * generator.laplace()
        noise = 8 * seen**2 / epsilon**2
        return Said(estimate, self._variance(epsilon, delta, generator) + noise, noise, self.n)

    def _global(self, epsilon: float, delta: float, generator: Generator) -> Said:
        """Return the same by global sensitivity, half of epsilon each for effect and sampling variance."""
        epsilon /= 2
        scale = (1 + 1 / self.n) / epsilon
        estimate = self.effect + generator.laplace(0, scale)
        noise = 2 * scale**2
        return Said(estimate, self._variance(epsilon, delta, generator) + noise, noise, self.n)

    def _variance(self, epsilon: float, delta: float, generator: Generator) -> float:
        sensitivity = _of_variance(self.sizes.tobytes(), self.n, paper_beta(epsilon, delta))
        return self.variance + 2 * sensitivity / epsilon * generator.laplace()


@cache
def _of_effect(sizes: bytes, n: int, beta: float) -> float:
    """Return the smooth sensitivity of the effect, once for a table."""
    return smoothed(_sizes(sizes), n, beta, corrected=False)


@cache
def _of_variance(sizes: bytes, n: int, beta: float) -> float:
    """Return the smooth sensitivity of the sampling variance, once for a table."""
    return variance_sensitivity(_sizes(sizes), n, beta)


def _sizes(sizes: bytes) -> Int64s:
    return np.frombuffer(sizes, dtype=np.int64).reshape(-1, 2)


def summed(data: DataSet) -> Trial | Matched:
    """Return what the paper's estimator needs of a site: difference in means for a trial, otherwise matching."""
    return Trial.of(data) if data.randomised else Matched.of(data)


def variance_sensitivity(sizes: Int64s, n: int, beta: float) -> float:
    """Return the smooth sensitivity of the sampling variance (appendix B, section C)."""
    # Of strata with as few units in the smaller arm, or more, only one with more in the larger can count for more.
    least, most = np.unique(np.stack([sizes.min(axis=1), -sizes.max(axis=1)], axis=1), axis=0).T * [[1], [-1]]
    ahead = most > np.concatenate([[-1], np.maximum.accumulate(most)[:-1]])
    least, most = least[ahead][:, None], most[ahead][:, None]
    # Beyond this distance even the largest bound there is, below 20 (n + 2)², weighs less than the smallest at 0.
    k = np.arange(min(n, math.ceil(math.log(20 * (n + 2) ** 2) / beta)) + 1)
    larger, smaller = np.minimum(most + k, n).astype(float), np.maximum(least - k, 0).astype(float)
    # An empty arm may count for less than one with a single unit, which, where there was none, costs one replacement.
    single = np.where(k > 0, np.maximum(smaller, 1.0), smaller)
    beside = np.where((least == 0) & (k > 0), larger - 1, larger)
    moves = np.maximum(
        _joining(smaller, larger).max(axis=0) + _leaving(smaller, larger).max(axis=0),
        _joining(single, beside).max(axis=0) + _leaving(single, beside).max(axis=0),
    )
    return float((np.exp(-beta * k) * moves).max() / 2 / n**2)


def _weight(units: Floats, over: Floats, by: Floats) -> Floats:
    """So many units, each serving over / by times, rounded up."""
    weight: Floats = units * (1 + np.ceil(over / np.maximum(by, 1))) ** 2
    return weight


def _joining(t: Floats, c: Floats) -> Floats:
    """LS_g^+ of a stratum, without B²."""
    one = np.ones_like(t)
    both = np.maximum(
        *(2 * _weight(a, b, a) + 2 * _weight(b, a + 1, b) + _weight(one, b, a + 1) for a, b in _turns(t, c))
    )
    return np.where(t == 0, (1 + c) ** 2 + 4 * c, both)


def _leaving(t: Floats, c: Floats) -> Floats:
    """Return the largest LS_g^- of a stratum that one unit has joined, without B²."""
    one = np.ones_like(t)
    found = [
        np.maximum(
            2 * _weight(1 + b, 1 + a, b) + 2 * _weight(1 + a, 1 + b, 1 + a) + _weight(one, 1 + a, b),
            2 * _weight(2 + a, b, 1 + a) + 2 * _weight(b, 2 + a, b) + _weight(one, b, 1 + a),
        )
        for a, b in _turns(t, c)
    ]
    return np.where(t == 0, found[0], np.maximum(*found))


def _turns(t: Floats, c: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    return (t, c), (c, t)


def minimum_variance(said: Sequence[Said]) -> float:
    """Algorithm 3: the best of all sets of sites, which all are looked at."""
    estimates, variances, sizes = _columns(said)
    sets = (np.arange(1, 2 ** len(said))[:, None] >> np.arange(len(said))) & 1
    weights = sets * sizes
    weights /= weights.sum(axis=1, keepdims=True)
    return float(weights[(weights**2 @ variances).argmin()] @ estimates)


def inverse_variance(said: Sequence[Said]) -> float:
    """IVW."""
    estimates, variances, _ = _columns(said)
    return float((estimates / variances).sum() / (1 / variances).sum())


def sample_size(said: Sequence[Said]) -> float:
    """AggAll."""
    estimates, _, sizes = _columns(said)
    return float(estimates @ sizes / sizes.sum())


def largest(said: Sequence[Said]) -> float:
    """AggLargest; the first of equals."""
    return max(said, key=lambda each: each.n).estimate


def floored(said: Sequence[Said], rule: Rule) -> float:
    """Return what the paper's sites send, pooled by this library's rule: no variance is below that of the noise."""
    estimates, variances, sizes = _columns(said)
    floors = np.array([each.noise for each in said])
    return float(weights_of(rule, sizes, np.maximum(variances, floors), 0.0, estimates) @ estimates)


def _columns(said: Sequence[Said]) -> Floats:
    return np.array([(each.estimate, each.variance, each.n) for each in said], dtype=float).T


RULES: dict[Rule, Callable[[Sequence[Said]], float]] = {
    "minimum_variance": minimum_variance,
    "inverse_variance": inverse_variance,
    "sample_size": sample_size,
    "largest": largest,
}
"""The paper's rules, by the names they have in this library."""
