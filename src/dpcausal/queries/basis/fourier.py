"""Random Fourier features of all covariates together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError
from dpcausal.queries.basis.functions import LENGTH, MOST_FUNCTIONS, PLACES, check_integer, rounded
from dpcausal.queries.features import covariates_named, name_tuple
from dpcausal.queries.profiles import Codes, design_lines, even_points
from dpcausal.queries.query import GRID
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Int64s
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import is_number

_ANGLES = np.arange(PLACES) * (math.tau / PLACES)


@dataclass(frozen=True)
class Fourier(metaclass=Constructor):
    """A constant and random Fourier features, which approximate a Gaussian kernel (Rahimi and Recht 2007).

    Their frequencies are spread as the kernel's: quasi-random, and the same for everyone who gives the same seed.

    Attributes:
        width: The kernel's width in half ranges: effects of profiles this far apart have little to do with each other.
        n_features: How many features; each has two functions, a cosine and a sine.
        seed: Which features; public, and nothing private depends on it.
    """

    disjoint: ClassVar[bool] = False
    level: ClassVar[bool] = False

    covariates: Sequence[str]
    width: float = 1.0
    n_features: int = 25
    seed: int = 0
    kind: Literal["fourier"] = field(default="fourier", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        check_integer("n_features", self.n_features, 1, MOST_FUNCTIONS // 2 - 1)
        check_integer("seed", self.seed, 0, 10**6)
        if not (is_number(self.width) and 0.01 <= self.width <= 1000):
            raise QueryError(expected="a width from 0.01 to 1000 half ranges", got=repr(self.width), hint="1 is usual.")

    def reads(self, schema: Schema) -> tuple[Column, ...]:
        """Return the covariates of the functions."""
        return covariates_named(self.covariates, schema)

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each function."""
        return (
            "constant",
            *(f"{kind} {place}" for kind in ("cosine", "sine") for place in range(1, self.n_features + 1)),
        )

    def reach(self, schema: Schema) -> float:
        """Return the largest sum of the functions' sizes: the two of a feature are together at most the root of 2."""
        return (1 + math.sqrt(2) * self.n_features) / math.sqrt(1 + self.n_features)

    def ticks(self, codes: Codes, schema: Schema) -> Int64s:
        """Return the functions of some profiles in ticks of which LENGTH make 1, one line a function."""
        lines = np.array(design_lines(codes, self.reads(schema)), dtype=np.float64)
        share = LENGTH / math.sqrt(1 + self.n_features)
        # Whole numbers below 2^53, which floating point multiplies and adds up without error in any order.
        phases = np.floor(_frequencies(self, len(lines)) @ lines / GRID).astype(np.int64)
        places = phases & (PLACES - 1)  # what is left of whole turns
        cosine, sine = (rounded(each(_ANGLES), share) for each in (np.cos, np.sin))
        return np.vstack([np.full((1, lines.shape[1]), int(share)), cosine[places], sine[places]])


@cache
def _frequencies(basis: Fourier, dimensions: int) -> NDArray[np.float64]:
    """Return how many places each feature moves on as a number goes from the middle of its range to the end."""
    points = even_points(dimensions, basis.n_features, basis.seed * basis.n_features)
    normal = np.array([[NormalDist().inv_cdf(float(each)) for each in point] for point in points])
    frequencies: NDArray[np.float64] = np.rint(normal / basis.width / math.tau * PLACES)
    return frequencies
