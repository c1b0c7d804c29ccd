"""PrivATE as it is printed: Algorithms 1 to 4 at both levels, and Theorem 3. NOT PRIVATE.

Ranges of covariates and of the outcome come from the table. A unit that is matched with fewer than N neighbours counts
each of them more than 1 / N (Equation 4), so that a unit can serve with a larger weight than the noise is for. Two
things the paper leaves open: the penalty of the logistic regression (here 1 on the sum of losses at label level, as
in the usual libraries, and 0.01 on their mean at sample level), and what happens to a unit that finds no match (here
it is left out of the mean). Random numbers are numpy's: this is a simulation of the paper and protects nobody.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.accuracy.references import features_as_in_paper, scores
from benchmarks.datasets import DataSet
from benchmarks.papers.private.grid import SPLIT, Level, Setting
from benchmarks.peers.regression import fitted, logistic, sigmoid

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

PENALTY = 0.01
"""On the mean loss at sample level; the paper does not say."""


@dataclass(frozen=True, eq=False)
class Units:
    """A table as the paper's algorithm sees it: covariates from 0 to 1 by the table's own least and largest values."""

    features: Floats
    arms: Int64s
    outcomes: Floats

    @classmethod
    def of(cls, data: DataSet) -> "Units":
        """Return the units of a data set."""
        arms = data.column(data.treatment.name).astype(np.int64)
        return cls(features_as_in_paper(data), arms, data.column(data.outcome.name).astype(float))

    @property
    def spread(self) -> float:
        """The paper's B, from the table."""
        return float(np.ptp(self.outcomes))

    @cached_property
    def score(self) -> Floats:
        """The score of the label level, which needs no noise."""
        return scores(self.features, self.arms.astype(float))

    @cached_property
    def rows(self) -> Floats:
        """Covariates with a constant before them."""
        return np.column_stack([np.ones(len(self.arms)), self.features])

    @cached_property
    def coefficients(self) -> Floats:
        """The score's coefficients at sample level, before noise."""
        return fitted(self.rows, logistic(self.arms), PENALTY * len(self.arms))


@dataclass(frozen=True)
class Matches:
    """Who was matched with whom when units of one arm sought among those of the other.

    Attributes:
        seekers: The places of those who sought.
        servers: The places of those who could serve.
        chosen: For each seeker the numbers of its matches among the servers; -1 where there was none.
    """

    seekers: Int64s
    servers: Int64s
    chosen: Int64s

    @property
    def serves(self) -> Int64s:
        """How often each server serves."""
        return np.bincount(self.chosen[self.chosen >= 0], minlength=len(self.servers))

    def counterfactuals(self, outcomes: Floats) -> Floats:
        """Return Equation 4 for each seeker that found a match, dividing by how many it found."""
        found = (self.chosen >= 0).sum(axis=1)
        values = np.where(self.chosen >= 0, outcomes[self.servers][self.chosen], 0.0).sum(axis=1)
        means: Floats = values[found > 0] / found[found > 0]
        return means

    def weights(self) -> Floats:
        """Return the weight with which each server's outcome enters the sum of counterfactuals."""
        found = np.maximum((self.chosen >= 0).sum(axis=1), 1)
        shares = np.broadcast_to(1 / found[:, None], self.chosen.shape)
        taken = self.chosen >= 0
        return np.bincount(self.chosen[taken], weights=shares[taken], minlength=len(self.servers)).astype(float)


def matches(score: Floats, arms: Int64s, serving: int, neighbours: int, cap: int) -> Matches:
    """Return the matches of Algorithm 3: seekers in table order, each with its nearest servers that are not full."""
    seekers, servers = np.flatnonzero(arms != serving), np.flatnonzero(arms == serving)
    order = np.argsort(score[servers], kind="stable")
    ranked = score[servers][order]
    sought = score[seekers]
    chosen = _loop()(sought, ranked, np.searchsorted(ranked, sought), neighbours, cap)
    return Matches(seekers, servers, np.where(chosen >= 0, order[chosen], -1))


def limits(  # noqa: PLR0913
    score: Floats, arms: Int64s, neighbours: int, setting: Setting, epsilon: float, *, level: Level
) -> Floats:
    """Return the limits of control and treated units by Equations 9 to 12, in multiples of the neighbours."""
    sizes = np.bincount(arms, minlength=2)
    most = most_wanted(score, arms, neighbours) / neighbours
    fixed, coefficient = setting
    best = math.sqrt(epsilon * coefficient * sizes.max() * most / 2) if fixed is None else fixed
    limit = float(max(round(best), 1))
    if level == "label":  # Equation 12 has no such bound
        limit = min(limit, max(most, 1.0))
    smaller = int(np.argmin(sizes[::-1])) ^ 1  # treated where both are alike
    found = np.empty(2)
    found[smaller] = limit
    found[1 - smaller] = max(1, round(limit * sizes[smaller] / sizes[1 - smaller]))
    return found


def most_wanted(score: Floats, arms: Int64s, neighbours: int) -> int:
    """Return M: how often the unit most in demand serves without a limit."""
    return max(int(matches(score, arms, arm, neighbours, len(arms) + 1).serves.max()) for arm in (0, 1))


def capacity(limit: float, neighbours: int) -> int:
    """Return how many others a unit may serve."""
    return round(limit * neighbours)


def means(score: Floats, arms: Int64s, outcomes: Floats, neighbours: int, limit: Floats) -> Floats:
    """Return the mean outcome without and with treatment: observed ones and counterfactuals."""
    found = []
    for arm in (0, 1):
        each = matches(score, arms, arm, neighbours, capacity(limit[arm], neighbours))
        found.append(np.concatenate([outcomes[each.servers], each.counterfactuals(outcomes)]).mean())
    return np.array(found)


def unlimited(units: Units, neighbours: int) -> float:
    """Return matching without privacy and without limits, which the paper measures all errors against."""
    none = np.full(2, len(units.arms) + 1.0)
    control, treated = means(units.score, units.arms, units.outcomes, neighbours, none)
    return float(treated - control)


def label(  # noqa: PLR0913, PLR0917
    units: Units, epsilon: float, neighbours: int, setting: Setting, repeats: int, generator: Generator
) -> Floats:
    """Return estimates at label level: one exact matching, and two noises a repeat."""
    limit = limits(units.score, units.arms, neighbours, setting, epsilon, level="label")
    exact = means(units.score, units.arms, units.outcomes, neighbours, limit)
    scale = (limit + 1) * units.spread / epsilon
    noisy = exact + generator.laplace(0, scale, (repeats, 2)) / len(units.arms)
    return noisy[:, 1] - noisy[:, 0]


def sample(units: Units, epsilon: float, neighbours: int, setting: Setting, generator: Generator) -> float:
    """Return one estimate at sample level: noise on coefficients, scores, arms and sums."""
    first, second, third = (share * epsilon for share in SPLIT)
    score = _noisy_score(units, first / 2, generator)
    stays = generator.random(len(units.arms)) < 1 / (1 + math.exp(-second))
    arms = np.where(stays, units.arms, 1 - units.arms)
    if len(np.unique(arms)) < 2:
        return 0.0
    limit = limits(score, arms, neighbours, setting, third, level="sample")
    exact = means(score, arms, units.outcomes, neighbours, limit)
    noisy = exact + generator.laplace(0, (limit + 1) * units.spread / third) / len(arms)
    return float(noisy[1] - noisy[0])


def _noisy_score(units: Units, epsilon: float, generator: Generator) -> Floats:
    n, length = units.rows.shape
    size = 2 * length / (PENALTY * n) / epsilon
    predictor = units.rows @ (units.coefficients + generator.laplace(0, size, length))
    return sigmoid(predictor) + generator.laplace(0, 1 / epsilon, n)


def nearest(sought: Floats, ranked: Floats, places: Int64s, neighbours: int, cap: int) -> Int64s:
    """Return the matches of each seeker, in order; `left` and `right` lead past servers that are full."""
    size = len(ranked)
    left, right = np.arange(size + 1), np.arange(size + 1)
    serves = np.zeros(size, dtype=np.int64)
    chosen = np.full((len(sought), neighbours), -1, dtype=np.int64)
    for seeker in range(len(sought)):
        below, above = places[seeker], places[seeker]
        for place in range(neighbours):
            while left[below] != below:
                below = left[below]
            while right[above] != above:
                above = right[above]
            if below == 0 and above == size:
                break
            if above == size or (below > 0 and sought[seeker] - ranked[below - 1] <= ranked[above] - sought[seeker]):
                below -= 1
                chosen[seeker, place] = below
            else:
                chosen[seeker, place] = above
                above += 1
        for place in range(neighbours):
            server = chosen[seeker, place]
            if server < 0:
                break
            serves[server] += 1
            if serves[server] == cap:
                left[server + 1], right[server] = left[server], right[server + 1]
    return chosen


@cache
def _loop() -> Callable[..., Int64s]:
    try:
        import numba  # noqa: PLC0415 (an extra)
    except ImportError:
        return nearest
    compiled: Any = numba.njit(nearest)
    return compiled  # type: ignore[no-any-return]
