"""No unit moves the sums of any query beyond the bound that is computed from its description, and none is loose."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self, get_args

import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.guarantee import exact
from dpcausal.queries import QUERIES, ArmMoments, Norm, seen_by
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.cases import Domain, domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import Clip, Lookup, Ticks
from dpcausal.sums.sensitivity import sensitivity_bound
from dpcausal.sums.weights import best_weights, drawn_moves
from tests.sums.neighbours import Case, furthest
from tests.support.slow import sampled

COVARIATES: list[Column] = [dpc.Binary("x"), dpc.Real("age", 20, 60), dpc.Category("ward", ["a", "b", "c"])]
SCHEMAS = {
    "all compared": dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 20, missing=10),
        covariates=COVARIATES,
        entry="ward",
    ),
    "may leave": dpc.Schema(
        treatment=dpc.Treatment("t", arms=("none", "low", "high"), compare="high"),
        outcome=dpc.Real("y", 0, 20),
        covariates=COVARIATES,
        entry="ward",
    ),
}
SUMMING = [name for name, kind in QUERIES.items() if issubclass(kind, SummingQuery)]
CASES = list(itertools.product(SUMMING, SCHEMAS, get_args(Protects)))

ATTAINED = 0.97
LOOSE = {
    # Weights, predictions and covariates that they are made of are never at their ends together.
    "augmented_scores": 0.63,
    "custom_sums": 0.83,
    "weighted_arms": 0.83,
    "weighted_counts": 0.88,
    "weighted_covariates": 0.61,
}
"""What share of its bound a query's sums are moved by, where that is less than usual."""


def examples(name: str, schema: Schema) -> Iterator[tuple[SummingQuery, Schema]]:
    """Yield the examples of a query with the schema as each sees it."""
    for query in QUERIES[name].examples(schema):
        assert isinstance(query, SummingQuery)
        try:
            yield query, seen_by(query, schema)
        except QueryError:  # none of this schema
            continue


@pytest.mark.parametrize(("name", "schema", "protects"), sampled(CASES, every=3))
def test_no_neighbour_moves_sums_beyond_the_bound_and_some_reach_it(name: str, schema: str, protects: Protects) -> None:
    for query, seen in examples(name, replace(SCHEMAS[schema], protects=protects)):
        bounded = seen.bounded_as(protects)
        domain = domain_of(seen, bounded)
        for norm in get_args(Norm):
            described = query.sums(seen, bounded, norm)
            most = sum(
                (furthest(Case(each, domain, norm), seed=1, units=40, steps=4) for each in described), Fraction(0)
            )
            power, bound = {"l1": 1, "l2": 2}[norm], query.sensitivity(seen, bounded, norm).bound
            assert most <= bound**power, query
            if domain.leaves or any(domain.changes.intersection(each.columns) for each in described):
                assert most >= (bound * Fraction(LOOSE.get(name, ATTAINED))) ** power, query
            else:
                assert (most, bound) == (Fraction(0), Fraction(1)), (
                    query
                )  # nothing that is read is protected; it gets noise


def weighed_anew(description: Sums, domain: Domain, norm: Norm, target: int) -> Sums:
    """Return a description with the weights that suit an estimate which hangs on one of its sums."""
    names = (*description.numbers, *description.whole)
    variances = [
        float(place == target % len(names)) / description.weights[name] ** 2 for place, name in enumerate(names)
    ]
    chosen = best_weights(drawn_moves(description, domain, norm), list(map(float, variances)), norm)
    return replace(description, weights={name: exact(float(f"{w:.2g}")) for name, w in zip(names, chosen, strict=True)})


@pytest.mark.parametrize("name", sampled(SUMMING, every=3))
def test_no_neighbour_moves_sums_beyond_the_bound_whatever_weights_are_chosen(name: str) -> None:
    query, seen = next(examples(name, SCHEMAS["may leave"]))
    domain = domain_of(seen, "record")
    for norm in get_args(Norm):
        description = query.sums(seen, "record", norm)[0]
        for target in range(min(len(description.weights), 2)):
            weighed = weighed_anew(description, domain, norm, target)
            bound = sensitivity_bound(weighed, domain, norm).bound
            most = furthest(Case(weighed, domain, norm), seed=1, units=40, steps=4)
            assert most <= bound ** {"l1": 1, "l2": 2}[norm]


def test_the_bound_of_other_weights_would_not_hold() -> None:
    """A mutant that forgets to compute the bound again, for the weights that were chosen, is seen."""
    domain = domain_of(SCHEMAS["may leave"], "record")
    (description,) = ArmMoments().sums(SCHEMAS["may leave"], "record", "l1")
    weighed = weighed_anew(description, domain, "l1", target=0)
    smaller = replace(weighed, weights={name: weight / 4 for name, weight in weighed.weights.items()})
    for each, holds in ((weighed, True), (smaller, False)):
        most = furthest(Case(each, domain, "l1"), seed=1, units=40, steps=4)
        assert (most <= sensitivity_bound(weighed, domain, "l1").bound) is holds
        assert most <= sensitivity_bound(each, domain, "l1").bound


def test_a_long_table_over_everyone_is_refused_before_anything_is_paid() -> None:
    """A kernel reads who is compared only; added up there, a unit that leaves would move sums unseen by the bound."""

    @dataclass(frozen=True)
    class Scored(SummingQuery):
        name: ClassVar[str] = "scored"
        everyone: bool

        @classmethod
        def examples(cls, schema: Schema) -> tuple[Self, ...]:  # noqa: ARG003
            return (cls(everyone=False),)

        def sums(self, schema: Schema, protects: Protects, norm: Norm) -> tuple[Sums, ...]:  # noqa: ARG002
            table = Lookup(Clip(Ticks("outcome"), 0, 9_000), tuple(at * at % 97 for at in range(9_001)))
            return (Sums({}, {"scores": table}, weights={"scores": Fraction(1)}, everyone=self.everyone),)

    schema = SCHEMAS["may leave"]
    assert Scored(everyone=False).sensitivity(schema, "record", "l1").bound == 96
    with pytest.raises(QueryError, match="outside the comparison"):
        Scored(everyone=True).sensitivity(schema, "record", "l1")
