import dataclasses
from datetime import date
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.report import Report
from dpcausal.results.site_share import SiteShare
from tests.report.conftest import Made

yaml: Any = pytest.importorskip("yaml")


def read(report: Report) -> Any:
    return yaml.safe_load(report.to_registry())


def test_record_has_the_keys_of_the_registry(made: Made, study: dpc.Study) -> None:
    record = read(Report.of(made(), study, date=date(2026, 1, 31)))
    assert (record["status"], record["tier"], record["url_slug"]) == ("Draft", 3, "training")
    deployment = record["deployment"]
    assert list(deployment) == [
        "basic",
        "dp_variant",
        "privacy_loss",
        "deployment_model",
        "accounting",
        "implementation",
        "administrative",
    ]
    assert deployment["basic"]["publication_date"] == "2026-01-31"
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert "A. Author" in deployment["implementation"]["preprocessing_and_hyperparameter_tuning"]


def test_record_shows_delta_and_sites(made: Made, study: dpc.Study, sites: tuple[SiteShare, ...]) -> None:
    effect = made(guarantee=dpc.Guarantee(epsilon=1.0, delta=1e-6), sites=sites)
    asked = dataclasses.replace(study, delta=1e-6)
    deployment = read(Report.of(effect, asked, date=date(2026, 1, 31)))["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert deployment["deployment_model"]["model_name"] == "Federated"


def test_record_marks_an_unproved_guarantee(made: Made) -> None:
    effect = made(guarantee=dpc.Guarantee(epsilon=1.0, proof_status="heuristic"))
    loss = read(Report.of(effect, date=date(2026, 1, 31)))["deployment"]["privacy_loss"]
    assert "NOT PROVED" in loss["privacy_parameters_details"]
