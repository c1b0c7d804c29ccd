"""Queries as they are read from the wire, and what each can say of itself."""

import contextlib
import inspect
import itertools
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import dpcausal as dpc
from dpcausal import queries
from dpcausal.errors import QueryError
from dpcausal.queries import QUERIES, Query
from dpcausal.testing import standard_schema

if TYPE_CHECKING:
    from dpcausal.schema.columns import Column

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 20),
    covariates=[dpc.Binary("x"), dpc.Real("age", 20, 60), dpc.Category("ward", ["a", "b", "c"])],
    entry="ward",
)
COMPLETE = replace(SCHEMA, outcome=replace(SCHEMA.outcome, missing=0))
EXAMPLES: list[Query] = [example for query in QUERIES.values() for example in query.examples(SCHEMA)]


AUGMENTED: dict[str, object] = {
    "query": "augmented_scores",
    "covariates": ["x"],
    "propensity": [0, 0],
    "control": [0, 0],
    "treated": [0, 0],
    "estimand": "ATE",
    "clip": 0.1,
    "limit": 5,
}


@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.name)
def test_query_is_the_same_after_a_round_trip(query: Query) -> None:
    assert queries.from_dict(json.loads(json.dumps(queries.to_dict(query)))) == query


def test_every_method_is_documented_by_a_query_or_its_protocol() -> None:
    for kind in QUERIES.values():
        public = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
        assert [name for name in public if not inspect.getdoc(getattr(kind, name))] == []


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_has_examples_for_any_schema(name: str) -> None:
    covariates = [*SCHEMA.covariates, dpc.Real("height", 1, 2)]
    schemas = [
        dpc.Schema(treatment=SCHEMA.treatment, outcome=outcome, covariates=chosen, entry=entry)
        for outcome in (dpc.Real("score", 0, 10, missing=5), dpc.Binary("sick", missing=0))
        for size in range(len(covariates) + 1)
        for chosen in itertools.combinations(reversed(covariates), size)
        for entry in ((None, "ward", "age") if chosen == (*reversed(covariates),) else (None,))
    ]
    for schema in (*schemas, standard_schema("outcome")):
        for query in QUERIES[name].examples(schema):
            assert query.name == name
            assert query.sensitivity(schema, "outcome", "l1").coordinates
    assert QUERIES[name].examples(SCHEMA)


@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.name)
def test_every_number_of_an_answer_has_an_expected_value(query: Query) -> None:
    schema = replace(SCHEMA if query.counts_missing else COMPLETE, protects="outcome")
    rehearsal = dpc.Rehearsal(schema, n=1_000, treated_share=0.3, outcome_mean=4.0)
    delta = 0.0 if query.noise == "laplace" else 1e-6
    release = rehearsal.release(query, dpc.Guarantee(epsilon=1.0, delta=delta, protects="outcome"))
    seen = queries.seen_by(query, schema)
    assert set(release.names) >= {each.name for each in query.sensitivity(seen, "outcome", "l1").coordinates}
    assert set(release.public_values) == set(query.public_values)
    assert all(map(math.isfinite, (*release.values, *release.public_values.values())))


@pytest.mark.parametrize("document", [{}, {"query": "everything"}, {"query": None}])
def test_unlisted_query_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        queries.from_dict(document)


def test_query_with_a_foreign_parameter_is_refused() -> None:
    with pytest.raises(QueryError):
        queries.from_dict({"query": "arm_totals", "sensitivity": 0})


@pytest.mark.parametrize("hostile", [float("nan"), float("inf"), "1", None, -1, 10**400])
def test_hostile_number_is_refused(hostile: object) -> None:
    """Whatever stands in place of a number, the query is refused before anything is asked."""
    documents = [
        {"query": "output_perturbed_logistic", "covariates": ["x"], "penalty": hostile},
        {
            "query": "weighted_arms",
            "covariates": ["x"],
            "coefficients": [0, 0],
            "estimand": "ATE",
            "clip": hostile,
            "shrink": 0,
        },
        {
            "query": "weighted_arms",
            "covariates": ["x"],
            "coefficients": [0, 0],
            "estimand": "ATE",
            "clip": 0.1,
            "shrink": hostile,
        },
        {"query": "matched_contrast", "covariates": ["x"], "neighbours": 5, "limit": None, "error": hostile},
        {"query": "regression_moments", "covariates": ["x"], "interaction": hostile},
        AUGMENTED | {"clip": hostile},
        AUGMENTED | {"limit": hostile},
    ]
    for document in documents:
        with pytest.raises(QueryError):
            queries.from_dict(document)
    coefficients: list[dict[str, object]] = [
        {
            "query": "weighted_arms",
            "covariates": ["x"],
            "coefficients": [0, hostile],
            "estimand": "ATE",
            "clip": 0.1,
            "shrink": 0,
        },
        *(AUGMENTED | {model: [0, hostile]} for model in ("propensity", "control", "treated")),
    ]
    for document in coefficients if hostile != -1 else []:
        with pytest.raises(QueryError):
            queries.from_dict(document)


@pytest.mark.parametrize("kind", [queries.CovariateMoments, queries.CovariateSums, queries.RegressionMoments])
def test_covariates_with_too_many_features_or_one_name_for_two_are_refused(
    kind: type[queries.CovariateMoments | queries.CovariateSums | queries.RegressionMoments],
) -> None:
    many, ward = dpc.Category("many", list(range(300))), dpc.Category("ward", ["a", "b", "c"])
    cases: dict[str, list[Column]] = {"at most 200": [many], "name of its own": [ward, dpc.Real("ward=b", 0, 1)]}
    for wrong, covariates in cases.items():
        schema = replace(SCHEMA, covariates=covariates, entry=None)
        with pytest.raises(QueryError, match=wrong):
            kind([each.name for each in covariates]).sensitivity(schema, "record", "l1")


def test_unlisted_estimand_is_refused() -> None:
    others: list[object] = ["ATC", "ate", None, []]
    for estimand in others:
        with pytest.raises(QueryError):
            queries.from_dict(AUGMENTED | {"estimand": estimand})


HOSTILE: list[object] = [float("nan"), float("inf"), "1", "", None, -1, 10**400, True]
HOSTILE += [[], [[]], {}, [None], {"kind": "cells"}, [[1, [2]]]]


@pytest.mark.parametrize("query", EXAMPLES, ids=lambda query: query.name)
def test_hostile_parameter_raises_nothing_but_a_query_error(query: Query) -> None:
    """It is refused when it is read or when it is priced; both come before the debit."""
    document = queries.to_dict(query)
    for part in document:
        for hostile in HOSTILE:
            with contextlib.suppress(QueryError):
                asked = queries.from_dict(document | {part: hostile})
                asked.sensitivity(SCHEMA, "record", "l1")
                asked.reads(SCHEMA)
                json.dumps(queries.to_dict(asked), allow_nan=False)


def test_regressions_on_too_many_features_or_on_the_treatment_received_are_refused() -> None:
    schema = replace(SCHEMA, covariates=[dpc.Category("ward", list(range(40)))], entry=None)
    with pytest.raises(QueryError, match="at most 30 features"):
        queries.ArmRegressionMoments(["ward"]).sensitivity(schema, "record", "l1")
    with pytest.raises(QueryError, match="without the treatment received"):
        queries.InstrumentMoments("x", ["age", "x"])
