"""Queries that are sums over units: described as data, from which everything else follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.queries.features import name_tuple, numbers_among, one_and_all, summed_features
from dpcausal.queries.query import Coordinate, Norm, Query, Sensitivity
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.cases import domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.printing import is_printable
from dpcausal.sums.sensitivity import sensitivity_bound, together


class SummingQuery(Query):
    """A query whose answer is sums over units of bounded whole numbers.

    A query says what it adds up (`sums`, with weights) and what a tick of each sum is worth (`ticks`). Its coordinates
    are the sums in the order of the description; how far one unit can move them is computed from it, and the vault adds
    them up as it says. Proof, for all such queries: docs/proofs/sums.md.
    """

    adds_up: ClassVar[bool] = True

    def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
        """Return the answer as data, each sum with its weight; several where their cells differ.

        The schema is as the query sees it (`seen_by`).
        """
        raise NotImplementedError

    def ticks(self, schema: Schema) -> Mapping[str, float]:
        """Return the size of one tick of each sum that is not a count, by its name in the description."""
        return {}

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the answer's coordinates and how far one unit can move them."""
        return _sensitivity(self, schema, protects, norm)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """Return the columns that the answer depends on: who is compared, covariates in their order, the outcome."""
        found = described(self, schema, schema.protects, "l1")
        names = {name for each in found for name in each.columns}
        if not all(each.everyone for each in found):
            names.add("treatment")
        columns: dict[str, TableColumn] = {"treatment": schema.treatment, "arm": schema.treatment.every_arm}
        columns |= {f"covariate_{at}": column for at, column in enumerate(schema.covariates)}
        return tuple(column for name, column in (columns | {"outcome": schema.outcome}).items() if name in names)


@dataclass(frozen=True)
class CovariateQuery(SummingQuery):
    """The base of queries about some covariates, which come first among its parameters."""

    covariates: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))


@dataclass(frozen=True)
class CovariateSumsQuery(CovariateQuery):
    """The base of queries for sums of covariates themselves."""

    def features(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the features that are summed."""
        return summed_features(self.covariates, schema)

    def numbers(self, schema: Schema) -> tuple[str, ...]:
        """Return those features that are numbers, whose squares have a deficit."""
        return numbers_among(self.covariates, schema)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        return tuple(map(cls, one_and_all(schema)))


@lru_cache(256)
def described(query: SummingQuery, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:
    """Return a query's sums, made once for its price, its bound and its answer."""
    return query.sums(schema, protects, norm)


@lru_cache(1_000)
def _sensitivity(query: SummingQuery, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
    found, ticks = described(query, schema, protects, norm), query.ticks(schema)
    for sums in found:
        _check_added(sums)
    coordinates = tuple(
        Coordinate(name, ticks.get(key, 1.0), sums.weights[key]) for sums in found for name, key in sums.keys.items()
    )
    domain = domain_of(schema, protects)
    bounds = [sensitivity_bound(sums, domain, norm).bound for sums in found]
    bound = bounds[0] if len(bounds) == 1 else together(bounds, norm)
    # Where nothing that is read is protected any noise would do; every number that leaves has some.
    return Sensitivity(norm, coordinates, bound or Fraction(1))


def _check_added(sums: Sums) -> None:
    """Raise where engines cannot add up what the bound is of: they run kernels over units in the comparison only."""
    if sums.everyone and not is_printable(*sums.cells, *sums.numbers.values(), *sums.whole.values()):
        raise QueryError(
            expected="short tables of public functions in sums over units outside the comparison too",
            got="a table that is too long to be written as SQL",
            hint="add up units in the comparison only (everyone=False), or round what the function is of.",
        )


def by_norm(norm: Norm, l1: float, l2: float) -> Fraction:
    """Return a weight that depends on the norm."""
    return Fraction(l1 if norm == "l1" else l2)
