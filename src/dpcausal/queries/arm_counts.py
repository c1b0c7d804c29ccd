"""Numbers of units by arm, in strata or in bins of a public propensity score: overlap."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.queries.basis import Cells, basis_of
from dpcausal.queries.coerced import TREATMENT, strata
from dpcausal.queries.cuts import double_cut, rising_edges, single_cut
from dpcausal.queries.features import (
    single_feature,
)
from dpcausal.queries.query import Norm
from dpcausal.queries.scores import EXPONENTS, ScoredQuery, looked_up
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Number

MOST_EDGES = 100


def _counts(cells: Mapping[Number, int], bins: Sequence[str]) -> Sums:
    """Return the number of units in each arm of each bin."""
    labels = tuple(f"_{arm} of {name}" for name in bins for arm in (0, 1))
    return Sums({**cells, TREATMENT: 2}, {"size": ONE}, weights={"size": Fraction(1)}, labels=labels)


@dataclass(frozen=True)
class StratumCounts(SummingQuery):
    """The number of units in each arm of each stratum of a public partition."""

    name: ClassVar[str] = "stratum_counts"

    cells: Cells

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", basis_of(self.cells))
        if not isinstance(self.cells, Cells):
            raise QueryError(expected="Cells", got=type(self.cells).__name__, hint='write Cells([Cut("ward")]).')

    def bins(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each stratum."""
        return self.cells.names(schema)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        return (_counts(strata(self.cells.by, schema), self.bins(schema)),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(Cells(by)) for by in (*single_cut(schema), *double_cut(schema)))


@dataclass(frozen=True)
class ScoreCounts(ScoredQuery):
    """The number of units in each arm of each bin of a propensity score that is public already.

    Attributes:
        edges: Where one bin of the score ends and the next begins, in rising order. An edge belongs to the bin above.
    """

    name: ClassVar[str] = "score_counts"

    edges: Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        of, hint = "edges of the score between 0 and 1", "write for instance [0.1, 0.3, 0.5, 0.7, 0.9]."
        object.__setattr__(self, "edges", rising_edges(self.edges, MOST_EDGES, of, hint, (0.0, 1.0)))

    def bins(self) -> tuple[str, ...]:
        """Return the name of each bin."""
        edges = [f"{edge:.12g}" for edge in self.edges]
        inner = (f"{low} ≤ score < {high}" for low, high in itertools.pairwise(edges))
        return f"score < {edges[0]}", *inner, f"score ≥ {edges[-1]}"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        table = np.searchsorted(self.edges, 1 / (1 + np.exp(-EXPONENTS)), side="right")
        place = looked_up(table, self.exponent(schema))
        return (_counts({place: len(self.edges) + 1}, self.bins()),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(covariates, [0.0, 20.0], [0.1, 0.9]) for covariates in single_feature(schema))
