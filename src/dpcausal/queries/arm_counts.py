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
from dpcausal.queries.cuts import double_cut, single_cut
from dpcausal.queries.features import (
    check_coefficients,
    clipped_coefficients,
    name_tuple,
    single_feature,
)
from dpcausal.queries.query import Norm
from dpcausal.queries.scores import EXPONENTS, looked_up, predictor
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Number
from dpcausal.validation import is_number

MOST_EDGES = 100


def _counts(cells: Mapping[Number, int], bins: Sequence[str]) -> Sums:
    """Return the number of units in each arm of each bin."""
    labels = tuple(f"_{arm} of {name}" for name in bins for arm in (0, 1))
    return Sums({**cells, TREATMENT: 2}, {"size": ONE}, weights={"size": Fraction(1)}, labels=labels)


@dataclass(frozen=True)
class StratumCounts(SummingQuery):
    """The number of units in each arm of each stratum of a public partition.

    Attributes:
        cells: The strata.
    """

    name: ClassVar[str] = "stratum_counts"

    cells: Cells

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", basis_of(self.cells))
        if not isinstance(self.cells, Cells):
            raise QueryError(expected="Cells", got=type(self.cells).__name__, hint='write Cells([Cut("ward")]).')

    def bins(self, schema: Schema) -> tuple[str, ...]:
        """Return the name of each stratum."""
        return self.cells.names(schema)

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        return (_counts(strata(self.cells.by, schema), self.bins(schema)),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(Cells(by)) for by in (*single_cut(schema), *double_cut(schema)))


@dataclass(frozen=True)
class ScoreCounts(SummingQuery):
    """The number of units in each arm of each bin of a propensity score that is public already.

    Attributes:
        covariates: The covariates of the score.
        coefficients: The score's coefficients, in the order of `feature_names`, as a logistic query released them.
        edges: Where one bin of the score ends and the next begins, in rising order. An edge belongs to the bin above.
    """

    name: ClassVar[str] = "score_counts"

    covariates: Sequence[str]
    coefficients: Sequence[float]
    edges: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))
        object.__setattr__(self, "coefficients", clipped_coefficients(self.coefficients))
        numbers = all(map(is_number, self.edges)) and 1 <= len(self.edges) <= MOST_EDGES
        if not (numbers and all(low < high for low, high in itertools.pairwise((0.0, *self.edges, 1.0)))):
            raise QueryError(
                expected=f"1 to {MOST_EDGES} rising edges of the score between 0 and 1",
                got=repr(self.edges)[:100],
                hint="write for instance [0.1, 0.3, 0.5, 0.7, 0.9].",
            )
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

    def bins(self) -> tuple[str, ...]:
        """Return the name of each bin."""
        edges = [f"{edge:.12g}" for edge in self.edges]
        inner = (f"{low} ≤ score < {high}" for low, high in itertools.pairwise(edges))
        return f"score < {edges[0]}", *inner, f"score ≥ {edges[-1]}"

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
        """Return the answer as data."""
        check_coefficients(self.coefficients, self.covariates, schema)
        table = np.searchsorted(self.edges, 1 / (1 + np.exp(-EXPONENTS)), side="right")
        place = looked_up(table, predictor(self.coefficients, self.covariates, schema))
        return (_counts({place: len(self.edges) + 1}, self.bins()),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        """Return queries of this kind that the schema allows."""
        return tuple(cls(covariates, [0.0, 20.0], [0.1, 0.9]) for covariates in single_feature(schema))
