import contextlib
import json

import pytest

import dpcausal as dpc
from dpcausal import queries
from dpcausal.errors import QueryError
from dpcausal.queries import (
    QUERIES,
    ArmMoments,
    ArmTotals,
    AugmentedScores,
    BlockEffects,
    Cells,
    CovariateSums,
    Cut,
    EffectMoments,
    EffectWeights,
    Fourier,
    InfluenceEffects,
    MatchedContrast,
    NoisyMatchedContrast,
    ObjectivePerturbedLogistic,
    OutcomesBelow,
    OutputPerturbedLogistic,
    Query,
    RegressionMoments,
    ScoreCounts,
    Spline,
    StratumContrasts,
    StratumCounts,
    StratumMatches,
    SubgroupMoments,
    WeightedArms,
    WeightedCovariates,
)

TRIED: list[Query] = [
    ArmTotals(),
    ArmMoments(),
    StratumContrasts([Cut("x"), Cut("age", [30, 40.5])], 3),
    StratumMatches([Cut("x")], "smooth"),
    OutputPerturbedLogistic(["x"], 10.0),
    ObjectivePerturbedLogistic(["x", "age"]),
    WeightedArms(["x"], [0.5, -1.25], "ATT", 0.1, 0.01),
    RegressionMoments(["x", "age"], interaction=False),
    AugmentedScores(["x"], [0.5, -1.25], [0.1, 0.2], [-0.3, 1e9], "ATO", 0.1, 5.0),
    MatchedContrast(["x"], 5, None, 0.01),
    NoisyMatchedContrast(["x"], [0.5, -1.25], 5, 2, 0.001, [0.1, 0.7, 0.2]),
    OutcomesBelow(12.5),
    SubgroupMoments(Cells([Cut("x"), Cut("age", [30, 40.5])])),
    EffectMoments(["x"], [0.5, -1.25], [0.1, 0.2], [-0.3, 1e9], Spline(["age"], 3), "residual", 0.1, 1.0),
    EffectWeights(["x"], [0.5, -1.25], [0.1, 0.2], [-0.3, 1e9], Fourier(["age"], 2.0, 7, 1), 0.1, 0.25, 30.0),
    BlockEffects("forest", ["x", "age"], [[1, 30.0], [0, 40.5]], 20, 0.5),
    InfluenceEffects("forest", ["x"], [[1], [0]], 0.05),
    StratumCounts(Cells([Cut("x"), Cut("age", [30, 40.5])])),
    ScoreCounts(["x"], [0.5, -1.25], [0.1, 0.5, 0.9]),
    CovariateSums(["x", "age"]),
    WeightedCovariates(["age"], ["x"], [0.5, -1.25], "ATC", 0.1),
]


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


@pytest.mark.parametrize("query", TRIED, ids=lambda query: query.name)
def test_queries_survive_the_wire(query: Query) -> None:
    assert queries.from_dict(json.loads(json.dumps(queries.to_dict(query)))) == query


def test_every_query_is_tried_here() -> None:
    assert set(QUERIES) == {query.name for query in TRIED}


@pytest.mark.parametrize("document", [{}, {"query": "everything"}, {"query": None}])
def test_only_listed_queries_exist(document: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        queries.from_dict(document)


def test_a_listed_query_with_foreign_parameters_is_refused() -> None:
    with pytest.raises(QueryError):
        queries.from_dict({"query": "arm_totals", "sensitivity": 0})


@pytest.mark.parametrize("hostile", [float("nan"), float("inf"), "1", None, -1, 10**400])
def test_no_parameter_from_the_wire_gets_far(hostile: object) -> None:
    """Whatever a number's place holds, the answer is the same refusal, before anything is asked."""
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
        {"query": "outcomes_below", "threshold": hostile},
    ]
    for document in coefficients if hostile != -1 else []:
        with pytest.raises(QueryError):
            queries.from_dict(document)


def test_no_estimand_but_the_listed_ones() -> None:
    others: list[object] = ["ATC", "ate", None, []]
    for estimand in others:
        with pytest.raises(QueryError):
            queries.from_dict(AUGMENTED | {"estimand": estimand})


HOSTILE: list[object] = [float("nan"), float("inf"), "1", "", None, -1, 10**400, True]
HOSTILE += [[], [[]], {}, [None], {"kind": "cells"}, [[1, [2]]]]


@pytest.mark.parametrize("query", TRIED, ids=lambda query: query.name)
def test_whatever_a_parameter_holds_nothing_but_a_refusal_comes_of_it(query: Query) -> None:
    """It is refused when it is read, or when its price is asked for; both come before the debit."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 20),
        covariates=[dpc.Binary("x"), dpc.Real("age", 20, 60)],
    )
    document = queries.to_dict(query)
    for part in document:
        for hostile in HOSTILE:
            with contextlib.suppress(QueryError):
                asked = queries.from_dict(document | {part: hostile})
                asked.sensitivity(schema, "record", "l1")
                asked.reads(schema)
                json.dumps(queries.to_dict(asked), allow_nan=False)
