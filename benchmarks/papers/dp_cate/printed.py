"""The paper's own algorithms as printed, and its baseline of k-anonymous data. None of it is proved private.

What each epsilon adds is noise in proportion to 1 / epsilon. So a model is fitted once, and noise is added for every
epsilon, from a seed.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.random import Generator
from threadpoolctl import threadpool_limits

from benchmarks.papers.dp_cate.contestants import DELTA, QUERIES
from benchmarks.papers.dp_cate.influence import SECOND_STAGES, finite_version, networks
from benchmarks.papers.dp_cate.tables import Table, Vector
from dpcausal.estimators.conditional.meta_learners import MetaLearner

CENTRES = 50
"""Basis functions of the kernel regression, as in the paper's experiments."""

Reading = Literal["mean", "sum", "mixed"]
READINGS: tuple[Reading, ...] = ("mean", "sum", "mixed")
"""What a ridge of 1 may mean: of the mean of losses, as the theorem is written; of their sum, as in scikit-learn; or
of the sum, with the noise that the theorem has for the mean, which is too small by a factor of n."""


@contextmanager
def quiet() -> Iterator[None]:
    """One thread, and no word of networks that stop where the paper stops them."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Fit:
    """Effects at profiles before noise, and the noise that the paper adds at epsilon 1.

    Attributes:
        effects: The effects.
        sd: The noise's standard deviation.
        factor: A root of the noise's correlation between profiles; None where it is independent.
    """

    effects: Vector
    sd: float
    factor: Vector | None = None

    def noisy(self, epsilon: float, generator: Generator) -> Vector:
        """Return the effects with noise."""
        drawn = generator.standard_normal(len(self.effects))
        return self.effects + self.sd / epsilon * (drawn if self.factor is None else self.factor @ drawn)


def finite(table: Table, meta_learner: MetaLearner, learner: str) -> Fit:
    """Fit Theorem 1 at the paper's number of queries."""
    with quiet():
        second = networks(meta_learner, SECOND_STAGES[learner]())
        return Fit(*finite_version(table.rows, table.profile_features[:QUERIES], second, DELTA))


class Kernel:
    """A kernel regression on 50 public centres, as a second stage; its ridge is chosen when it is asked.

    The paper gives no width. Where there are two covariates it is the one for which (2 pi)^(1/2) h = 1, so that every
    reading of the paper's constant agrees; where there are thirty that would make every unit an island, and it is
    about what two profiles are apart, with the kernel's largest value 1.
    """

    def __init__(self, dimensions: int) -> None:
        self.width = 2 / math.sqrt(math.tau) if dimensions == 2 else 2 * math.sqrt(dimensions / 6)
        self._centres = np.random.default_rng(0).uniform(-1, 1, (CENTRES, dimensions))
        values, vectors = np.linalg.eigh(self.between(self._centres, self._centres))
        self._root = vectors / np.sqrt(np.maximum(values, 1e-9))
        self._moments: tuple[Vector, Vector] = np.zeros((0, 0)), np.zeros(0)

    def between(self, one: Vector, other: Vector) -> Vector:
        """Return the kernel between two lists of profiles."""
        squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
        kernel: Vector = np.exp(-np.maximum(squares, 0) / (2 * self.width**2))
        return kernel

    def _features(self, at: Vector) -> Vector:
        features: Vector = self.between(at, self._centres) @ self._root
        return features

    def fit(self, covariates: Vector, target: Vector, sample_weight: Vector | None = None) -> Self:
        """Take the moments of the regression, as a mean over units."""
        features = self._features(covariates)
        weighted = features * (np.ones(len(target)) if sample_weight is None else sample_weight)[:, None]
        self._moments = weighted.T @ features / len(target), weighted.T @ target / len(target)
        return self

    def effects(self, at: Vector, ridge: float) -> Vector:
        """Return the effects for a ridge of the mean of losses."""
        gram, along = self._moments
        effects: Vector = self._features(at) @ np.linalg.solve(gram + ridge * np.eye(CENTRES), along)
        return effects


def functional(table: Table, meta_learner: MetaLearner) -> dict[Reading, Fit]:
    """Fit Theorem 2, with each reading of its ridge; the Lipschitz constant is the upper bound of the outcome."""
    features, at = table.features, table.profile_features[:QUERIES]
    kernel = Kernel(features.shape[1])
    learner = networks(meta_learner, kernel)
    with quiet():
        learner.fit(features, table.arms, table.outcomes)
    lipschitz, n = table.data.schema("record").outcome_bounds[1], table.data.n
    ridges = {"mean": (1.0, 1.0), "sum": (1 / n, 1 / n), "mixed": (1 / n, 1.0)}
    values, vectors = np.linalg.eigh(kernel.between(at, at))
    factor = vectors * np.sqrt(np.maximum(values, 0))
    once = 4 * lipschitz * math.sqrt(2 * math.log(2 / DELTA)) / n
    return {
        reading: Fit(kernel.effects(at, ridges[reading][0]), once / ridges[reading][1], factor) for reading in READINGS
    }


def anonymised(features: Vector, k: int) -> Vector:
    """Return k-anonymous covariates (Mondrian): cut at the median of the widest covariate while k are left either side.

    Units of a class get the class's means. Outcome and treatment stay as they are. This is no differential privacy.
    """
    result = features.copy()
    waiting = [np.arange(len(features))]
    while waiting:
        own = waiting.pop()
        widest = int(np.argmax(np.ptp(features[own], axis=0)))
        cells = features[own, widest]
        left = cells <= np.median(cells)
        if min(left.sum(), (~left).sum()) >= k:
            waiting += [own[left], own[~left]]
        else:
            result[own] = features[own].mean(axis=0)
    return result


def k_anonymous(table: Table, k: int) -> Vector:
    """Return the effects of the paper's R-learner with a forest, learned from k-anonymous data."""
    learner = networks("R", SECOND_STAGES["forest"]())
    with quiet():
        learner.fit(anonymised(table.features, k), table.arms, table.outcomes)
        return learner.effect(table.profile_features[:QUERIES])
