from dataclasses import replace
from pathlib import Path

import pytest

from dpcausal import DoublyRobust, RegressionAdjustment, Study
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


def test_a_draft_without_changes_is_the_study(adjusted: Study) -> None:
    assert Draft.of(adjusted).study(adjusted).text == adjusted.text


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
    summed = replace(made, pooling="sums")
    assert draft.report(summed).effect.n == 1_000


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
