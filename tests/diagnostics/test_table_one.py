"""Table 1 comes from the sums of a balance: its numbers are the table's, its bars cover them, and it prints."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.diagnostics import Balance, BalanceTable, TableOne, balance_from_moments
from dpcausal.errors import RefusedError
from dpcausal.queries import RegressionMoments
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
    trial = dpc.Schema(SCHEMA.treatment, SCHEMA.outcome, SCHEMA.covariates, protects="record_within_arm")
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
