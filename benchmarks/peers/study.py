"""What every estimator in this package is given, and what it gives back."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

CLIP = 0.1
"""Propensities count as at least this and at most one minus this, for all who need such a bound."""
NORMAL = 1.959964
"""The quantile of a 95 % interval."""


@dataclass(frozen=True)
class Study:
    """A table with its public bounds already applied.

    Attributes:
        arms: 0 or 1 for each unit.
        features: A row for each unit, every entry within -1 and 1, without a column of ones.
        outcomes: An outcome for each unit, within `low` and `high`.
        low: The least that an outcome can be, known to the public.
        high: The most that an outcome can be, known to the public.
    """

    arms: Int64s
    features: Floats
    outcomes: Floats
    low: float
    high: float

    @property
    def n(self) -> int:
        """The number of units, which is public."""
        return len(self.arms)

    @property
    def width(self) -> float:
        """The public range of outcomes."""
        return self.high - self.low

    @property
    def signs(self) -> Floats:
        """1 for treated units, -1 for control units."""
        return np.where(self.arms == 1, 1.0, -1.0)

    @property
    def centred(self) -> Floats:
        """Outcomes from the middle of their public range."""
        return self.outcomes - (self.low + self.high) / 2

    @property
    def design(self) -> Floats:
        """The features with a column of ones before them."""
        return np.column_stack([np.ones(self.n), self.features])

    def taken(self, order: Int64s) -> "Study":
        """Return these units, in this order."""
        return replace(self, arms=self.arms[order], features=self.features[order], outcomes=self.outcomes[order])


@dataclass(frozen=True)
class Answer:
    """An estimate of the average treatment effect.

    Attributes:
        estimate: The estimate.
        low: The lower end of a 95 % interval, where the authors give one.
        high: Its upper end.
    """

    estimate: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def normal(cls, estimate: float, variance: float, n: int, sd: float) -> "Answer":
        """Return an estimate with the interval for n terms of this variance and noise of this standard deviation."""
        half = NORMAL * math.sqrt(max(variance, 0) / n + sd**2)
        return cls(estimate, estimate - half, estimate + half)


@dataclass(frozen=True)
class Peer:
    """An estimator of other authors.

    Attributes:
        label: What to call it.
        private: Whether one unit's whole record is protected as promised, when it is replaced by any other.
        estimate: The estimator, asked with a study, epsilon, delta and a generator of random numbers.
    """

    label: str
    private: bool
    estimate: Callable[[Study, float, float, Generator], Answer]
