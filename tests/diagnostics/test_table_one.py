"""Table 1 comes from the sums of a balance: its numbers are the table's, its bars cover them, and it prints."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.diagnostics import Balance, BalanceTable, TableOne, balance_from_moments, table_one_from_moments
from dpcausal.diagnostics.diagnosis import Reading
from dpcausal.errors import QueryError, RefusedError
from dpcausal.queries import ArmRegressionMoments, RegressionMoments
from tests.diagnostics.test_balance import COLUMNS, OF, SCHEMA, source


def truth() -> dict[tuple[str, str, str], float]:
    found: dict[tuple[str, str, str], float] = {}
    for place, arm in enumerate(("old", "new")):
        chosen = COLUMNS["t"] == place
        age = COLUMNS["age"][chosen]
        found |= {("units", arm, "number"): float(chosen.sum()), ("age", arm, "mean"): age.mean()}
        found |= {("age", arm, "sd"): age.std(), ("smoker=1", arm, "share"): COLUMNS["smoker"][chosen].mean()}
        found |= {(f"ward={ward}", arm, "share"): (COLUMNS["ward"][chosen] == ward).mean() for ward in "abc"}
    return found


def test_bars_hold_the_numbers_of_the_table() -> None:
    table, covered = source(), []
    for _ in range(40):
        made = Balance(covariates=OF).estimate(table, epsilon=1.0).table_one
        known = truth()
        assert {(name, arm, what) for name, arm, what, _ in made.statistics} == set(known)
        for name, arm, what, reading in made.statistics:
            assert reading is not None
            covered.append(abs(reading.value - known[name, arm, what]) <= reading.bar)
    assert 0.92 < np.mean(covered) < 0.98


def test_it_prints_tidies_and_survives_json() -> None:
    balance = Balance(covariates=OF).estimate(source(), epsilon=1.0)
    made = balance.table_one
    assert isinstance(made, TableOne)
    assert BalanceTable.from_json(balance.to_json()).table_one == made
    assert "smoker=1" in str(made)
    assert "(SD " in str(made)
    assert made._repr_html_().count("<tr>") == 7
    frame = dpc.tidy(made)
    assert len(frame) == 14
    assert set(frame["estimand"]) == {"number", "mean", "sd", "share"}


def test_public_arms_have_no_bar() -> None:
    outcome = replace(SCHEMA.outcome, missing=SCHEMA.outcome.missing_value)  # type: ignore[arg-type]
    trial = dpc.Schema(SCHEMA.treatment, outcome, SCHEMA.covariates, protects="record_within_arm")
    vault = dpc.Vault(pa.table(COLUMNS), trial, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    made = Balance(covariates=["age"]).estimate(vault, epsilon=1.0).table_one
    assert [size.bar for size in made.sizes if size] == [0.0, 0.0]
    assert "±" not in str(made).splitlines()[3]


def test_rehearsal_shows_bars_alone() -> None:
    made = Balance(covariates=OF).estimate(dpc.Rehearsal(SCHEMA, n=2_000), epsilon=1.0).table_one
    assert "Rehearsal" in str(made)
    assert all(text.startswith("±") for _, *texts in made.lines for text in texts)


def test_balance_from_moments_has_no_table_one() -> None:
    table = source()
    moments = table.release(RegressionMoments(["age"]), dpc.Guarantee(epsilon=1.0))
    with pytest.raises(RefusedError, match="moments of a regression"):
        _ = balance_from_moments(moments, table).table_one


def test_table_of_every_arm_is_that_of_numpy() -> None:
    random = np.random.default_rng(4)
    columns = {"dose": random.choice(["none", "low", "high"], 9_000), "y": random.uniform(0, 1, 9_000)}
    columns |= {"age": random.normal(50, 10, 9_000), "ward": random.choice(["a", "b", "c"], 9_000)}
    columns["sex"] = random.choice(["f", "m"], 9_000)
    schema = dpc.Schema(
        treatment=dpc.Treatment("dose", arms=("none", "low", "high"), compare="high"),
        outcome=dpc.Real("y", 0, 1),
        covariates=[dpc.Real("age", 0, 100), dpc.Category("ward", ["a", "b", "c"]), dpc.Binary("sex", ("f", "m"))],
    )
    vault = dpc.Vault(pa.table(columns), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    moments = vault.release(ArmRegressionMoments(["age", "ward", "sex"]), dpc.Guarantee(epsilon=80.0))
    made = table_one_from_moments(moments, vault)
    assert made.arms == ("dose=none", "dose=low", "dose=high")
    assert [each.name for each in made.characteristics] == ["age", "ward=a", "ward=b", "ward=c", "sex=m"]
    for place, arm in enumerate(("none", "low", "high")):
        here = columns["dose"] == arm
        age = columns["age"][here]
        wanted = [here.sum(), age.mean(), age.std()]
        wanted += [(columns["ward"][here] == ward).mean() for ward in "abc"] + [(columns["sex"][here] == "m").mean()]
        found = [each for _, where, _, each in made.statistics if where == made.arms[place]]
        assert [each.value for each in found if each] == pytest.approx(wanted, rel=0.01)
    assert len(str(made).splitlines()) == 9
    with pytest.raises(QueryError, match="arm_regression_moments"):
        table_one_from_moments(vault.release(RegressionMoments(["age"]), dpc.Guarantee(epsilon=1.0)), vault)


def test_rehearsed_table_of_every_arm_shows_bars_alone() -> None:
    rehearsal = dpc.Rehearsal(SCHEMA, n=2_000)
    moments = rehearsal.release(ArmRegressionMoments(["age"]), dpc.Guarantee(epsilon=1.0, protects=SCHEMA.protects))
    made = table_one_from_moments(moments, rehearsal)
    assert all(text.startswith("±") for _, *texts in made.lines for text in texts)


def test_bars_are_written_without_exponents() -> None:
    sizes = (Reading(5287.0, 831.0), Reading(6329.0, 0.123))
    made = TableOne(("a", "b"), sizes, (), rehearsed=False)
    assert made.lines == (("units", "5,287 ± 830", "6,329 ± 0.12"),)
