"""Formulas of sums agree with NumPy, state the noise in them, and have no interval where noise bends them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators import plausibility
from dpcausal.estimators.average import estimator_for
from dpcausal.testing import check_estimator, standard_schema
from tests.support.noise import seeded

SCHEMA = dpc.Schema(
    dpc.Treatment("treat"), dpc.Real("score", 0, 100), [dpc.Real("dose", 0, 40), dpc.Category("sex", ["f", "m"])]
)
SLOPE = dpc.FormulaEstimator(
    estimand="mean difference in score for one more mg of dose",
    contrast=("a dose", "1 mg more"),
    formula="covariance(dose, score) / variance(dose)",
    variance="(variance(score) - estimate * covariance(dose, score)) / variance(dose) / (n - 2)",
)
BY_SUMS = replace(
    SLOPE,
    sums={
        "x": "centred(dose)",
        "y": "centred(score)",
        "xy": "centred(dose)*centred(score)",
        "xx": "deficit(dose)",
        "yy": "deficit(score)",
    },
    definitions={
        "sxx": "n * half(dose)**2 - xx - x**2 / n",
        "syy": "n * half(score)**2 - yy - y**2 / n",
        "sxy": "xy - x * y / n",
    },
    formula="sxy / sxx",
    variance="(syy - estimate * sxy) / (n - 2) / sxx",
)
STRATIFIED = dpc.FormulaEstimator(
    estimand="average treatment effect within sexes",
    sums={"n": "1", "total": "centred(score)"},
    cells=["treat", "sex"],
    formula="total((n[1] + n[0]) * (total[1] / n[1] - total[0] / n[0])) / total(n)",
)


def cells(n: int = 4_000, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    dose, treat, sex = rng.uniform(5, 35, n), rng.integers(0, 2, n), rng.choice(["f", "m"], n)
    score = np.clip(30 + dose + 3 * treat + 5 * (sex == "f") + rng.normal(0, 6, n), 0, 100)
    return {"treat": treat, "score": score, "dose": dose, "sex": sex}


def vault(columns: dict[str, np.ndarray]) -> dpc.Vault:
    return dpc.Vault(pa.table(columns), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1000))


def test_a_slope_agrees_with_numpy_and_has_its_standard_error() -> None:
    columns = cells()
    effect = SLOPE.estimate(vault(columns), epsilon=100.0)
    design = np.column_stack([np.ones(len(columns["dose"])), columns["dose"]])
    (_, slope), (residual,), *_ = np.linalg.lstsq(design, columns["score"], rcond=None)
    x = columns["dose"] - columns["dose"].mean()
    assert effect.estimate == pytest.approx(slope, rel=5e-3)
    assert effect.sampling_sd == pytest.approx((residual / (len(x) - 2) / (x @ x)) ** 0.5, rel=1e-2)
    assert effect.privacy_sd < 1e-3
    assert "Effect of 1 mg more against a dose on score" in str(effect)


def test_moments_are_formulas_of_the_sums_that_they_ask_for() -> None:
    texts = [
        "1",
        "centred(dose)",
        "centred(score)",
        "centred(dose) * centred(score)",
        "deficit(dose)",
        "deficit(score)",
    ]
    assert sorted(SLOPE.query(SCHEMA).texts.values()) == sorted(texts)
    assert set(BY_SUMS.query(SCHEMA).texts) == {"n", "x", "y", "xy", "xx", "yy"}
    assert SLOPE.columns == BY_SUMS.columns == ("dose", "score")
    with_sums = replace(SLOPE, sums=BY_SUMS.sums)  # which are those that the moments need
    assert with_sums.query(SCHEMA) == BY_SUMS.query(SCHEMA)
    table = vault(cells())
    (one, other) = (each.estimate(table, epsilon=1.0) for each in (with_sums, BY_SUMS))
    assert (one.estimate, one.privacy_sd, one.sampling_sd) == pytest.approx(
        (other.estimate, other.privacy_sd, other.sampling_sd), rel=1e-9
    )
    assert table.ledger.spent.epsilon == 1.0


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("mean(score)", lambda at: at["score"].mean()),
        ("mean(treat)", lambda at: at["treat"].mean()),
        ("mean(score)[f]", lambda at: at["score"][at["sex"] == "f"].mean()),
        ("mean(score)['10 <= dose < 20']", lambda at: at["score"][(at["dose"] >= 10) & (at["dose"] < 20)].mean()),
        ("variance(dose)[m]", lambda at: at["dose"][at["sex"] == "m"].var(ddof=1)),
        ("variance(treat)", lambda at: at["treat"].var(ddof=1)),
        ("covariance(score, treat)", lambda at: np.cov(at["score"], at["treat"])[0, 1]),
        ("covariance(dose, dose)", lambda at: at["dose"].var(ddof=1)),
        ("total(n * variance(dose)) / total(n)", None),
    ],
)
def test_moments_are_those_of_numpy(formula: str, expected: Callable[[dict[str, np.ndarray]], float] | None) -> None:
    columns = cells()
    if expected is None:
        parts = [columns["dose"][columns["sex"] == sex] for sex in "fm"]
        expected = lambda _: sum(len(part) * part.var(ddof=1) for part in parts) / 4_000  # noqa: E731
    by: list[str | dpc.Cut] = ["sex"] if "[" in formula or "total" in formula else []
    by = [dpc.Cut("dose", [10, 20])] if "<=" in formula else by
    found = dpc.FormulaEstimator(estimand="?", formula=formula, cells=by).estimate(vault(columns), epsilon=100.0)
    assert found.estimate == pytest.approx(expected(columns), rel=2e-2)


def test_cells_are_named_by_values_and_added_up() -> None:
    columns = cells()
    found = STRATIFIED.estimate(vault(columns), epsilon=100.0).estimate
    expected = 0.0
    for sex in "fm":
        inside = columns["sex"] == sex
        one, other = (columns["score"][inside & (columns["treat"] == arm)].mean() for arm in (1, 0))
        expected += inside.mean() * (one - other)
    assert found == pytest.approx(expected, rel=5e-3)


@pytest.mark.slow  # tests/statistics compares the same without chance
def test_noise_is_what_noise_does_to_the_estimate() -> None:
    table = vault(cells())
    guarantees = [3.0 + 1e-6 * place for place in range(24)]
    effects = [SLOPE.estimate(table, epsilon=epsilon) for epsilon in guarantees]
    spread = np.std([effect.estimate for effect in effects])
    assert spread == pytest.approx(effects[0].privacy_sd, rel=0.6)  # four standard errors
    assert all(effect.interval() for effect in effects)


def test_an_interval_is_refused_where_noise_bends_the_formula() -> None:
    table = vault(cells(400))
    small = SLOPE.estimate(table, epsilon=0.05)
    with pytest.raises(RefusedError, match="noise"):
        small.interval()
    assert np.isfinite(small.estimate)


def test_an_interval_that_luck_may_have_given_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = cells(2_000)
    columns["dose"] = np.random.default_rng(4).uniform(0, 60, 2_000)

    def warnings(high: float) -> list[str]:
        schema = replace(SCHEMA, covariates=[dpc.Real("dose", 0, high)])
        source = dpc.Vault(pa.table(columns), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
        with seeded(0):
            effect = SLOPE.estimate(source, epsilon=1.0)
        assert not effect.no_interval
        return [text for text in effect.warnings if "dose varies by hardly more" in text]

    assert not warnings(60)
    assert warnings(250)
    monkeypatch.setattr(plausibility, "_SURELY", 0.0)  # the mutant
    assert not warnings(250)


def test_a_formula_without_a_value_says_so() -> None:
    log = replace(SLOPE, formula="log(0 - n)", variance="")
    effect = log.estimate(vault(cells(400)), epsilon=1.0)
    assert "without a value" in effect.no_interval
    assert "stands for none" in " ".join(effect.warnings)
    with pytest.raises(RefusedError, match="left out"):
        replace(SLOPE, variance="").estimate(vault(cells()), epsilon=10.0).interval()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"formula": "n / sum1"}, "'sum1' is no sum or formula before this one; there are n"),
        ({"formula": "mean(dosis)"}, "did you mean 'dose'"),
        ({"formula": "varianz(dose)", "variance": ""}, "did you mean 'variance'"),
        ({"formula": "dose / 2", "variance": ""}, "uses neither n, nor a moment"),
        ({"formula": "mean(dose * score)"}, "a sum of your own"),
        ({"formula": "covariance(dose)"}, "column, column"),
        ({"formula": "centred(dose)"}, "what a unit adds"),
        ({"formula": "n[1]"}, "at most 0 labels"),
        ({"formula": "n ** 99"}, "whole powers"),
        ({"formula": "n == n"}, "a formula of sums"),
        ({"cells": ["treat"], "formula": "n", "variance": ""}, "one number as estimate"),
        ({"cells": ["treat"], "formula": "n['2']"}, "a label out of 0, 1"),
        ({"definitions": {"x": "1"}, "sums": {"x": "1"}}, "have the name"),
        ({"sums": {"x": "dose"}}, "write centred"),
        ({"definitions": {"x\x1b[2J": "n"}}, "control characters"),
        ({"formula": "middle(score, dose)"}, "middle"),
    ],
)
def test_a_wrong_formula_is_refused_before_anything_is_spent(changes: dict[str, object], message: str) -> None:
    table = vault(cells(100))
    with pytest.raises(QueryError, match=message):
        replace(SLOPE, **({"definitions": {}} | changes)).estimate(table, epsilon=1.0)  # type: ignore[arg-type]
    assert table.ledger.spent.epsilon == 0


def test_a_report_has_the_estimand_the_formula_and_the_sums_in_words() -> None:
    stated = replace(SLOPE, assumptions=["doses are random"])
    columns = cells()
    columns["dose"][:400] = np.nan
    study = dpc.Study(name="doses", question="?", schema=SCHEMA, estimator=stated, epsilon=2.0)
    ledger = vault(columns)
    effect = study.prepare(ledger).run().effect
    assert effect is not None
    assert effect.compared == pytest.approx(3_600, abs=8 * effect.compared_sd)
    report = dpc.Report.of(effect, study, date=date(2026, 1, 31))
    assert report.verdict.heading == "Above 0"
    assert report.verdict.text.startswith("Estimated mean difference in score for one more mg of dose: ")
    page = report.to_html()
    for text in (
        "estimate: covariance(dose, score) / variance(dose)",
        "sum2: centred(dose) * centred(score)",
        "the bound on what one unit moves was computed from the sums, and certified",
        "Assumes: doses are random",
        "only if the assumptions of its design hold",
        "(two-sided, for 0)",
    ):
        assert text in page
    assert "Mean score is" not in page
    lines = replace(stated, formula=SLOPE.formula.replace(" / ", "\n  / "))
    assert lines.estimate(ledger, epsilon=2.0).notes == effect.notes
    silent = replace(study, estimator=SLOPE)
    unstated = silent.prepare(ledger).run().effect
    assert unstated is not None
    assert dpc.Report.of(unstated, silent, date=date(2026, 1, 31)).verdict.reason == "confounding"


def test_it_behaves_as_every_estimator_must() -> None:
    schema = standard_schema("record")
    check_estimator(estimator_for("formula_estimator", schema), schema)


def test_a_study_file_holds_all_of_it(tmp_path: Path) -> None:
    study = dpc.Study(name="doses", question="?", schema=SCHEMA, estimator=SLOPE, epsilon=1.0)
    assert dpc.Study.from_toml(study.to_toml()) == study
    assert study.unused_covariates == ("sex",)
    pq.write_table(pa.table(cells()), tmp_path / "doses.parquet")
    address = str(tmp_path / "doses.parquet")
    opened = dpc.Vault(address, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    effect = study.prepare(opened).run().effect
    assert effect is not None
    assert effect.estimate == pytest.approx(1.0, abs=8 * effect.privacy_sd)
