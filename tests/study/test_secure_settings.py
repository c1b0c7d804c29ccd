"""The terms of secure sums in a study: which are refused, and that they survive a round trip."""

from typing import Any

import pytest

import dpcausal as dpc
from dpcausal import Study
from dpcausal.errors import QueryError, StudyError
from dpcausal.testing import standard_schema

SITES = {name: f"{place:064x}" for place, name in enumerate(("east", "north", "south", "west"))}


def secure(**changes: Any) -> Study:
    usual: dict[str, Any] = {
        "name": "scores",
        "question": "Does treatment raise the score?",
        "schema": standard_schema(),
        "estimator": dpc.DifferenceInMeans(),
        "epsilon": 1.0,
        "pooling": "sums",
        "aggregation": "secure",
        "secure": {"honest": 3, "colluding": 0},
        "sites": SITES,
    }
    return Study(**usual | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secure": {"honest": 2, "colluding": 0}}, "2 honest \\+ colluding > 4"),
        ({"secure": {"honest": 1, "colluding": 3}}, "2 <= honest"),
        ({"secure": {"honest": 3, "colluding": 2}}, "<= 4"),
        ({"secure": {"honest": 3, "colluding": -1}}, "0 <= colluding"),
        ({"secure": {"honest": 3.0, "colluding": 0}}, "honest 3.0"),
        ({"secure": {"honest": 3}}, "honest and colluding"),
        ({"secure": {}}, "table \\[secure\\]"),
        ({"secure": {"honest": 3, "other": 1}}, "table \\[secure\\]"),
        ({"sites": {"east": "00"}}, "own public key"),
        ({"sites": dict.fromkeys(SITES, "ab" * 32)}, "own public key"),
        ({"pooling": "automatic"}, 'pooling = "sums"'),
        (
            {"requires": {"overlap": {"epsilon": 0.1, "covariates": ["age"]}}},
            "logistic, whose answers .* do not add up",
        ),
        ({"estimator": dpc.Winsorised()}, "same estimand"),
        ({"estimator": dpc.Stratification(by=["ward"])}, "same estimand"),
        ({"estimator": dpc.DoublyRobust(covariates=["age"])}, "logistic, whose answers .* do not add up"),
        ({"epsilons": {"west": 0.5}}, "another epsilon"),
        ({"aggregation": "plain"}, 'aggregation = "secure"'),
        ({"aggregation": "other"}, "plain or secure"),
    ],
)
def test_inconsistent_terms_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        secure(**changes)


def test_noise_that_cannot_be_shared_is_refused_when_the_study_is_read() -> None:
    sites = {f"site{place}": f"{place:064x}" for place in range(60)}
    assert secure(sites=sites, secure={"honest": 50, "colluding": 0}).secure_settings is not None
    with pytest.raises(QueryError, match="Gaussian noise of a tick or more in each share"):
        secure(sites=sites, secure={"honest": 50, "colluding": 0}, delta=0.4)


@pytest.mark.parametrize(
    "estimator",
    [
        dpc.DifferenceInMeans(),
        dpc.RegressionAdjustment(covariates=["age"]),
        dpc.Stratification(by=["ward"], cap=10),
        dpc.ArmContrasts(by=["ward"]),
        dpc.QuantileEffects(bins=20),
        dpc.Survival(),
    ],
)
def test_estimators_with_one_query_that_adds_up_are_allowed(estimator: Any) -> None:
    assert secure(estimator=estimator).secure_settings is not None


def test_terms_survive_a_round_trip() -> None:
    study = secure(secure={"honest": 3, "colluding": 1})
    read = Study.from_toml(study.to_toml())
    assert read == study
    assert read.secure_settings is not None
    assert (read.secure_settings.threshold, read.secure_settings.silent) == (4, 0)


def test_plain_studies_do_not_name_the_terms() -> None:
    plain = secure(name="plain", aggregation="plain", secure={}, sites={})
    assert not {"aggregation", "[secure]", "[sites]"} & set(plain.to_toml().split())
    assert Study.from_toml(plain.to_toml()).name == "plain"
