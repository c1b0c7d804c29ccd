"""Indicators and levels for missing cells adjust as other covariates do, and effects say how cells counted."""

import math
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators import missing_covariates
from dpcausal.estimators.missing_covariates import missing_price
from dpcausal.queries import MissingCovariates
from dpcausal.results.effect import Estimator
from dpcausal.schema.columns import Column
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 10),
    covariates=[
        dpc.Real("lab", 0, 10, missing=5, indicator=True),
        dpc.Category("smoking", ["never", "ever", "not recorded"]),
    ],
)
NAMES = ("lab", "lab is missing", "smoking")
HANDLED = "a covariate that is missing or not declared counted as: lab 5 with an indicator, smoking not recorded"
ADJUSTING: dict[str, Estimator] = {
    "stratification": dpc.Stratification(by=[dpc.Cut("lab", [3, 7]), "lab is missing", "smoking"]),
    "regression": dpc.RegressionAdjustment(covariates=NAMES),
    "doubly robust": dpc.DoublyRobust(covariates=NAMES),
    "weighting": dpc.InverseWeighting(covariates=NAMES, estimand="ATO"),
    "winsorised": dpc.Winsorised(dpc.RegressionAdjustment(covariates=NAMES)),
}


def table(n: int = 40_000) -> pa.Table:
    """Units whose laboratory value or smoking is missing are treated more often, and worse off; the effect is 1."""
    random = np.random.default_rng(1)
    lab, away = random.uniform(2, 8, n), random.random(n) < 0.3
    smoking = random.choice(["never", "ever", "unknown"], n, p=[0.5, 0.3, 0.2])
    gone = smoking == "unknown"
    treated = random.random(n) < 0.35 + 0.25 * away + 0.15 * gone
    y = 3 + 0.2 * np.where(away, 0, lab - 5) + 1.5 * away + 0.8 * gone + treated + random.uniform(-1, 1, n)
    return pa.table({"t": treated.astype(int), "y": y, "lab": np.where(away, np.nan, lab), "smoking": smoking})


@pytest.mark.parametrize("name", ADJUSTING)
def test_missingness_that_confounds_is_adjusted_for(name: str) -> None:
    source = fresh_noise(table(), SCHEMA)
    plain = dpc.DifferenceInMeans().estimate(source, epsilon=10.0).estimate - 1
    effect = ADJUSTING[name].estimate(source, epsilon=10.0)
    assert plain > 0.4
    assert abs(effect.estimate - 1) < 0.15
    assert effect.assumptions.count(HANDLED) == 1


def test_without_its_indicator_missingness_is_left_in() -> None:
    left_in = dpc.RegressionAdjustment(covariates=["lab", "smoking"]).estimate(
        fresh_noise(table(), SCHEMA), epsilon=10.0
    )
    assert left_in.estimate > 1.2
    assert "a covariate that is missing or not declared counted as: lab 5, smoking not recorded" in left_in.assumptions


def test_nothing_is_said_of_covariates_that_are_not_used() -> None:
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    assert not any("missing covariate" in text for text in effect.assumptions)
    only = dpc.Stratification(by=["smoking"]).estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=1.0)
    assert "a covariate that is missing or not declared counted as: smoking not recorded" in only.assumptions
    assert replace(SCHEMA, covariates=()).covariate_handling(["lab"]) == ()


def test_a_missing_value_counts_as_the_middle_of_its_scale_and_the_effect_says_so() -> None:
    """Models see a number by its score, so what a missing one counts as follows from the scale, not from the bounds."""
    random = np.random.default_rng(2)
    n = 20_000
    crp = np.where(random.random(n) < 0.2, np.nan, np.exp(random.normal(2, 0.6, n)))
    age = random.normal(60, 8, n)
    treated = (random.random(n) < 0.5).astype(int)
    y = np.clip(5 + treated + random.normal(0, 1, n), 0, 10)
    covariates = [dpc.Real("crp", 0.1, 500), dpc.Real("age", 18, 100, typical=(45, 75))]
    schema = replace(SCHEMA, covariates=covariates)
    source = fresh_noise(pa.table({"t": treated, "y": y, "crp": crp, "age": age}), schema)
    for estimator in (
        dpc.RegressionAdjustment(covariates=["crp", "age"]),
        dpc.DoublyRobust(covariates=["crp", "age"]),
        dpc.InverseWeighting(covariates=["crp", "age"]),
    ):
        said = [text for text in estimator.estimate(source, epsilon=4.0).assumptions if "a covariate" in text]
        found = re.fullmatch(
            r"a covariate that is missing or not declared counted as: crp ([\d.]+) with an indicator, age ([\d.]+)",
            said[0],
        )
        assert found
        assert 5 < float(found[1]) < 10  # the median is 7.4; the middle of the bounds is 250
        assert 45 < float(found[2]) < 75
        assert len(said) == 1


FOUR = ["a", "b", "c", "d"]


def confounded(missing: float, n: int = 20_000) -> pa.Table:
    """Four strong confounders; each lacks this share of its values, completely at random. The effect is 1."""
    random = np.random.default_rng(3)
    x = random.normal(0, 1, (4, n))
    treated = (random.random(n) < 1 / (1 + np.exp(-0.6 * x.sum(axis=0)))).astype(int)
    y = np.clip(10 + treated + 0.65 * x.sum(axis=0) + random.normal(0, 1, n), 0, 20)
    seen = np.where(random.random((4, n)) < missing, np.nan, x)
    return pa.table({"t": treated, "y": y, **dict(zip(FOUR, seen, strict=True))})


def typical(*, indicator: bool = False, missing: float | None = None) -> dpc.Schema:
    columns = [
        dpc.Real(name, -6, 6, missing, typical=(-1.645, 1.645), transform="linear", indicator=indicator)
        for name in FOUR
    ]
    return dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 20, missing=10), columns)


@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize("kind", [dpc.RegressionAdjustment, dpc.DoublyRobust, dpc.InverseWeighting])
def test_intervals_allow_for_values_that_numbers_with_typical_ones_lack(
    kind: type[dpc.RegressionAdjustment], *, indicator: bool
) -> None:
    """Of 11 such tables the interval covered none as long as nobody counted; an indicator takes nothing off."""
    effect = kind(covariates=FOUR).estimate(fresh_noise(confounded(0.1), typical(indicator=indicator)), epsilon=4.0)
    low, high = effect.interval()
    assert low < 1 < high < low + 0.8
    assert effect.standard_error
    assert abs(effect.estimate - 1) > 1.96 * effect.standard_error  # without the allowance it would not cover
    assert any(note.startswith("units without a value: a about 1") for note in effect.notes)
    assert not any("nobody counts" in text for text in effect.assumptions)


def test_counting_values_that_are_not_missing_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = dpc.DoublyRobust(covariates=FOUR, limit=5.0)
    plan = estimator.estimate(dpc.Rehearsal(typical(), n=20_000), epsilon=1.0)
    assert sum(each.epsilon for each in plan.receipts) == pytest.approx(1)
    monkeypatch.setattr(missing_covariates, "_WORST", 0.0)
    before = estimator.estimate(dpc.Rehearsal(typical(), n=20_000), epsilon=1.0)
    assert any("nobody counts them: a, b, c, d" in text for text in before.assumptions)
    widths = [high - low for low, high in (plan.interval(), before.interval())]
    assert widths[1] < widths[0] < 1.03 * widths[1]


def test_values_with_a_declared_one_in_their_place_are_the_analysts_statement() -> None:
    source = fresh_noise(confounded(0.1), typical(missing=0))
    effect = dpc.RegressionAdjustment(covariates=FOUR).estimate(source, epsilon=4.0)
    assert [receipt.query for receipt in effect.receipts] == ["regression_moments"]
    assert any("nobody counts them: a, b, c, d" in text for text in effect.assumptions)


@pytest.mark.parametrize("n", [10, 5_000, 20_000, 10**6, 10**10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 0.7, 1.0, 3.3, 50.0])
def test_price_of_counting_covariates_is_a_small_power_of_two_and_noise_hides_little(n: int, epsilon: float) -> None:
    rehearsal, most = dpc.Rehearsal(typical(), n=n), dpc.Guarantee(epsilon=epsilon)
    price = missing_price(MissingCovariates(FOUR), rehearsal, most, 1 / 30)
    noise_sd = 4 * 2**0.5 / n
    if price is None:
        assert noise_sd / (epsilon / 30) > 0.005 or epsilon < 1e-4
        return
    assert math.log2(price.epsilon).is_integer()
    assert price.epsilon <= epsilon / 30
    assert noise_sd / price.epsilon <= 0.01001
    assert noise_sd / price.epsilon >= 0.00249 or price.epsilon == 2**-19  # no more is paid than is of use


def test_a_trial_does_not_pay_for_values_that_confound_nothing() -> None:
    observational = dpc.Study(
        name="s", question="?", schema=typical(), estimator=dpc.RegressionAdjustment(FOUR), epsilon=4
    )
    for study, asked in ((replace(observational, design="trial"), 1), (observational, 2)):
        result = study.evaluate(fresh_noise(confounded(0.0), typical()))
        assert result.effect
        assert len(result.effect.receipts) == asked
        assert not any("nobody counts" in text for text in result.effect.assumptions)


NUMBERS = [dpc.Real(name, -6, 6) for name in FOUR]
LISTED: dict[str, list[Column]] = {
    "binary": [dpc.Binary(name) for name in FOUR],
    "category": [dpc.Category(name, ["low", "middle", "high"]) for name in FOUR],
}


def listed(kind: str, how: str, share: float, n: int = 20_000) -> pa.Table:
    """Four strong confounders of two or three values; each lacks this share, by chance or by value. The effect is 1."""
    random = np.random.default_rng(5)
    codes = random.integers(0, 2 if kind == "binary" else 3, (4, n))
    x = ((codes - codes.mean()) / codes.std()).sum(axis=0)
    treated = (random.random(n) < 1 / (1 + np.exp(-0.5 * x))).astype(int)
    y = np.clip(10 + treated + 0.6 * x + random.normal(0, 1, n), 0, 20)
    gone = random.random((4, n)) < (share if how == "by chance" else 2 * share * (codes == 1))
    values = np.array([0, 1] if kind == "binary" else ["low", "middle", "high"], dtype=object)
    seen = {
        name: pa.array(np.where(gone[at], np.array(None), values[codes[at]]).tolist()) for at, name in enumerate(FOUR)
    }
    return pa.table({"t": treated, "y": y, **seen})


def of_lists(kind: str) -> dpc.Schema:
    return dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 20, missing=10), LISTED[kind])


COMPARING: dict[str, Estimator] = {
    "regression": dpc.RegressionAdjustment(FOUR),
    "doubly robust": dpc.DoublyRobust(FOUR),
    "weighting": dpc.InverseWeighting(FOUR, estimand="ATO"),
    "stratification": dpc.Stratification(by=FOUR),
}


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize(("kind", "how"), [("binary", "by chance"), ("binary", "by value"), ("category", "by chance")])
def test_intervals_allow_for_values_that_listed_covariates_lack(name: str, kind: str, how: str) -> None:
    """As long as nobody counted them, they covered in 3 of 270 runs with a tenth missing in two or four."""
    effect = COMPARING[name].estimate(fresh_noise(listed(kind, how, 0.1), of_lists(kind)), epsilon=4.0)
    low, high = effect.interval()
    assert low < 1 < high < low + 1
    assert any(note.startswith("units without a value: a about ") for note in effect.notes)
    assert not any("nobody counts" in text for text in effect.assumptions)
    assert "a is missing" in effect.method


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize("kind", ["listed", "numbers"])
def test_reports_take_the_indicators_that_answers_add(name: str, kind: str) -> None:
    """Otherwise it would depend on the data whether there is a report."""
    schema = of_lists("binary") if kind == "listed" else replace(typical(), covariates=NUMBERS)
    table = listed("binary", "by chance", 0.1, 5_000) if kind == "listed" else confounded(0.1, 5_000)
    study = dpc.Study(name="s", question="?", schema=schema, estimator=COMPARING[name], epsilon=20)
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=20))
    effect = study.evaluate(vault).effect
    assert effect
    assert "is missing" in effect.method
    assert dpc.Report.of(effect, study, vault.ledger, date=date(2026, 1, 1)).verdict.kind


def test_one_count_is_asked_where_nothing_is_missing_and_all_where_some_is() -> None:
    queries = []
    for share in (0.0, 0.1):
        source = fresh_noise(listed("binary", "by chance", share), of_lists("binary"))
        effect = dpc.RegressionAdjustment(FOUR).estimate(source, epsilon=1.0)
        queries.append([each.query for each in effect.receipts])
        assert sum(each.epsilon for each in effect.receipts) == pytest.approx(1)
        assert len([text for text in effect.notes if "units without a value" in text]) == (share > 0)
    assert queries == [
        ["missing_covariates", "regression_moments"],
        ["missing_covariates"] * 2 + ["regression_moments"],
    ]


def test_where_noise_hides_which_covariate_lacks_values_any_of_them_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_covariates, "_EACH_PART", 1e-6)
    source = fresh_noise(listed("binary", "by chance", 0.02), of_lists("binary"))
    effect = dpc.RegressionAdjustment(FOUR).estimate(source, epsilon=1.0)
    assert "units without a value: too few of each to tell of which (noisy)" in effect.notes[0]
    assert effect.bias_bound > 0.05


def test_a_listed_value_that_is_declared_for_missing_ones_is_not_counted() -> None:
    columns = [dpc.Category(name, ["low", "middle", "high", "unknown"], missing="unknown") for name in FOUR]
    schema = replace(of_lists("category"), covariates=columns)
    effect = dpc.RegressionAdjustment(FOUR).estimate(
        fresh_noise(listed("category", "by chance", 0.1), schema), epsilon=4.0
    )
    assert [each.query for each in effect.receipts] == ["regression_moments"]
    assert not any("nobody counts" in text for text in effect.assumptions)


def test_declared_indicators_of_listed_covariates_enter_models_and_are_counted() -> None:
    columns = [dpc.Binary(name, missing=0, indicator=True) for name in FOUR]
    schema = replace(of_lists("binary"), covariates=columns)
    names = [column.name for column in schema.covariates]
    assert names[:2] == ["a", "a is missing"]
    source = fresh_noise(listed("binary", "by chance", 0.1), schema)
    effect = dpc.RegressionAdjustment(names).estimate(source, epsilon=4.0)
    low, high = effect.interval()
    assert low < 1 < high
    assert "missing_covariates" in [each.query for each in effect.receipts]


@pytest.mark.parametrize("propensity", [None, 0.5])
def test_learners_count_where_treatment_was_not_randomised(propensity: float | None) -> None:
    learner = dpc.RLearner(covariates=FOUR, basis=dpc.Polynomial(["a"]), propensity=propensity)
    curve = learner.estimate(dpc.Rehearsal(typical(), n=20_000), epsilon=4.0)
    assert ("missing_covariates" in [each.query for each in curve.receipts]) == (propensity is None)
    assert sum(each.epsilon for each in curve.receipts) == pytest.approx(4)
