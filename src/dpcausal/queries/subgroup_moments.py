"""Sums of the outcome and of its squares in each arm of each group of a public partition, and in each cluster."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.arm_moments import moment_ticks
from dpcausal.queries.basis import Cells, basis_of
from dpcausal.queries.coerced import OUTCOME, TREATMENT, covariate, strata
from dpcausal.queries.cuts import double_cut, single_cut
from dpcausal.queries.query import GRID, Norm, outcome_tick, plain_value, value_names
from dpcausal.queries.summing import SummingQuery, by_norm
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, Lookup, Number, deficit
from dpcausal.utils.validation import is_number

MOST_CLUSTERS = 2_000


def _moments(cells: Mapping[Number, int], labels: Sequence[str], norm: Norm) -> Sums:
    """Return three sums in each cell: a unit leaves one and joins another."""
    numbers = {"size": ONE, "total": OUTCOME, "deficit": deficit(OUTCOME)}
    # The deficit moves fully only where the total does not move at all: with these weights it never adds to it.
    weights = {"size": by_norm(norm, 2, 1), "total": Fraction(GRID), "deficit": by_norm(norm, 2 * GRID, GRID)}
    return Sums(cells, numbers, weights=weights, labels=labels)


class _CellMoments(SummingQuery):
    """The base of both queries."""

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        return moment_ticks(outcome_tick(schema))


@dataclass(frozen=True)
class SubgroupMoments(_CellMoments):
    """In each arm of each group: the number of units, the sum of their outcomes, and what their squares lack.

    Outcomes z are measured from the middle of their range, and h is half the range; the deficit is the sum of h² - z².
    One unit is in one arm of one group, so noise does not grow with the number of groups.
    """

    name: ClassVar[str] = "subgroup_moments"

    cells: Cells

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", basis_of(self.cells))
        if not isinstance(self.cells, Cells):
            raise QueryError(expected="Cells", got=type(self.cells).__name__, hint='write Cells([Cut("ward")]).')

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        labels = tuple(f"_{arm} of {group}" for group in self.cells.names(schema) for arm in (0, 1))
        return (_moments(strata(self.cells.by, schema) | {TREATMENT: 2}, labels, norm),)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(cls(Cells(by)) for by in (*single_cut(schema), *double_cut(schema)))


@dataclass(frozen=True)
class ClusterMoments(_CellMoments):
    """In each cluster of a cluster-randomised trial: the number of units, the sum of outcomes, and what squares lack.

    Which clusters are treated is public; a unit counts only where its own arm is that of its cluster. The sums are
    those of `SubgroupMoments`. One unit is in one cluster, so noise does not grow with their number.

    Attributes:
        cluster: The covariate that lists the clusters.
        icc: The expected intracluster correlation. It has no part in the answer, only in what is expected of it.
    """

    name: ClassVar[str] = "cluster_moments"

    cluster: str
    treated: Sequence[Value]
    icc: float = 0.05

    def __post_init__(self) -> None:
        listed = isinstance(self.treated, Sequence) and not isinstance(self.treated, str)
        plain = listed and all(isinstance(value, str | bool) or is_number(value) for value in self.treated)
        if not (plain and isinstance(self.cluster, str) and is_number(self.icc) and 0 <= self.icc < 1):
            raise QueryError(
                expected="a list of treated clusters, and an icc from 0 to below 1",
                got=f"treated={self.treated!r}, icc={self.icc!r}"[:200],
                hint='write for instance treated=["village 1", "village 4"], icc=0.05.',
            )
        object.__setattr__(self, "treated", tuple(self.treated))

    def clusters(self, schema: Schema) -> dict[str, int]:
        """Return the name of each cluster in the answer, with its arm."""
        column = self._column(schema)
        values = [plain_value(value) for value in column.values]
        treated = {plain_value(value) for value in self.treated}
        if not (treated < set(values) and treated and len(values) <= MOST_CLUSTERS):
            raise QueryError(
                expected=f"some of the values of {self.cluster!r} as treated clusters, and at most "
                f"{MOST_CLUSTERS:,} clusters",
                got=f"{len(values):,} clusters, treated={self.treated!r}"[:200],
                hint="list the clusters that were allocated to treatment; the others are controls.",
            )
        return {name: int(value in treated) for name, value in zip(value_names(column), values, strict=True)}

    def _column(self, schema: Schema) -> Binary | Category:
        column = next((each for each in schema.covariates if each.name == self.cluster), None)
        if not isinstance(column, Binary | Category):
            raise QueryError(
                problem=f"{self.cluster!r} must be a covariate with listed values, not "
                f"{column or 'a name that no covariate has'}",
                hint=f"declare Category({self.cluster!r}, [...]) with the public list of clusters.",
            )
        return column

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        clusters = self.clusters(schema)
        place = 2 * covariate(self.cluster, schema) + TREATMENT
        # A unit whose arm is not that of its cluster is in the place after the last.
        owned = [at if arm == own else len(clusters) for at, own in enumerate(clusters.values()) for arm in (0, 1)]
        cells: dict[Number, int] = {Lookup(place, tuple(owned)): len(clusters)}
        return (_moments(cells, tuple(f" of {name}" for name in clusters), norm),)

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return an expected answer without an effect: clusters of one size, whose means differ as icc and noise say.

        Noise is in the totals here, as Laplace noise, because an estimator sees how clusters differ through it.
        """
        low, high = expectations.schema.outcome_bounds
        half, mean, sd = (high - low) / 2, expectations.mean - (low + high) / 2, expectations.sd
        clusters = self.clusters(expectations.schema)
        noise = 2 * ((3 * half) ** 2 + (6 * mean) ** 2) / guarantee.epsilon**2
        sums: dict[str, float] = {}
        for arm, units in enumerate(expectations.expected_sizes):
            own = [name for name, its in clusters.items() if its == arm]
            size = units / len(own)
            apart = math.sqrt(size * sd**2 * (1 + max(size - 1, 0.0) * self.icc) + noise)
            for name, at in zip(own, _spread(len(own)), strict=True):
                sums[f"size of {name}"] = size
                sums[f"total of {name}"] = mean * size + apart * at
                sums[f"deficit of {name}"] = size * (half**2 - mean**2 - sd**2)
        return sums

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        listed = [each for each in schema.covariates if isinstance(each, Binary | Category) and len(each.values) > 1]
        return tuple(cls(each.name, each.values[1::2]) for each in listed[:1])


def _spread(count: int) -> list[float]:
    """Return numbers around 0 with a variance of 1: one above for each below."""
    if count == 1:
        return [0.0]
    even = count % 2 == 0
    size = math.sqrt((count - 1) / count) if even else 1.0
    return [size, -size] * (count // 2) + ([] if even else [0.0])
