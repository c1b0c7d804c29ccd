"""People who know other libraries are told what to write here."""

import copy
import datetime as dt
import importlib
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import ArgumentError, DpcausalError, GuaranteeError, LedgerError, QueryError, StudyError
from dpcausal.estimators.average import ESTIMATORS, suggest_estimator
from dpcausal.estimators.base import BaseEstimator
from dpcausal.ledger.database import Database
from dpcausal.utils.discovery import classes_in

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real("x", 0, 1)]
)
REHEARSAL = dpc.Rehearsal(SCHEMA, n=2_000)
EFFECT = dpc.DifferenceInMeans().estimate(REHEARSAL, epsilon=1.0)
CURVE = dpc.RLearner(covariates=["x"], basis=dpc.Polynomial(["x"]), propensity=0.5).estimate(REHEARSAL, epsilon=1.0)
STUDY = dpc.Study(name="a", question="b?", schema=SCHEMA, estimator=dpc.DifferenceInMeans(), epsilon=1.0).to_toml()


KINDS = [*ESTIMATORS.values(), *classes_in("dpcausal.estimators.conditional", BaseEstimator)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["fit", "predict", "conf_int", "summary"])
def test_estimators_hint_at_estimate_when_called_otherwise(kind: Any, word: str) -> None:
    estimator = kind.__new__(kind)
    assert not hasattr(estimator, word)
    with pytest.raises(DpcausalError, match=r"estimator\.estimate\(vault, epsilon=1\.0\)") as told:
        getattr(estimator, word)
    assert isinstance(told.value, AttributeError)


@pytest.mark.parametrize(
    ("result", "word", "instead"),
    [
        (EFFECT, "conf_int", "effect.interval(0.95)"),
        (EFFECT, "summary", "print(effect)"),
        (EFFECT, "fit", "print(effect)"),
        (EFFECT, "predict", "print(effect)"),
        (EFFECT, "pvalue", "effect.p_value()"),
        (EFFECT, "intervall", ".interval"),
        (EFFECT, "samplingsd", ".sampling_sd"),
        (EFFECT, "zzz", "help(Effect)"),
        (CURVE, "conf_int", "curve.effect_interval(profiles)"),
        (CURVE, "summary", "print(curve)"),
    ],
)
def test_results_hint_at_the_right_attribute(result: Any, word: str, instead: str) -> None:
    assert not hasattr(result, word)
    with pytest.raises(DpcausalError) as told:
        getattr(result, word)
    assert isinstance(told.value, AttributeError)
    assert instead in told.value.hint


@pytest.mark.parametrize(("word", "instead"), [("run", "study.prepare(vault).run()"), ("power", "study.rehearsed(n=")])
def test_study_hints_at_what_runs_it(word: str, instead: str) -> None:
    with pytest.raises(DpcausalError) as told:
        getattr(dpc.Study.from_toml(STUDY), word)
    assert instead in told.value.hint


@pytest.mark.parametrize(("word", "own"), [("min", "low"), ("maximum", "high")])
def test_parts_of_a_document_are_known_by_other_names(word: str, own: str) -> None:
    with pytest.raises(DpcausalError) as told:
        dpc.Study.from_toml(STUDY.replace(f"{own} =", f"{word} ="))
    assert told.value.hint == f"here that is {own!r}. Correct the names in the document."


def test_results_are_copied_as_before() -> None:
    for result in (EFFECT, CURVE, dpc.DifferenceInMeans()):
        assert pickle.loads(pickle.dumps(result)) == result == copy.deepcopy(result)  # noqa: S301


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [(), (1.0,), (1.0, 1e-6)])
def test_an_epsilon_that_is_left_out_or_without_its_name_is_asked_for(kind: Any, given: tuple[float, ...]) -> None:
    with pytest.raises(GuaranteeError, match=r"epsilon=1\.0"):
        kind.__new__(kind).estimate(REHEARSAL, *given)


@pytest.mark.parametrize("given", [(), ("difference_in_means", 1.0)])
def test_estimate_hints_at_a_missing_epsilon_too(given: tuple[Any, ...]) -> None:
    with pytest.raises(GuaranteeError, match=r"estimate\(table, schema, epsilon=1\.0\)"):
        dpc.estimate(pa.table({"t": [0, 1], "y": [0.0, 1.0], "x": [0.0, 1.0]}), SCHEMA, *given)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("aipw", "doubly_robust"),
        ("AIPW", "doubly_robust"),
        ("ipw", "inverse_weighting"),
        ("psm", "propensity_matching"),
        ("ols", "regression_adjustment"),
        ("t-test", "difference_in_means"),
        ("CEM", "exact_matching"),
        ("DoublyRobust", "doubly_robust"),
    ],
)
def test_estimators_are_known_by_other_names(name: str, own: str) -> None:
    table = pa.table({"t": [0, 1], "y": [0.0, 1.0], "x": [0.0, 1.0]})
    with pytest.raises(QueryError) as told:
        dpc.estimate(table, SCHEMA, name, epsilon=1.0)
    assert repr(own) in told.value.hint
    with pytest.raises(StudyError) as also:
        dpc.Study.from_toml(STUDY.replace('"difference_in_means"', f'"{name}"'))
    assert repr(own) in also.value.hint


def test_every_other_name_leads_to_one_estimator() -> None:
    others = [(own, other) for own, kind in ESTIMATORS.items() for other in kind.also_called.split()]  # type: ignore[attr-defined]
    assert {own for own, _ in others} == set(ESTIMATORS)
    assert len({other for _, other in others}) == len(others)
    assert all(repr(own) in suggest_estimator(other) for own, other in others)


@pytest.mark.parametrize("epsilon", [10.5, 50, 100])
def test_an_epsilon_that_promises_nothing_is_warned_of(epsilon: float) -> None:
    learner = dpc.RLearner(covariates=["x"], basis=dpc.Polynomial(["x"]), propensity=0.5)
    for asked in (dpc.DifferenceInMeans(), learner):
        shown = asked.estimate(REHEARSAL, epsilon=epsilon)
        warned = f"epsilon {epsilon:g} promises next to nothing"
        assert str(shown).split("\n")[2].startswith(f"WARNING           {warned}")
        assert warned in shown._repr_html_()


def test_plan_warns_of_an_epsilon_that_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("dpcausal.planning.plan")
    monkeypatch.setattr(module, "count_refusals", lambda *_: 0)  # which takes long
    monkeypatch.setattr(module, "max_confounders", lambda *_: 1)
    planned = dpc.plan(dpc.DifferenceInMeans(), REHEARSAL, dpc.Guarantee(epsilon=50), covariates=[])
    assert str(planned).split("\n")[2].startswith("WARNING           epsilon 50 promises next to nothing")


def test_a_usual_epsilon_is_not_warned_of() -> None:
    assert dpc.Guarantee(epsilon=10).warnings == ()
    assert "warning" not in str(EFFECT)


def test_ledger_can_be_given_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my.db"
    dpc.Ledger.create(file, dpc.Budget(epsilon=3), as_of="2026-06-30")
    assert dpc.Ledger(str(file)).address == f"sqlite:///{file}" == dpc.Ledger(f"sqlite:///{file}").address
    frame = pd.DataFrame({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50})
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))
    assert dpc.Vault(frame, schema, ledger=file, as_of="2026-06-30").n == 100


def test_what_is_no_ledger_is_refused_with_what_to_write() -> None:
    with pytest.raises(LedgerError, match=r'write "my\.db"'):
        dpc.Ledger("my")
    with pytest.raises(LedgerError) as told:
        dpc.Ledger("anna:secret@host/db")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("AIPW", "DoublyRobust"),
        ("IPW", "InverseWeighting"),
        ("CUPED", "RegressionAdjustment"),
        ("did", "DifferenceInDifferences"),
        ("DiD", "DifferenceInDifferences"),
        ("PropensityScoreMatching", "PropensityMatching"),
        ("Categorical", "Category"),
        ("Continuous", "Real"),
    ],
)
def test_names_of_other_libraries_lead_to_the_class(name: str, here: str) -> None:
    with pytest.raises(AttributeError, match=f"here that is '{here}'"):
        getattr(dpc, name)
    assert hasattr(dpc, here)


@pytest.mark.parametrize("covariates", ["age + sex", "~ age+sex", ["age", "sex"]])
def test_covariates_can_be_a_list_or_a_formula(covariates: str | list[str]) -> None:
    declared = (dpc.Real("age", 18, 90), dpc.Binary("sex"))
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=declared)
    for kind in (dpc.RegressionAdjustment, dpc.DoublyRobust, dpc.InverseWeighting, dpc.Balance):
        assert tuple(kind(covariates).covariates) == ("age", "sex")
    effect = dpc.RegressionAdjustment(covariates).estimate(dpc.Rehearsal(schema, n=1_000), epsilon=1.0)
    assert "on age, sex" in effect.method


def test_a_term_that_is_no_covariate_is_refused_with_the_form_to_write() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real("age", 18, 90)])
    with pytest.raises(QueryError, match=r'such as "age \+ sex", without treatment and outcome'):
        dpc.RegressionAdjustment("y ~ t * age").estimate(dpc.Rehearsal(schema, n=1_000), epsilon=1.0)


def test_schema_draft_prints_names_and_types_and_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    days = pd.to_datetime(["2026-01-31"])
    frame = pd.DataFrame({"arm": ["secret"], "age": [54], "cost": [1.5], "old": [True], "seen": days, 'a"b': [1 + 2j]})
    dpc.Schema.draft(frame)
    printed = capsys.readouterr().out
    assert not any(value in printed for value in ("secret", "54", "1.5", "2026"))
    assert 'Category("arm", values=[...])' in printed
    assert 'Real("age", low=..., high=...),  # whole numbers' in printed
    assert 'Binary("old", values=(False, True))' in printed
    assert 'Real("seen", low=..., high=..., since=...)' in printed
    assert '# "a\\"b" is of a type that cannot be used' in printed
    compile(printed, "draft", "exec")


def test_results_of_a_session_have_html_for_a_notebook() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Category("<b>", ["<i>", "<u>"])]
    )
    frame = pd.DataFrame({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50, "<b>": ["<i>"] * 100})
    vault = dpc.Vault(frame, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=4))
    dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)
    pages = [each._repr_html_() for each in (schema, vault, vault.ledger, dpc.Rehearsal(schema, n=100))]
    assert all(page.startswith("<table>") and "<b>" not in page and "<i>" not in page for page in pages)
    assert 'aria-label="25 % spent"' in pages[2]


@pytest.mark.parametrize("budget", [3, 0.5, {"epsilon": 3}])
def test_budget_that_is_no_budget_is_refused_with_what_to_write(budget: object) -> None:
    with pytest.raises(LedgerError, match=r"write Budget\(epsilon="):
        dpc.Ledger.create("sqlite://", budget, as_of="2026-06-30")  # type: ignore[arg-type]


def test_column_given_by_its_name_is_refused_with_its_declaration() -> None:
    with pytest.raises(DpcausalError, match=r"Treatment\('treat', arms="):
        dpc.Schema(treatment="treat", outcome=dpc.Real("y", 0, 1))  # type: ignore[arg-type]
    with pytest.raises(DpcausalError, match=r"Real\('income', low=0, high=100\)"):
        dpc.Schema(treatment=dpc.Treatment("treat"), outcome="income")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"), [("seed", "noise has no seed"), ("alpha", r"effect\.interval\(0\.95\)"), ("size", "own")]
)
def test_arguments_of_other_libraries_are_answered(vault: dpc.Vault, name: str, hint: str) -> None:
    with pytest.raises(GuaranteeError, match=hint):
        dpc.DifferenceInMeans().estimate(vault, epsilon=1.0, **{name: 1})
    assert vault.ledger.spent.epsilon == 0


def test_missing_method_is_named_in_one_sentence() -> None:
    with pytest.raises(AttributeError, match=r"^DifferenceInMeans has no \.fit\.\n\nHint: write effect = "):
        dpc.DifferenceInMeans().fit  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: dpc.Budget(3), r"Budget\(epsilon=3\)"),  # type: ignore[call-arg]
        (lambda: dpc.Vault(SCHEMA, pa.table({"t": [0]}), ledger="sqlite://"), r"Vault\(table, schema"),
        (lambda: dpc.Study.from_toml(Path("study.toml")), "check its name"),
        (lambda: dpc.Study.from_toml("study.toml"), r"write Path\('study\.toml'\)"),
        (lambda: dpc.Effect.from_json("effect.json"), r"write Path\('effect\.json'\)"),
    ],
    ids=["Budget(3)", "Vault(schema, table)", "from an absent file", "from a name", "from_json(name)"],
)
def test_first_calls_that_go_wrong_say_how_to_write_them(call: Any, hint: str) -> None:
    with pytest.raises(DpcausalError, match=hint):
        call()
    assert copy.copy(pickle.loads(pickle.dumps(dpc.Budget(epsilon=3)))) == dpc.Budget(epsilon=3)  # noqa: S301


@pytest.mark.parametrize("name", ["interval", "risk_ratio", "relative_lift", "odds_ratio", "number_needed_to_treat"])
def test_an_error_probability_in_place_of_a_level_is_answered_with_the_level(name: str) -> None:
    for given, named in (((0.05,), {}), ((), {"alpha": 0.05}), ((), {"conf_level": 0.95}), ((0.95, 0.9), {})):
        with pytest.raises(DpcausalError, match=r"0\.95"):
            getattr(EFFECT, name)(*given, **named)


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("head", "dpcausal check STUDY"),
        ("to_pandas", "dpcausal check STUDY"),
        ("describe", "table_one"),
        ("shape", "vault.n"),
        ("remaining", "vault.ledger.remaining"),
        ("ask", "did you mean|help"),
    ],
)
def test_a_vault_that_is_taken_for_a_table_says_what_to_do(word: str, instead: str) -> None:
    table = pa.table({"t": [0, 1] * 50, "y": [0.0, 1.0] * 50, "x": [0.0, 1.0] * 50})
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    assert not hasattr(vault, word)
    assert not hasattr(vault, "__dict__")
    with pytest.raises(AttributeError, match=instead):
        getattr(vault, word)


@pytest.mark.parametrize(
    "call",
    [
        lambda report: report(EFFECT),
        lambda report: report(effect=EFFECT),
        lambda report: report.of(EFFECT),
        lambda report: report.of(EFFECT, title="a", date=dt.date(2026, 1, 1)),
        lambda report: report.of(EFFECT, "study.toml", date=dt.date(2026, 1, 1)),
        lambda report: report.of(EFFECT, None, "ledger.db", date=dt.date(2026, 1, 1)),
        lambda report: report.of(EFFECT, date="2026-01-01"),
        lambda report: report.of(CURVE, date=dt.date(2026, 1, 1)),
    ],
)
def test_a_report_with_other_arguments_says_what_to_write(call: Any) -> None:
    with pytest.raises(DpcausalError, match=r"write Report\.of\(effect, study, vault\.ledger, date="):
        call(dpc.Report)
    made = dpc.Report.of(EFFECT, date=dt.date(2026, 1, 1))
    assert copy.deepcopy(made) == made
    with pytest.raises(StudyError, match="in a list"):
        dpc.Report.of(EFFECT, date=dt.date(2026, 1, 1), diagnoses=EFFECT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("Metric", (), {"numerator": 1, "denominator": 2}),
        ("Metric", (1, 2), {}),
        ("Earlier", (1, 2, 3, 4), {}),
        ("Guardrail", ("revenue",), {}),
        ("DecisionRule", (["revenue"],), {}),
        ("MetricCatalogue", (), {"metrics": []}),
        ("Cut", (), {"edges": [40]}),
        ("Spline", (), {}),
        ("Cells", (), {}),
        ("Fourier", (), {}),
        ("Polynomial", (), {}),
        ("Layer", ("bucket",), {}),
        ("Resources", (), {"ram": "1 GB"}),
        ("Population", (), {}),
        ("Coordinator", (), {}),
        ("Site", (), {}),
    ],
)
def test_constructors_say_how_to_write_the_call(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name} .*\n\nHint: .*rite {name}\("):
        getattr(dpc, name)(*given, **named)


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"rule": {"goals": ["y"]}}, r"rule=DecisionRule\(goals="),
        ({"treatment": "arm", "allocation": [0.5, 0.5]}, r"treatment=Treatment\("),
        ({"unit": "user"}, r"unit=Unit\(\"user\""),
        ({"allocation": 0.5}, r"allocation=\[0\.9, 0\.1\]"),
        ({"allocation": "50:50"}, r"allocation=\[0\.9, 0\.1\]"),
    ],
)
def test_experiments_say_what_a_part_must_be(more: dict[str, Any], hint: str) -> None:
    parts = {"name": "a", "treatment": dpc.Treatment("t"), "metrics": [dpc.Metric(dpc.Binary("y", missing=0))]}
    with pytest.raises(DpcausalError, match=f"Hint: .*{hint}"):
        dpc.Experiment(**parts | {"epsilon": 1.0} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dpc.DifferenceInMeans(with_interval=REHEARSAL),  # type: ignore[arg-type]
        lambda: dpc.Real("x", 0, 1, percent="%"),  # type: ignore[arg-type]
        lambda: dpc.Treatment("t", strict=1),  # type: ignore[arg-type]
    ],
)
def test_switches_that_are_neither_on_nor_off_are_refused(call: Any) -> None:
    with pytest.raises(ArgumentError, match="must be True or False, not "):
        call()
    assert dpc.DifferenceInMeans(with_interval=np.True_).with_interval  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: dpc.plan(dpc.DifferenceInMeans(), SCHEMA, dpc.Guarantee(epsilon=1)), r"Rehearsal\(schema, n="),  # type: ignore[arg-type]
        (lambda: dpc.plan(dpc.DifferenceInMeans(), REHEARSAL, 1.0), r"Guarantee\(epsilon="),  # type: ignore[arg-type]
        (lambda: dpc.rank_estimators(SCHEMA, dpc.Guarantee(epsilon=1)), r"Rehearsal\(schema, n="),  # type: ignore[arg-type]
        (lambda: dpc.rank_estimators(REHEARSAL), r"Guarantee\(epsilon="),  # type: ignore[call-arg]
        (lambda: dpc.tidy(5), "."),  # type: ignore[arg-type]
        (dpc.pool, "pool"),
        (lambda: dpc.estimate(pa.table({"t": [0, 1]}), epsilon=1.0), r"estimate\(table, schema"),  # type: ignore[call-overload]
        (lambda: dpc.DifferenceInMeans().estimate(epsilon=1.0), r"estimate\(vault, "),  # type: ignore[call-arg]
        (lambda: dpc.Ledger.create("a.db"), r"Budget\(epsilon="),  # type: ignore[call-arg]
        (lambda: dpc.Ledger.create("no such folder/a.db", dpc.Budget(epsilon=1), as_of="a"), "create the folder"),
        (EFFECT.non_inferiority, r"non_inferiority\(0\.02\)"),
        (lambda: EFFECT.non_inferiority(-1), "without a sign"),
        (lambda: EFFECT.equivalence("0,5"), "without a sign"),  # type: ignore[arg-type]
        (lambda: EFFECT.equivalence(0), "without a sign"),
        (lambda: EFFECT.superiority(margin=-1), "without a sign"),
        (lambda: EFFECT.p_value("0"), r"p_value\("),  # type: ignore[arg-type]
        (lambda: EFFECT.p_value(alternative="two"), r"p_value\("),  # type: ignore[arg-type]
    ],
)
def test_calls_with_another_kind_of_argument_say_what_to_write(call: Any, hint: str) -> None:
    with pytest.raises(DpcausalError, match=f"Hint: .*{hint}"):
        call()


def test_a_margin_of_risks_in_percentage_points_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y"))
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=1_000), epsilon=1.0)
    for call in (effect.non_inferiority, effect.equivalence):
        with pytest.raises(DpcausalError, match=r"0\.02 for 2 percentage points"):
            call(2)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"treated_share": 30}, r"0\.3 for 30 %"),
        ({"n": "2000"}, "without quotation marks"),
        ({"typical": {"x": 10}}, r"typical=\{"),
        ({"typical": {"x": "0,1"}}, r"typical=\{"),
        ({"typical": "x:0,1"}, r"typical=\{"),
    ],
)
def test_expectations_that_cannot_be_say_what_to_write(given: dict[str, Any], hint: str) -> None:
    with pytest.raises(DpcausalError, match=f"Hint: .*{hint}"):
        dpc.Rehearsal(SCHEMA, given.pop("n", 2_000), **given)


@pytest.mark.parametrize("width", [0, -1, 2, "0,1", float("nan")])
def test_a_target_width_that_cannot_be_one_is_refused(width: Any) -> None:
    with pytest.raises(StudyError, match="The target width must be a number above 0, and below 1"):
        dpc.plan(dpc.DifferenceInMeans(), REHEARSAL, dpc.Guarantee(epsilon=1.0), covariates=[], width=width)


def test_a_guardrail_that_can_never_fail_is_refused() -> None:
    metric = dpc.Metric(dpc.Binary("y", missing=0))
    rule = dpc.DecisionRule(guardrails=[dpc.Guardrail("y", 2)])
    with pytest.raises(StudyError, match=r"0\.02 for 2 percentage points"):
        dpc.Experiment(name="a", treatment=dpc.Treatment("t"), metrics=[metric], epsilon=1.0, rule=rule)


@pytest.mark.parametrize(("smallest", "hint"), [(-0.1, "sign"), ("0,1", "sign"), (float("nan"), "sign"), (50, "unit")])
def test_a_smallest_worthwhile_effect_that_cannot_be_one_is_refused(smallest: Any, hint: str) -> None:
    study = dpc.Study.from_toml(STUDY)
    with pytest.raises(StudyError, match=f"Hint: .*{hint}"):
        dpc.Report.of(EFFECT, study, date=dt.date(2026, 1, 1), smallest_worthwhile_effect=smallest)


def test_a_report_of_a_file_refuses_the_study_of_another_estimator(tmp_path: Path) -> None:
    other = dpc.Study(name="a", question="b?", schema=SCHEMA, estimator=dpc.RegressionAdjustment(["x"]), epsilon=1.0)
    (tmp_path / "effect.json").write_text(EFFECT.to_json())
    for study, out, words in (
        (
            other.to_toml(),
            "report.html",
            "with estimator 'regression_adjustment', not one with estimator 'difference_in_means'",
        ),
        (STUDY, "no folder/report.html", "cannot be written"),
        (STUDY, "report.html", "Wrote"),
    ):
        (tmp_path / "study.toml").write_text(study)
        files = ("report", tmp_path / "effect.json", "--study", tmp_path / "study.toml", "--out", tmp_path / out)
        assert words in " ".join(CliRunner().invoke(app, [*map(str, files)]).output.split())


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("epsilon = 1,0", "a point before the decimals"),
        ("epsilon = 50 %", "0.5 for 50 %"),
        ("name = \u201ctrial\u201d", "straight quotation marks"),
        ("name = trial", "texts between quotation marks"),
        ("aliases = { männlich = [1] }", "letters beyond A to Z"),
        ("blood pressure = 1", "a blank needs quotation marks"),
        ("name = ", "check the line"),
    ],
)
def test_slips_in_toml_are_answered_with_what_to_write(line: str, hint: str) -> None:
    with pytest.raises(StudyError, match=f"Hint: .*{hint}"):
        dpc.Study.from_toml(f"version = 2\n{line}\n")


FUNCTIONS = [name for name in dpc.__all__ if type(getattr(dpc, name)).__name__ == "function"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_answers_an_unknown_argument(name: str) -> None:
    with pytest.raises(DpcausalError, match=rf"write .*{name}\(|Write .*{name}\("):
        getattr(dpc, name)(no_such_argument=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dpc.DoublyRobust(covariates=3), "names of covariates, not 3"),  # type: ignore[arg-type]
        (lambda: dpc.Stratification(by=3), "names of covariates, not 3"),  # type: ignore[arg-type]
        (lambda: dpc.Polynomial(2), "names of covariates, not 2"),  # type: ignore[arg-type]
        (lambda: dpc.Winsorised("difference_in_means"), "an object of its class"),  # type: ignore[arg-type]
        (lambda: dpc.plan("ols", REHEARSAL, dpc.Guarantee(epsilon=1)), "an object of its class"),  # type: ignore[arg-type]
        (lambda: dpc.estimate_family(REHEARSAL, dpc.DifferenceInMeans(), epsilon=1), "a list of vaults"),  # type: ignore[arg-type]
        (lambda: dpc.sequential_looks(3, planned_n=5), "a list of effects"),  # type: ignore[arg-type]
        (lambda: dpc.adjusted_p_values(0.1), "a list of p-values"),  # type: ignore[arg-type]
        (lambda: EFFECT.to_json("effect.json"), "to_json takes no argument"),  # type: ignore[call-arg]
        (CURVE.effect, "curve.effect needs X"),
        (lambda: dpc.Study.from_toml(STUDY).prepare(pd.DataFrame()), "a Vault, a Rehearsal"),  # type: ignore[arg-type]
        (lambda: dpc.Site("no folder"), "There is no site in no folder"),  # type: ignore[arg-type]
        (EFFECT.number_needed_to_treat, "a difference of risks"),
        (lambda: dpc.Survival(horizon=365), r"did you mean grid="),  # type: ignore[call-arg]
        (lambda: dpc.Spline(["x"], knots=3), r"did you mean pieces="),  # type: ignore[call-arg]
    ],
)
def test_what_is_of_another_kind_is_refused_with_a_sentence(call: Any, words: str) -> None:
    with pytest.raises(DpcausalError, match=words):
        call()


def test_overlap_and_balance_take_covariates_alike_and_strata_may_be_a_text() -> None:
    assert dpc.Overlap(["x"]).covariates == dpc.Balance(["x"]).covariates == dpc.Overlap("x").covariates == ("x",)
    assert dpc.Stratification(by="x + z").by == ("x", "z")


def test_results_of_a_console_are_short() -> None:
    planned = dpc.plan(dpc.DifferenceInMeans(), REHEARSAL, dpc.Guarantee(epsilon=1.0), covariates=[])
    assert all(len(repr(each)) < 400 for each in (EFFECT, CURVE, planned))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("plan study.toml --n 5 --epsilon 2", "Epsilon is in the study file"),
        ("ledger create a.db --budget 3", "The budget is --epsilon and --delta"),
        ("ledger create a.db --epsilom 3", "--epsilon"),
        ("run study.toml --seed 1", "Noise has no seed"),
        ("plan table.csv --n 5", "table.csv is not a study"),
    ],
)
def test_options_and_files_that_are_others_are_answered(
    words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    Path("table.csv").write_text("t,y\n0,1\n")
    assert told in " ".join(CliRunner().invoke(app, words.split()).output.split())
    assert "--json" not in CliRunner().invoke(app, words.split()).output


def test_a_ledger_that_another_program_holds_says_so(tmp_path: Path) -> None:
    locked = OperationalError("", {}, sqlite3.OperationalError("database is locked"))
    locked.__cause__ = locked.orig
    told = Database(tmp_path / "l.db")._failure(locked)
    assert "is held by another program" in str(told)
