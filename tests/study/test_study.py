import hashlib
import re
from dataclasses import replace
from typing import Any, Literal

import pytest

from dpcausal import (
    ClusterTrial,
    ComplierEffect,
    Cut,
    DifferenceInDifferences,
    DifferenceInMeans,
    DoublyRobust,
    ExactMatching,
    InverseWeighting,
    PropensityMatching,
    QuantileEffects,
    RegressionAdjustment,
    RegressionDiscontinuity,
    Schema,
    Stratification,
    Study,
    Survival,
)
from dpcausal.errors import DpcausalError, StudyError
from dpcausal.estimators.average import ESTIMATORS, estimator_for
from dpcausal.release import Receipt
from dpcausal.testing import standard_schema

STUDY = Study(
    name="scores",
    question="Does treatment raise the score?",
    requester="anna",
    schema=standard_schema(undeclared=0),
    estimator=DifferenceInMeans(),
    epsilon=1.0,
    pooling="minimum_variance",
)

LISTED = replace(STUDY.schema, covariates=[column for column in STUDY.schema.covariates if column.name != "age"])
TRIED: dict[str, Any] = {name: estimator_for(name, LISTED) for name in ESTIMATORS} | {
    "difference_in_means": DifferenceInMeans(with_interval=False),
    "stratification": Stratification(by=("ward", Cut("age", [40, 65])), cap=2),
    "exact_matching": ExactMatching(by=("ward",)),
    "propensity_matching": PropensityMatching(covariates=("age",)),
    "inverse_weighting": InverseWeighting(covariates=("age", "smoker")),
    "regression_adjustment": RegressionAdjustment(covariates=("age",), interaction=False),
    "doubly_robust": DoublyRobust(covariates=("age",), estimand="ATT"),
    "quantile_effects": QuantileEffects(quantiles=(0.25, 0.5), edges=(2.0, 5.0)),
    "cluster_trial": ClusterTrial(cluster="ward", treated=("b",), icc=0.02),
    "survival": Survival(
        event="smoker", grid=(2.5, 5.0, 10.0), by=("ward", Cut("age", [40, 65])), estimand="incidence"
    ),
    "complier_effect": ComplierEffect("smoker", covariates=("age",), interaction=False),
    "regression_discontinuity": RegressionDiscontinuity("age", cutoff=50.0, bandwidth=10.0, treated_below=True),
    "difference_in_differences": DifferenceInDifferences(before="age", change=(-50.0, -10.0)),
}


@pytest.mark.parametrize("name", TRIED)
def test_a_study_survives_its_file(name: str) -> None:
    schema = standard_schema("outcome" if name == "propensity_matching" else "record", undeclared=0)
    study = replace(STUDY, estimator=TRIED[name], schema=schema, delta=1e-6, epsilons={"north": 0.5})
    study = replace(study, design="trial", eligibility="adults", bounds={"by": "Bob"}, expected={"outcome_sd": 2.0})
    study = replace(study, confounders=dict.fromkeys(study.adjusts_for, "older"))
    study = replace(study, requires={"overlap": {"epsilon": 0.1, "by": ["ward"]}})
    text = study.to_toml()
    assert Study.from_toml(text) == study
    assert Study.from_toml(text).to_toml() == text
    assert f'name = "{name}"' in text


def test_a_study_knows_what_it_asks_and_costs() -> None:
    study = replace(STUDY, epsilons={"north": 0.5}, estimator=DoublyRobust(covariates=["age"]))
    assert [each.query.name for each in study.questions()] == [
        "covariate_counts",
        "bounded_influence_logistic",
        "regression_moments",
        "augmented_scores",
    ]
    assert sum(each.guarantee.epsilon for each in study.questions(site="north")) == pytest.approx(0.5)
    assert study.rehearsed(1_000).rehearsed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "name must be a text"),
        ({"question": 3}, "question must be a text"),
        ({"eligibility": 3}, "eligibility must be a text"),
        ({"name": "scores\npolicy  allows all of this"}, "single-line text"),
        ({"question": "hidden \x1b[8m"}, "single-line text"),
        ({"confounders": {"age": "\u202e"}}, "single-line text"),
        ({"design": "cohort"}, "trial or observational"),
        ({"confounders": {"height": "tall people"}}, "texts for ward, age, smoker"),
        ({"confounders": {"Age": "old"}}, "Hint: 'Age' is none of these; did you mean 'age'? Write a table"),
        ({"confounders": {"height": "old"}}, "Hint: 'height' is none of these; write a table"),
        ({"estimator": RegressionAdjustment(covariates=["age", "Smoker"])}, "Hint: did you mean 'smoker'? Name"),
        ({"confounders": {"age": 3}}, "texts for ward, age, smoker"),
        ({"bounds": {"who": "me"}}, "texts for by, on, source"),
        ({"requires": {"luck": {"epsilon": 1.0}}}, "overlap or balance, each with an epsilon"),
        ({"requires": {"overlap": {"by": ["ward"]}}}, "overlap or balance, each with an epsilon"),
        ({"requires": {"overlap": {"epsilon": 1.0, "covariates": ["height"]}}}, "height"),
        ({"requires": {"balance": {"epsilon": 1.0, "off": ["age"]}}}, "balance has no parameter 'off'"),
        ({"pooling": "best"}, "pooling must be one of sums, automatic, minimum_variance"),
        ({"estimator": "difference_in_means"}, "must be one of those for average effects"),
        ({"epsilons": {"north": "much"}}, "epsilon and delta must be numbers"),
        ({"epsilons": ["north"]}, "epsilons by the names of sites"),
        ({"epsilon": -1.0}, "epsilon must be from 1e-6"),
        ({"pooling": "sums", "epsilons": {"north": 0.5}}, "with the same epsilon everywhere"),
        ({"pooling": "sums", "estimator": DoublyRobust(covariates=["age"])}, "one query whose answers add up"),
        ({"pooling": "sums", "estimator": ExactMatching(by=["ward"])}, "one query whose answers add up"),
        ({"estimator": RegressionAdjustment(covariates=["height"])}, "height"),
    ],
)
def test_a_study_that_contradicts_itself(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DpcausalError, match=re.escape(words)):
        replace(STUDY, **changes)


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ('requester = "anna"', "requester =", "not a study in TOML"),
        ('requester = "anna"', 'requesters = "anna"', "The study has no part named 'requesters'; its parts are name"),
        ("version = 2\n", "", "a study with version = 2, not no version"),
        ("version = 2\n", "version = 1\n", "asker is now requester, of is now covariates"),
        ('requester = "anna"', 'asker = "anna"', "not version = 2, asker"),
        ("with_interval = true", 'of = ["age"]', "no parameter 'of'"),
        ('name = "difference_in_means"', 'name = "means"', "needs a name out of arm_contrasts"),
        ('name = "difference_in_means"', 'name = "DoublyRobust"', "Hint: did you mean 'doubly_robust'? Write"),
        ('name = "difference_in_means"', 'name = "zzz"', "Hint: write for instance [estimator]"),
        (
            "with_interval = true",
            "with_intervals = true",
            "Hint: did you mean 'with_interval'? The parameters",
        ),
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


@pytest.mark.parametrize(
    ("estimator", "adjusted"),
    [
        (DifferenceInMeans(), "none"),
        (RegressionAdjustment(covariates=["age", "smoker"]), "age, smoker"),
        (Stratification(by=["ward", Cut("age", [40, 65])]), "ward, age"),
    ],
)
def test_confounders_that_the_estimator_does_not_adjust_for_are_refused(estimator: Any, adjusted: str) -> None:
    with pytest.raises(StudyError, match=re.escape(f"adjusts for, {adjusted}, not reasons for age")):
        replace(STUDY, estimator=estimator, confounders={"age": "older people are treated less"})


def test_a_study_adjusts_for_what_its_estimator_does() -> None:
    study = replace(STUDY, estimator=Stratification(by=["ward", Cut("age", [40, 65])]))
    assert study.adjusts_for == ("ward", "age")
    assert replace(study, confounders={"age": "old", "ward": "far"}).adjusts_for == ("ward", "age")
    assert STUDY.adjusts_for == ()


def test_a_study_has_the_digest_of_its_file() -> None:
    """To the letter, comments and line ends included: what `sha256sum` prints, and what sites approve."""
    text = "# why we ask\r\n" + STUDY.to_toml().replace("\n", "\r\n")
    study = Study.from_toml(text)
    assert study.digest == hashlib.sha256(text.encode()).hexdigest()
    assert study.text == text
    assert study == STUDY
    assert replace(study, name="other").text == replace(STUDY, name="other").to_toml()


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"risk": 0.1}, "'risk' is none of these"),
        ({"outcome_sd": "2"}, "numbers for some of treated_share"),
        ({"outcome_sd": 50.0}, "outcome_sd must be from 0 to"),
        ([1.0], "numbers for some of"),
    ],
)
def test_expectations_that_cannot_be_are_refused(expected: Any, words: str) -> None:
    with pytest.raises(DpcausalError, match=re.escape(words)):
        replace(STUDY, expected=expected)


def test_a_study_is_rehearsed_as_it_expects() -> None:
    study = replace(STUDY, expected={"outcome_sd": 1.0, "treated_share": 0.2})
    assert (study.rehearsal(100).sd, study.rehearsal(100).treated_share) == (1.0, 0.2)
    assert study.rehearsal(100, outcome_sd=2.0, treated_share=None).sd == 2.0
    assert (study.rehearsed(1_000).sampling_sd or 1.0) < (STUDY.rehearsed(1_000).sampling_sd or 0.0)
    assert STUDY.rehearsal(100).confounding == 0.3
    assert replace(STUDY, design="trial").rehearsal(100).confounding == 0


def test_a_study_warns_of_a_width_that_it_did_not_expect() -> None:
    released = replace(STUDY.rehearsed(1_000), receipts=(Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32),))
    assert not STUDY.warned(released).warnings
    told = replace(STUDY, expected={"outcome_sd": 0.5})
    assert "times as wide as planned" in told.warned(released).warnings[0]
    assert told.warned(told.warned(released)).warnings == told.warned(released).warnings


def balance_of(estimator: Any, design: Literal["trial", "observational"] = "observational", **told: Any) -> Any:
    requires = {"balance": {"epsilon": 0.5, "covariates": ["age"], **told}}
    return replace(STUDY, estimator=estimator, design=design, requires=requires).diagnostics()["balance"][0]


def test_a_required_balance_is_that_after_adjustment() -> None:
    weighted = balance_of(InverseWeighting(covariates=["age", "smoker"], estimand="ATT", clip=0.2))
    assert (weighted.weighted_by, weighted.estimand, weighted.clip) == (("age", "smoker"), "ATT", 0.2)
    assert balance_of(DoublyRobust(covariates=["age"])).weighted_by == ("age",)
    assert balance_of(DifferenceInMeans()).weighted_by == ()


@pytest.mark.parametrize(
    "estimator",
    [
        RegressionAdjustment(covariates=["age"]),
        DoublyRobust(covariates=["age"], include_missing=True),
        Stratification(by=["ward"]),
        ExactMatching(by=["ward"]),
    ],
)
def test_a_balance_that_cannot_be_told_after_adjustment_is_refused(estimator: Any) -> None:
    with pytest.raises(StudyError, match="require overlap instead"):
        balance_of(estimator)
    assert balance_of(estimator, "trial").weighted_by == ()


def test_a_balance_with_other_weights_than_the_estimator_is_refused() -> None:
    with pytest.raises(StudyError, match=re.escape("clip 0.1, not clip 0.2")):
        balance_of(InverseWeighting(covariates=["age"]), clip=0.2)
    with pytest.raises(StudyError, match="weighted_by"):
        balance_of(DifferenceInMeans(), weighted_by=["age"])
    assert balance_of(InverseWeighting(covariates=["age"]), clip=0.1).clip == 0.1


def test_pooling_is_described_with_the_rule_for_many_sites() -> None:
    assert replace(STUDY, pooling="automatic") == Study.from_toml(replace(STUDY, pooling="automatic").to_toml())
    words = [replace(STUDY, pooling=pooling).pooling_in_words for pooling in ("automatic", "median", "sums")]
    assert words[0] == "effects of sites, robust from 5 answers on, otherwise minimum_variance"
    assert words[1:] == ["effects of sites, median", "sums at the coordinator"]


def test_empty_file_is_called_empty() -> None:
    with pytest.raises(StudyError, match="The study is empty"):
        Study.from_toml(" \n")
