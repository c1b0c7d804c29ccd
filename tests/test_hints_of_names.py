"""Errors about names and strata say what to declare, in Python and in a study file, and name what is hidden only."""

import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.estimators.interval_policy import hidden_features
from dpcausal.queries.cuts import cuts_of
from dpcausal.study.study import Study

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm"),
    outcome=dpc.Binary("died"),
    covariates=[dpc.Real("age", 18, 100), dpc.Binary("ill")],
)
STUDY = Study(name="a", question="?", schema=SCHEMA, estimator=dpc.Stratification(by=["ill"]), epsilon=1.0)


def test_indicator_that_is_not_declared_is_explained() -> None:
    estimator = dpc.RegressionAdjustment(covariates=["age", "age is missing"])
    with pytest.raises(QueryError, match="declare 'age' with indicator=True, in a study file indicator = true"):
        estimator.estimate(dpc.Rehearsal(SCHEMA, 1_000), epsilon=1.0)


def test_hint_for_strata_shows_the_form_of_a_study_file() -> None:
    hint = r'in a study file by = \["race", \{ name = "age", edges = \[25, 35, 45\] \}\]'
    with pytest.raises(QueryError, match=hint):
        dpc.Cut("age", ["40"])  # type: ignore[list-item]
    with pytest.raises(QueryError, match=hint):
        cuts_of(["ill", "ill"])
    text = STUDY.to_toml().replace('    "ill",\n', '    { name = "age", edges = [40, 65] },\n')
    assert Study.from_toml(text).estimator == dpc.Stratification(by=(dpc.Cut("age", [40, 65]),))


def test_refusal_names_only_what_noise_hides() -> None:
    text = hidden_features([0.1, 50.0, 60.0], ["admissions", "age", "ward"])
    assert text.startswith("privacy noise hides how admissions varies; ")
    assert "first check that values of admissions are spelled" in text
    assert "fewer covariates" in text
    assert "ward" not in text
