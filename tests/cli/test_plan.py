"""`dpcausal plan`, with no data anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app
from tests.support.plans import quick_plans


@pytest.fixture
def study(tmp_path: Path, schema: dpc.Schema) -> Path:
    made = dpc.Study(
        name="training",
        question="Does training help?",
        schema=schema,
        estimator=dpc.RegressionAdjustment(covariates=["age"]),
        epsilon=1.0,
    )
    file = tmp_path / "study.toml"
    file.write_text(made.to_toml())
    return file


@pytest.fixture
def _quick() -> Iterator[None]:
    with quick_plans(curves=False):
        yield


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, words)])


def test_command_prints_a_plan(study: Path) -> None:
    done = run(study, "--n", 5_000, "--outcome-sd", 1.5)
    assert done.exit_code == 0, done.output
    for words in ("regression_moments: epsilon", "95 % interval", "Estimators by expected error"):
        assert words in done.output


@pytest.mark.usefixtures("_quick")
def test_expectations_are_handed_on(study: Path) -> None:
    given = ("--outcome-sd", 1.5, "--outcome-mean", 4, "--treated-share", 0.3, "--confounding", 0.1, "--width", 0.2)
    document = json.loads(run(study, "--n", 20_000, *given, "--json").output)
    assert document["n"] == 20_000
    public = document["public"]
    assert (public["outcome_sd"], public["outcome_mean"], public["treated_share"]) == (1.5, 4.0, 0.3)
    assert document["target_width"] == 0.2
    assert 0 < document["epsilon_needed"] < 1
    assert len(document["estimators"]) > 1


@pytest.mark.usefixtures("_quick")
def test_a_trial_is_not_adjusted(study: Path) -> None:
    study.write_text(study.read_text().replace('design = "observational"', 'design = "trial"'))
    document = json.loads(run(study, "--n", 5_000, "--json").output)
    labels = {each["label"] for each in document["estimators"]}
    assert labels == {"difference in means", "difference in winsorised means"}


@pytest.mark.usefixtures("_quick")
def test_what_is_required_first_is_in_the_price(study: Path) -> None:
    required = "".join(
        f'[requires.{name}]\nepsilon = {epsilon}\ncovariates = ["age"]\n'
        for name, epsilon in (("overlap", 0.5), ("balance", 0.2))
    )
    weighted = study.read_text().replace("regression_adjustment", "inverse_weighting").replace("interaction = true", "")
    weighted = weighted.replace("include_missing = false", "")
    study.write_text(weighted + required)
    lines = ["epsilon 1.7, delta 0", "required overlap: epsilon 0.5, delta 0", "required balance: epsilon 0.2, delta 0"]
    printed = run(study, "--n", 5_000).stdout
    assert all(line in printed for line in [*lines, "effect: epsilon 1, delta 0"])
    document = json.loads(run(study, "--n", 5_000, "--json").stdout)
    assert (document["price"]["epsilon"], len(document["price"]["parts"])) == (1.7, 3)


def test_plan_writes_a_figure(study: Path, tmp_path: Path) -> None:
    with quick_plans():
        assert run(study, "--n", 20_000, "--figure", tmp_path / "plan.png").exit_code == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--n", 1),
        ("--n", 100, "--width", 0),
        ("--n", 100, "--width", "nan"),
        ("--n", 100, "--outcome-sd", 99),
        ("--n", 100, "--treated-share", 1.5),
        ("--n", 100, "--figure", "plan.jpeg"),
    ],
)
def test_wrong_options_are_refused_in_words(study: Path, wrong: tuple[object, ...]) -> None:
    done = run(study, *wrong)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_a_file_that_is_no_study(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    for text in (b"\xff", b"name =", b'name = "a"'):
        file.write_bytes(text)
        done = run(file, "--n", 100)
        assert done.exit_code == 2
        assert "Hint" in done.output


@pytest.mark.usefixtures("_quick")
def test_what_the_study_expects_counts_unless_an_option_says_otherwise(study: Path) -> None:
    study.write_text(study.read_text() + "[expected]\noutcome_sd = 1.5\ntreated_share = 0.2\nconfounding = 0.4\n")
    given = ("--confounding", 0.1, "--covariate-sd", 0.5)
    public = json.loads(run(study, "--n", 20_000, *given, "--json").output)["public"]
    assert public == {
        "outcome_mean": None,
        "outcome_sd": 1.5,
        "treated_share": 0.2,
        "confounding": 0.1,
        "covariate_sd": 0.5,
        "compared_share": None,
        "overlap": None,
        "correlation": 0.7,
        "typical": [],
        "rule": "additive",
        "parts": 1,
        "sites": 1,
    }


def test_the_odds_of_no_interval_are_told(study: Path) -> None:
    assert "no interval       in 40 of 40 rehearsals with noise (100 %)" in run(study, "--n", 20).output
    assert "no interval       in none of 40 rehearsals with noise" in run(study, "--n", 100_000).output


@pytest.mark.usefixtures("_quick")
def test_strata_are_ranked_where_they_are_given(study: Path) -> None:
    given = ("--strata", "race", "--strata", "age:30,45", "--json")
    labels = [each["label"] for each in json.loads(run(study, "--n", 5_000, *given).output)["estimators"]]
    assert "stratification by race, age" in labels
    assert run(study, "--n", 5_000, "--strata", "age:young").exit_code == 2
