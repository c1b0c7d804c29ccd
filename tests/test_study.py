import re
from dataclasses import replace
from typing import Any

import pytest

from dpcausal import (
    Cut,
    DifferenceInMeans,
    DoublyRobust,
    ExactMatching,
    InverseWeighting,
    PropensityMatching,
    RegressionAdjustment,
    Schema,
    Stratification,
    Study,
)
from dpcausal.errors import DpcausalError, StudyError
from dpcausal.estimators.average import ESTIMATORS
from dpcausal.testing import standard_schema

STUDY = Study(
    name="scores",
    question="Does treatment raise the score?",
    asker="anna",
    schema=standard_schema(),
    estimator=DifferenceInMeans(),
    epsilon=1.0,
    pooling="minimum_variance",
)

TRIED: dict[str, Any] = {
    "difference_in_means": DifferenceInMeans(with_interval=False),
    "stratification": Stratification(by=("ward", Cut("age", [40, 65])), cap=2),
    "exact_matching": ExactMatching(by=("ward",)),
    "propensity_matching": PropensityMatching(of=("age",), protects="outcome"),
    "inverse_weighting": InverseWeighting(of=("age", "smoker")),
    "regression_adjustment": RegressionAdjustment(of=("age",), interaction=False),
    "doubly_robust": DoublyRobust(of=("age",), estimand="ATT"),
}


def test_every_estimator_is_tried() -> None:
    assert set(TRIED) == set(ESTIMATORS)


@pytest.mark.parametrize("name", TRIED)
def test_a_study_survives_its_file(name: str) -> None:
    schema = standard_schema("outcome" if name == "propensity_matching" else "record")
    study = replace(STUDY, estimator=TRIED[name], schema=schema, delta=1e-6, epsilons={"north": 0.5})
    study = replace(study, design="trial", eligibility="adults", confounders={"age": "older"}, bounds={"by": "Bob"})
    study = replace(study, requires={"overlap": {"epsilon": 0.1, "by": ["ward"]}})
    text = study.to_toml()
    assert Study.from_toml(text) == study
    assert Study.from_toml(text).to_toml() == text
    assert f'name = "{name}"' in text


def test_a_study_knows_what_it_asks_and_costs() -> None:
    study = replace(STUDY, epsilons={"north": 0.5}, estimator=DoublyRobust(of=["age"]))
    assert [query.name for query, _ in study.questions()] == [
        "objective_perturbed_logistic",
        "regression_moments",
        "augmented_scores",
    ]
    assert sum(guarantee.epsilon for _, guarantee in study.questions(site="north")) == pytest.approx(0.5)
    assert study.rehearsed(1_000).rehearsed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "a text as name"),
        ({"question": 3}, "a text as question"),
        ({"eligibility": 3}, "a text as eligibility"),
        ({"name": "scores\npolicy  allows all of this"}, "texts of one line"),
        ({"question": "hidden \x1b[8m"}, "texts of one line"),
        ({"confounders": {"age": "\u202e"}}, "texts of one line"),
        ({"design": "cohort"}, "trial or observational"),
        ({"confounders": {"height": "tall people"}}, "texts for ward, age, smoker"),
        ({"confounders": {"Age": "old"}}, "Hint: 'Age' is none of these; did you mean 'age'? write a table"),
        ({"confounders": {"height": "old"}}, "Hint: 'height' is none of these; write a table"),
        ({"estimator": RegressionAdjustment(of=["age", "Smoker"])}, "Hint: did you mean 'smoker'? declare"),
        ({"confounders": {"age": 3}}, "texts for ward, age, smoker"),
        ({"bounds": {"who": "me"}}, "texts for by, on, source"),
        ({"requires": {"luck": {"epsilon": 1.0}}}, "overlap or balance, each with an epsilon"),
        ({"requires": {"overlap": {"by": ["ward"]}}}, "overlap or balance, each with an epsilon"),
        ({"requires": {"overlap": {"epsilon": 1.0, "of": ["height"]}}}, "height"),
        ({"requires": {"balance": {"epsilon": 1.0, "off": ["age"]}}}, "parameters of balance out of of"),
        ({"pooling": "best"}, "a pooling out of sums, minimum_variance"),
        ({"estimator": "difference_in_means"}, "an estimator out of difference_in_means"),
        ({"epsilons": {"north": "much"}}, "numbers for epsilon"),
        ({"epsilons": ["north"]}, "epsilons by the names of sites"),
        ({"epsilon": -1.0}, "epsilon from 1e-6"),
        ({"pooling": "sums", "epsilons": {"north": 0.5}}, "at the same epsilon everywhere"),
        ({"pooling": "sums", "estimator": DoublyRobust(of=["age"])}, "one question whose answers add up"),
        ({"pooling": "sums", "estimator": ExactMatching(by=["ward"])}, "one question whose answers add up"),
        ({"estimator": RegressionAdjustment(of=["height"])}, "height"),
    ],
)
def test_a_study_that_contradicts_itself(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DpcausalError, match=re.escape(words)):
        replace(STUDY, **changes)


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ('asker = "anna"', "asker =", "a TOML document"),
        ('asker = "anna"', 'askers = "anna"', "study with name"),
        ('name = "difference_in_means"', 'name = "means"', "a name out of difference_in_means"),
        ('name = "difference_in_means"', 'name = "DoublyRobust"', "Hint: did you mean 'doubly_robust'? write"),
        ('name = "difference_in_means"', 'name = "zzz"', "Hint: write for instance [estimator]"),
        ("with_interval = true", "with_intervals = true", "parameters of difference_in_means out of with_interval"),
    ],
)
def test_a_file_that_is_no_study(was: str, becomes: str, words: str) -> None:
    text = STUDY.to_toml()
    assert was in text
    with pytest.raises(DpcausalError, match=re.escape(words)):
        Study.from_toml(text.replace(was, becomes))


def test_a_schema_of_another_kind() -> None:
    with pytest.raises(StudyError, match="a Schema"):
        replace(STUDY, schema="the schema")  # type: ignore[arg-type]
    assert isinstance(STUDY.schema, Schema)
