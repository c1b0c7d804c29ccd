"""Formulas of sums agree with NumPy, state the noise in them, and have no interval where noise bends them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators.average import estimator_for
from dpcausal.testing import check_estimator, standard_schema

SCHEMA = dpc.Schema(
    dpc.Treatment("treat"), dpc.Real("score", 0, 100), [dpc.Real("dose", 0, 40), dpc.Category("sex", ["f", "m"])]
)
SLOPE = dpc.FormulaEstimator(
    estimand="mean difference in score for one more mg of dose",
    contrast=("a dose", "1 mg more"),
    sums={
        "n": "1",
        "x": "centred(dose)",
        "y": "centred(score)",
        "xy": "centred(dose) * centred(score)",
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


def test_cells_are_named_by_values_and_added_up() -> None:
    columns = cells()
    found = STRATIFIED.estimate(vault(columns), epsilon=100.0).estimate
    expected = 0.0
    for sex in "fm":
        inside = columns["sex"] == sex
        one, other = (columns["score"][inside & (columns["treat"] == arm)].mean() for arm in (1, 0))
        expected += inside.mean() * (one - other)
    assert found == pytest.approx(expected, rel=5e-3)


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
        ({"formula": "sxy / szz"}, "did you mean"),
        ({"formula": "centred(dose)"}, "total adds up cells"),
        ({"formula": "x[1]"}, "at most 0 labels"),
        ({"formula": "x ** 99"}, "whole powers"),
        ({"formula": "x == y"}, "a formula of sums"),
        ({"cells": ["treat"], "formula": "x", "variance": ""}, "one number as estimate"),
        ({"cells": ["treat"], "formula": "x['2']"}, "a label out of 0, 1"),
        ({"definitions": {"x": "1"}}, "a name of its own"),
        ({"formula": "middle(score, dose)"}, "middle"),
    ],
)
def test_a_wrong_formula_is_refused_before_anything_is_spent(changes: dict[str, object], message: str) -> None:
    table = vault(cells(100))
    with pytest.raises(QueryError, match=message):
        replace(SLOPE, **({"definitions": {}} | changes)).estimate(table, epsilon=1.0)  # type: ignore[arg-type]
    assert table.ledger.spent.epsilon == 0


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
