"""A report is refused if its parts are not of one study, table and ledger, as far as public data shows."""

import dataclasses
import json
from contextlib import nullcontext
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, StudyError
from dpcausal.estimators import average
from dpcausal.report import Picture, Report
from dpcausal.results.effect import Estimator
from dpcausal.results.site_share import SiteShare
from dpcausal.testing import synthetic_table
from tests.report.conftest import Made, like, part

DAY = date(2026, 1, 31)


def other_vault(table: pa.Table, schema: dpc.Schema) -> dpc.Vault:
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10, delta=1e-5))


def test_consistent_parts_make_a_report(vault: dpc.Vault, study: dpc.Study) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    overlap = dpc.Overlap(by=["race"]).estimate(vault, epsilon=1.0)
    report = Report.of(effect, study, vault.ledger, diagnoses=[overlap], date=DAY)
    assert dict(part(report, "audit_trail").items)["receipts in this ledger"] == "2 of 2"
    assert len(part(report, "audit_trail").tables[0].lines) == 2
    assert dict(part(report, "privacy").items)["everything ever released"] == "epsilon 2, delta 0, in 2 answers"
    rehearsal = dpc.Overlap(by=["race"]).estimate(dpc.Rehearsal(study.schema, n=1_000), epsilon=1.0)
    assert Report.of(study.rehearsed(1_000), study, vault.ledger, diagnoses=[rehearsal], date=DAY).effect.rehearsed


def test_effect_may_leave_the_delta_of_its_study_unspent(vault: dpc.Vault, study: dpc.Study) -> None:
    generous = dataclasses.replace(study, delta=1e-6)
    effect = generous.estimator.estimate(vault, epsilon=1.0, delta=1e-6)
    assert effect.guarantee.delta == 0
    shown = Report.of(effect, generous, vault.ledger, date=DAY).effect
    assert shown == effect
    part_of_it = dataclasses.replace(effect, guarantee=dpc.Guarantee(epsilon=1.0, delta=2e-7))
    assert Report.of(part_of_it, generous, vault.ledger, date=DAY).effect == part_of_it


def test_rehearsed_diagnosis_of_a_released_effect_is_refused(vault: dpc.Vault, study: dpc.Study) -> None:
    effect, overlap = study.estimator.estimate(vault, epsilon=1.0), dpc.Overlap(by=["race"])
    expected = overlap.estimate(dpc.Rehearsal(study.schema, n=effect.n), epsilon=1.0)
    with pytest.raises(StudyError, match="effect's status, 'released', not overlap with 'rehearsed'"):
        Report.of(effect, study, date=DAY, diagnoses=[expected])
    with pytest.raises(StudyError, match="effect's status, 'rehearsed', not overlap with 'released'"):
        Report.of(study.rehearsed(effect.n), study, date=DAY, diagnoses=[overlap.estimate(vault, epsilon=1.0)])


def test_diagnosis_of_other_arms_or_another_table_is_refused(
    vault: dpc.Vault, table: pa.Table, study: dpc.Study
) -> None:
    effect, overlap = study.estimator.estimate(vault, epsilon=1.0), dpc.Overlap(by=["race"])
    other = dataclasses.replace(
        study.schema, treatment=dpc.Treatment("treat", labels=("before", "after"), undeclared=0)
    )
    with pytest.raises(StudyError, match="effect's arms"):
        Report.of(effect, date=DAY, diagnoses=[overlap.estimate(other_vault(table, other), epsilon=1.0)])
    half = overlap.estimate(other_vault(table.slice(0, 500), study.schema), epsilon=1.0)
    with pytest.raises(StudyError, match="effect's number of units, 1000, not overlap with 500"):
        Report.of(effect, date=DAY, diagnoses=[half])


@pytest.mark.parametrize("wrong", [None, "overlap", Picture("a", b"", "b")])
def test_anything_but_a_diagnosis_is_refused(made: Made, wrong: Any) -> None:
    with pytest.raises(StudyError, match="results of Overlap and Balance"):
        Report.of(made(), date=DAY, diagnoses=[wrong])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": ("usual care", "drug")}, "arms"),
        ({"outcome": "points"}, "outcome 'score', not one with 'points'"),
        ({"guarantee": dpc.Guarantee(epsilon=2.0)}, "epsilon 1.0, not one with 2.0"),
        ({"guarantee": dpc.Guarantee(epsilon=1.0, delta=1e-6)}, "delta"),
        ({"guarantee": dpc.Guarantee(epsilon=1.0, protects="outcome")}, "protects 'record', not one with 'outcome'"),
        ({"estimator": {"name": "stratification", "by": ["race"], "cap": 4}}, r"with cap 3, not one with cap 4\."),
        ({"declared": "of others"}, "columns that it uses as the study declares them"),
    ],
)
def test_effect_of_another_study_is_refused(
    made: Made, study: dpc.Study, changes: dict[str, Any], message: str
) -> None:
    Report.of(made(**changes), date=DAY)
    with pytest.raises(StudyError, match=message):
        Report.of(made(**changes), study, date=DAY)


BY_FORMULA = {
    each: dpc.FormulaEstimator(
        sums={"n": "1", "y": "centred(score)", "x": "centred(age)"},
        formula=f"middle(score) + {each} / n",
        estimand=f"mean of {each}",
    )
    for each in ("y", "x")
}
ESTIMATED: tuple[Estimator, ...] = (
    dpc.DifferenceInMeans(),
    *BY_FORMULA.values(),
    dpc.RegressionAdjustment(covariates=["age"]),
    dpc.RegressionAdjustment(covariates=["age", "race"]),
    dpc.DoublyRobust(covariates=["age"]),
    dpc.DoublyRobust(covariates=["age"], clip=0.2),
    dpc.InverseWeighting(covariates=["age"]),
    dpc.InverseWeighting(covariates=["age"], estimand="ATT"),
    dpc.Stratification(by=("race",), cap=3),
    dpc.Stratification(by=("race",), cap=5),
    dpc.Stratification(by=("age",)),
    dpc.Winsorised(),
    dpc.QuantileEffects(),
)


def test_effect_of_another_estimator_is_refused(study: dpc.Study, schema: dpc.Schema) -> None:
    """Also where only the covariates, the estimand, the cap or the formula differ; pooled or summed effects alike."""
    plain = dataclasses.replace(study, confounders={}, design="trial")
    studies = [dataclasses.replace(plain, estimator=each) for each in ESTIMATED]
    effects = [each.rehearsed(1_000) for each in studies]
    for place, each in enumerate(studies):
        for other, effect in enumerate(effects):
            with nullcontext() if other == place else pytest.raises(StudyError, match="an effect of this study, with"):
                Report.of(effect, each, date=DAY)
    both = dict.fromkeys(("north", "south"), effects[0])
    with pytest.raises(StudyError, match="with estimator 'regression_adjustment', not one"):
        Report.of(dpc.pool(both), studies[3], date=DAY)
    Report.of(dpc.pool(both), studies[0], date=DAY)


def test_words_of_an_effect_decide_nothing(study: dpc.Study) -> None:
    reworded = {"method": "strata", "estimand": "ATE", "assumptions": ("all is well",), "notes": ("a note",)}
    effect = dataclasses.replace(study.rehearsed(1_000), **reworded)  # type: ignore[arg-type]
    assert Report.of(effect, study, date=DAY).effect.warnings == ()
    both = dpc.pool({"north": effect, "south": study.rehearsed(1_000)})
    assert both.estimator == effect.estimator


def test_effect_that_an_older_version_saved_makes_a_report_that_says_what_was_not_checked(study: dpc.Study) -> None:
    document = json.loads(study.rehearsed(1_000).to_json())
    for name in ("estimator", "declared", "defining", "is_risk_difference"):
        del document[name]
    older = dpc.Effect.from_json(json.dumps(document))
    warnings = dict(part(Report.of(older, study, date=DAY), "summary").items)["Warning"]
    assert "Whether the estimator is the study's was not checked" in warnings
    pooled = dpc.pool({"north": older, "south": study.rehearsed(1_000)})
    assert not pooled.estimator
    with pytest.raises(QueryError, match="the same estimand at all sites"):
        dpc.pool({"north": older, "south": dataclasses.replace(study.rehearsed(1_000), estimand="other words")})


NUMBERED = dpc.Schema(
    treatment=dpc.Treatment("treat"),
    outcome=dpc.Real("score", 0, 10),
    covariates=[dpc.Real("lab 1", 0, 1), dpc.Real("lab 2", 0, 1), dpc.Binary("cut"), dpc.Binary("at")],
)


def mean_of(estimand: str) -> dpc.FormulaEstimator:
    sums = {"n": "1", "y": "centred(score)"}
    return dpc.FormulaEstimator(sums=sums, formula="middle(score) + y / n", estimand=estimand)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            (kind(covariates=["lab 1"]), kind(covariates=["lab 2"]))
            for kind in (dpc.RegressionAdjustment, dpc.DoublyRobust, dpc.InverseWeighting)
        ),
        (dpc.RegressionAdjustment(covariates=["lab 1", "cut"]), dpc.RegressionAdjustment(covariates=["lab 1", "at"])),
        (dpc.Stratification(by=("lab 1",)), dpc.Stratification(by=("lab 2",))),
        (dpc.Stratification(by=("cut",), cap=3), dpc.Stratification(by=("cut",), cap=30)),
        (dpc.Winsorised(dpc.Stratification(by=("lab 1",))), dpc.Winsorised(dpc.Stratification(by=("lab 2",)))),
        (dpc.RegressionDiscontinuity("lab 1", 0.5, 0.2), dpc.RegressionDiscontinuity("lab 1", 0.5, 0.3)),
        (mean_of("mean score"), mean_of("mean score of adults")),
        (mean_of("mean score"), mean_of("mean score; weighted")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_estimators_that_differ_in_one_name_or_number_are_told_apart(one: Estimator, other: Estimator) -> None:
    first, second = (
        dpc.Study(name="a", question="?", schema=NUMBERED, estimator=each, epsilon=1.0) for each in (one, other)
    )
    for asked, strange in ((first, second), (second, first)):
        effect = asked.rehearsed(1_000)
        Report.of(effect, asked, date=DAY)
        with pytest.raises(StudyError, match="an effect of this study, with"):
            Report.of(effect, strange, date=DAY)
        if not asked.advice_for_sites:
            Report.of(dpc.pool(dict.fromkeys(("north", "south"), effect)), asked, date=DAY)


def test_diagnosis_of_another_version_of_the_data_is_refused(vault: dpc.Vault, study: dpc.Study) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    overlap = dpc.Overlap(by=["race"]).estimate(vault, epsilon=1.0)
    later = dataclasses.replace(overlap, receipts=(dataclasses.replace(overlap.receipts[0], as_of="2027-01-01"),))
    with pytest.raises(StudyError, match="effect's version of the data"):
        Report.of(effect, study, date=DAY, diagnoses=[later])


def test_effect_with_other_bounds_is_refused(vault: dpc.Vault, study: dpc.Study) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    wider = dataclasses.replace(study.schema, outcome=dpc.Real("score", 0, 100))
    with pytest.raises(StudyError, match="columns that it uses as the study declares them"):
        Report.of(effect, dataclasses.replace(study, schema=wider), date=DAY)


def test_pooled_effect_may_have_the_epsilon_of_any_site(
    made: Made, study: dpc.Study, sites: tuple[SiteShare, ...]
) -> None:
    many = dataclasses.replace(study, epsilons={"north": 2.0})
    effect = made(guarantee=dpc.Guarantee(epsilon=2.0), sites=sites)
    assert Report.of(effect, many, date=DAY).effect == effect
    for wrong in (
        dataclasses.replace(effect, sites=()),
        dataclasses.replace(effect, guarantee=dpc.Guarantee(epsilon=3)),
    ):
        with pytest.raises(StudyError, match="epsilon"):
            Report.of(wrong, many, date=DAY)


def test_pooled_effect_belongs_to_its_study(table: pa.Table, study: dpc.Study, schema: dpc.Schema) -> None:
    vaults = {site: other_vault(table, schema) for site in ("north", "south")}
    effects = {site: study.estimator.estimate(vault, epsilon=1.0) for site, vault in vaults.items()}
    pooled = dpc.pool(effects)
    report = Report.of(pooled, study, vaults["north"].ledger, date=DAY)
    assert dict(part(report, "audit_trail").items)["receipts in this ledger"] == "1 of 2"


def test_ledger_that_did_not_pay_is_refused(vault: dpc.Vault, table: pa.Table, study: dpc.Study) -> None:
    effect = study.estimator.estimate(vault, epsilon=1.0)
    paid = Report.of(effect, study, vault.ledger, date=DAY)
    assert dict(part(paid, "privacy").items)["everything ever released"] == "epsilon 1, delta 0, in 1 answer"
    other = other_vault(table, study.schema)
    with pytest.raises(StudyError, match="all 1 receipts, not one with 0 of them"):
        Report.of(effect, study, other.ledger, date=DAY)
    overlap = dpc.Overlap(by=["race"]).estimate(other, epsilon=1.0)
    with pytest.raises(StudyError, match="all 2 receipts, not one with 1 of them"):
        Report.of(effect, study, vault.ledger, diagnoses=[overlap], date=DAY)


def test_estimator_is_described_without_its_defaults(made: Made, study: dpc.Study) -> None:
    for estimator, text in (
        (dpc.DifferenceInMeans(), "DifferenceInMeans"),
        (dpc.DoublyRobust(covariates=["age", "race"]), "DoublyRobust (covariates age; race)"),
        (dpc.DoublyRobust(covariates=["age"], clip=0.2), "DoublyRobust (covariates age, clip 0.2)"),
    ):
        named = dataclasses.replace(study, estimator=estimator, confounders={})
        report = Report.of(made(**like(named)), named, date=DAY)
        assert dict(part(report, "inputs").items)["estimator"] == text


COSTS = dpc.Schema(
    treatment=dpc.Treatment("arm", arms=("usual", "drug", "other"), compare="drug"),
    outcome=dpc.Real("cost", 0, 200_000),
    covariates=[dpc.Category("ward", ["a", "b", "c"]), dpc.Binary("ill"), dpc.Real("age", 18, 100)],
    entry="ward",
)
COMPLETE = dataclasses.replace(
    COSTS,
    treatment=dpc.Treatment("arm", arms=("usual", "drug"), undeclared="usual"),
    outcome=dpc.Real("cost", 0, 200_000, missing=0),
    covariates=COSTS.covariates[:2],
)
REGISTERED = [
    *((average.estimator_for(name, COMPLETE), COMPLETE) for name in ("exact_matching", "propensity_matching")),
    *(
        (average.estimator_for(name, COSTS), COSTS)
        for name in average.ESTIMATORS
        if name not in {"exact_matching", "propensity_matching"}
    ),
    (dpc.Winsorised(dpc.RegressionAdjustment(covariates=["age", "ward"])), COSTS),
    (dpc.Winsorised(dpc.Stratification(by=["ward", "age"])), COSTS),
    (dpc.Winsorised(dpc.ArmContrasts()), COSTS),
]


@pytest.mark.parametrize(("estimator", "schema"), REGISTERED, ids=lambda each: type(each).__name__)
def test_every_effect_of_a_study_makes_a_report(estimator: Estimator, schema: dpc.Schema) -> None:
    random = np.random.default_rng(0)
    columns = synthetic_table(schema, 1_000)
    costs = pa.array(np.exp(random.normal(6, 0.7, 1_000)))
    table = columns.set_column(columns.column_names.index("cost"), "cost", costs)
    study = dpc.Study(name="costs", question="?", schema=schema, estimator=estimator, epsilon=4.0)
    vault = other_vault(table, schema)
    result = study.prepare(vault).run()
    assert result.effect is not None
    effect = dpc.Effect.from_json(result.effect.to_json())
    if isinstance(estimator, dpc.Winsorised):
        assert not any("within 0 and 200,000" in each for each in effect.assumptions)
    report = Report.of(effect, study, vault.ledger, date=DAY)
    assert dict(part(report, "inputs").items)["estimator"].startswith(type(estimator).__name__)


def test_winsorised_effect_of_other_arms_is_refused() -> None:
    study = dpc.Study(name="a", question="?", schema=COMPLETE, estimator=dpc.Winsorised(), epsilon=1.0)
    outside = dpc.Treatment("arm", arms=("usual", "drug"))
    other = dataclasses.replace(study, schema=dataclasses.replace(COMPLETE, treatment=outside))
    with pytest.raises(StudyError, match="columns that it uses as the study declares them"):
        Report.of(other.rehearsed(1_000), study, date=DAY)
