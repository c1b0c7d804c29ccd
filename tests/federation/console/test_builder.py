from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcausal import (
    Binary,
    Cut,
    DoublyRobust,
    RegressionAdjustment,
    Stratification,
    Study,
    Treatment,
    Winsorised,
)
from dpcausal.errors import StudyError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.application import coordinator_console
from dpcausal.federation.console.builder import Draft, outcomes, treatments
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.site.people import Person, add_person
from tests.federation.console.conftest import ADDRESS, PASSWORD, Browser


@pytest.fixture
def adjusted(study: Study) -> Study:
    estimator = RegressionAdjustment(covariates=["age", "smoker"])
    reasons = {"age": "older units score less", "smoker": "smoking lowers scores"}
    schema = replace(study.schema, covariates=study.schema.covariates[1:])
    return replace(study, estimator=estimator, confounders=reasons, schema=schema, expected={"outcome_sd": 2.0})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"estimator": DoublyRobust(covariates=["smoker", "age"], estimand="ATT", clip=0.02)},
        {"estimator": Stratification(by=[Cut("age", [40, 60]), "smoker"], cap=50)},
        {"estimator": Winsorised(RegressionAdjustment(covariates=["age"])), "confounders": {"age": "for a reason"}},
        {"estimator": RegressionAdjustment(covariates=["age"]), "confounders": {}},  # smoker is declared only
        {"epsilon": 0.12345678, "delta": 1.23456789e-7, "expected": {"outcome_sd": 2.123456789}},
        {"epsilon": 1, "expected": {"outcome_sd": 2}},
    ],
)
def test_a_draft_without_changes_is_the_study(adjusted: Study, changes: dict[str, Any]) -> None:
    base = replace(adjusted, **changes)
    draft = Draft.of(base)
    ticked = [each.name for each in base.schema.covariates if each.name in draft.covariates]
    sent = Draft.read({**vars(draft), "covariates": ""}, ticked)  # a form sends them in the order of the columns
    assert draft.study(base).text == sent.study(base).text == base.text


def test_another_choice_of_covariates_keeps_the_rest_of_the_method(adjusted: Study) -> None:
    base = replace(adjusted, estimator=DoublyRobust(covariates=["age", "smoker"], estimand="ATT", clip=0.02))
    made = replace(Draft.of(base), covariates=("age",)).study(base)
    assert made.estimator == DoublyRobust(covariates=["age"], estimand="ATT", clip=0.02)
    cut = replace(adjusted, estimator=Stratification(by=[Cut("age", [40, 60]), "smoker"], cap=50))
    made = replace(Draft.of(cut), covariates=("age",)).study(cut)
    assert made.estimator == Stratification(by=[Cut("age", [40, 60])], cap=50)


def test_another_treatment_is_read_as_its_column_and_has_its_own_expectations(adjusted: Study) -> None:
    smoker = Binary("smoker", ("no", "yes"), ("never", "ever"), "no", aliases={"yes": ["ja"]}, strict=True)
    schema = replace(adjusted.schema, covariates=(adjusted.schema.covariates[0], smoker))
    stale = {"treated_share": 0.1, "compared_share": 0.9, "confounding": 0.1, "overlap": 0.6}
    base = replace(adjusted, schema=schema, design="observational", expected={"outcome_sd": 2.0} | stale)
    made = replace(Draft.of(base), treatment="smoker", covariates=("age",)).study(base)
    assert made.schema.treatment == Treatment(
        *("smoker", ("no", "yes")), labels=("never", "ever"), undeclared="no", aliases={"yes": ["ja"]}, strict=True
    )
    assert made.expected == {"outcome_sd": 2.0}
    assert replace(Draft.of(base), outcome_sd="").study(base).expected == stale


def test_a_draft_has_another_outcome_treatment_and_method(adjusted: Study) -> None:
    assert outcomes(adjusted) == ["score", "age", "smoker"]
    assert treatments(adjusted) == ["treat", "smoker"]
    draft = replace(
        Draft.of(adjusted), outcome="age", treatment="smoker", covariates=("score",), method="doubly_robust"
    )
    made = draft.study(adjusted)
    assert made.schema.outcome.name == "age"
    assert (made.schema.treatment.name, made.schema.treatment.arms) == ("smoker", ("no", "yes"))
    assert made.schema.covariates == (adjusted.schema.outcome,)
    assert made.estimator == DoublyRobust(covariates=["score"])
    assert (made.expected, made.confounders) == ({}, {})  # they were about others


def test_a_draft_expects_what_the_study_itself_does(adjusted: Study) -> None:
    draft = replace(Draft.of(adjusted), sites="2", units="500", outcome_sd="1.5")
    made = draft.study(adjusted)
    expected = made.rehearsed_pool({"a": 500, "b": 500}).standard_error
    assert draft.report(made).effect.standard_error == expected
    assert expected != adjusted.rehearsed_pool({"a": 500, "b": 500}).standard_error


def test_a_draft_of_plain_sums_expects_the_noise_of_each_site(adjusted: Study) -> None:
    """As `sum_releases` adds it up."""
    summed = replace(adjusted, pooling="sums")
    planned = replace(Draft.of(summed), sites="4", units="500").report(summed).effect
    one = summed.rehearsed(2_000)
    assert planned.n == one.n == 2_000
    assert max(term.parts for term in planned.noise) == 4
    assert planned.privacy_sd > 1.5 * one.privacy_sd
    with pytest.raises(StudyError, match=r"study\.rehearsed\(3_000, sites=3\)"):
        summed.rehearsed_pool({"a": 500, "b": 500})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": "much"}, "epsilon must be a number"),
        ({"delta": "nan"}, "delta must be a number"),
        ({"outcome": "income"}, "not declared"),
        ({"method": "survival"}, "no such method"),
        ({"sites": "21"}, "1 to 20 sites"),
        ({"units": "1"}, "2 to"),
        ({"design": "both"}, "design must be"),
    ],
)
def test_a_draft_that_is_no_study_is_refused(adjusted: Study, change: dict[str, str], words: str) -> None:
    draft = replace(Draft.of(adjusted), **change)  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=words):
        draft.report(draft.study(adjusted))


def test_the_page_shows_the_plan_and_gives_the_study(tmp_path: Path, adjusted: Study) -> None:
    folder = Workspace.new(tmp_path / "workspace", "anna").folder
    add_person(folder, Person("Anna", ("reader",), login="anna"))
    Accounts(folder).set_password("anna", PASSWORD)
    browser = Browser(coordinator_console(folder, Settings(address=ADDRESS)).test_client())
    browser.login("anna")
    assert "There is no study yet" in browser.get("/build").text
    (folder / "study.toml").write_text(f"# from the protocol\n{adjusted.text}")
    page = browser.get("/build")
    assert 'value="age" checked' in page.text
    assert 'value="score">' in page.text  # not chosen
    form = vars(Draft.of(adjusted)) | {"covariates": "age", "question": "<b>Why?</b>", "epsilon": "2", "units": "5000"}
    shown = browser.post("/build", {**form, "action": "plan"})
    report = replace(Draft.of(adjusted), covariates=("age",), question="<b>Why?</b>", epsilon="2", units="5000")
    expected = report.report(report.study(adjusted))
    assert expected.interval
    half = expected.scale.size((expected.interval[1] - expected.interval[0]) / 2)
    assert f"expect the estimate ±\N{NO-BREAK SPACE}{half}<" in shown.text
    assert "<div><dt>price at a site</dt><dd>ε 2</dd></div>" in shown.text
    assert "<b>" not in shown.text
    file = browser.post("/build", {**form, "action": "download"})
    assert file.headers["Content-Disposition"] == 'attachment; filename="study.toml"'
    assert file.text == report.study(adjusted).text
    wrong = browser.post("/build", form | {"epsilon": "-1"})
    assert wrong.status_code == 200
    assert 'role="alert"' in wrong.text
    assert not (folder / "requests.db").exists()
