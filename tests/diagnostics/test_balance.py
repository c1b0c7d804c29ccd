"""Standardised mean differences: their bars cover, the verdict is about the table, and noise that hides is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.diagnostics import Balance, BalanceTable, Reading, balance_from_moments
from dpcausal.errors import QueryError
from dpcausal.queries import ArmTotals, ObjectivePerturbedLogistic, RegressionMoments, WeightedRegressionMoments
from dpcausal.release import Release
from tests.support.engines import fresh_noise

OF = ["age", "smoker", "ward"]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", labels=("old", "new"), undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[
        dpc.Real("age", 20, 80),
        dpc.Binary("smoker", missing=0),
        dpc.Category("ward", ["a", "b", "c"], missing="c"),
    ],
)
N = 8_000


def columns(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    age, smoker = np.clip(random.normal(50, 10, N), 20, 80), random.integers(0, 2, N)
    ward = random.choice(["a", "b", "c"], N)
    t = random.random(N) < 1 / (1 + np.exp(-0.05 * (age - 50) - 0.4 * (ward == "b")))
    return {"t": t.astype(int), "y": random.random(N), "age": age, "smoker": smoker, "ward": ward}


COLUMNS = columns()


def source(schema: dpc.Schema = SCHEMA) -> Unmetered:
    return fresh_noise(pa.table(COLUMNS), schema)


def truth(weights: Any) -> dict[str, float]:
    """The differences without noise; variances are those without weights."""
    t, found = COLUMNS["t"] == 1, {}
    features = {"age": COLUMNS["age"], "smoker": COLUMNS["smoker"]}
    features |= {f"ward={value}": COLUMNS["ward"] == value for value in "abc"}
    for name, x in features.items():
        apart = np.average(x[t], weights=weights[t]) - np.average(x[~t], weights=weights[~t])
        found[name] = apart / np.sqrt((x[t].var() + x[~t].var()) / 2)
    return found


def ate_weights(score: Release) -> Any:
    indicators = [COLUMNS["ward"] == value for value in "abc"]
    lines = [np.ones(N), (COLUMNS["age"] - 50) / 30, 2 * COLUMNS["smoker"] - 1, *indicators]
    predictor = sum(at * line for at, line in zip(score.values, lines, strict=True)) / np.sqrt(4)
    e = np.clip(1 / (1 + np.exp(-predictor)), 0.1, 0.9)
    return np.where(COLUMNS["t"] == 1, 1 / e, 1 / (1 - e))


SCORE = source().release(ObjectivePerturbedLogistic(OF), dpc.Guarantee(epsilon=5.0))


def shares(runs: int, delta: float) -> tuple[float, float]:
    """How often bars hold the truth, and how often half of each bar would."""
    table, plain, weighted = source(), truth(np.ones(N)), truth(ate_weights(SCORE))
    held = []
    for _ in range(runs):
        found = Balance(OF, OF).estimate(table, epsilon=4.0, delta=delta, score=SCORE)
        for line in found.lines:
            for reading, true in ((line.before, plain[line.name]), (line.after, weighted[line.name])):
                assert reading is not None
                held.append(abs(reading.value - true) / reading.bar)
    return float(np.mean(np.array(held) <= 1)), float(np.mean(np.array(held) <= 0.5))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bars_cover(delta: float) -> None:
    whole, half = shares(60, delta)
    assert whole > 0.91  # 95 % less 4 standard errors of 600 readings
    assert half < 0.88  # the mutant: bars of half the noise are caught


def test_balance_with_little_noise_matches_the_formulas() -> None:
    found = Balance(OF, OF).estimate(source(), epsilon=100.0, score=SCORE)
    plain, weighted = truth(np.ones(N)), truth(ate_weights(SCORE))
    assert [line.before.value for line in found.lines if line.before] == pytest.approx([*plain.values()], abs=0.01)
    assert [line.after.value for line in found.lines if line.after] == pytest.approx([*weighted.values()], abs=0.02)
    w = ate_weights(SCORE)
    for arm, each in enumerate(found.effective):
        own = w[COLUMNS["t"] == arm]
        assert each is not None
        assert each.value == pytest.approx(own.sum() ** 2 / (own**2).sum(), rel=0.03)


def test_weighting_makes_a_failing_balance_pass() -> None:
    before = Balance(OF).estimate(source(), epsilon=20.0)
    after = Balance(OF, OF, estimand="ATO").estimate(source(), epsilon=60.0)
    assert (before.passes, before.verdict, after.passes) == (False, "fails", True)
    assert "of age" in before.found
    assert [receipt.query for receipt in after.receipts] == [
        "covariate_counts",
        "bounded_influence_logistic",
        "covariate_sums",
        "weighted_covariates",
    ]


def test_balance_does_not_query_public_arm_sizes() -> None:
    outcome = replace(SCHEMA.outcome, missing=SCHEMA.outcome.missing_value)  # type: ignore[arg-type]
    schema = replace(SCHEMA, outcome=outcome, protects="record_within_arm")
    found = Balance(OF).estimate(source(schema), epsilon=1.0)
    private = Balance(OF).estimate(source(), epsilon=1.0)
    bars = [sum(line.before.bar for line in each.lines if line.before) for each in (found, private)]
    assert bars[0] < bars[1]
    assert found.guarantee.protects == "record_within_arm"


def test_a_covariate_that_noise_hides_has_no_number_and_nothing_passes() -> None:
    few = {name: cells[:60] for name, cells in COLUMNS.items()}
    found = Balance(OF).estimate(fresh_noise(pa.table(few), SCHEMA), epsilon=0.01)
    assert [line.before for line in found.lines] == [None] * 5
    assert found.passes is None
    assert "noise hides age" in found.found
    assert BalanceTable.from_json(found.to_json()) == found


def test_balance_verdict_allows_for_bars() -> None:
    found = Balance(["age"]).estimate(dpc.Rehearsal(SCHEMA, n=10_000), epsilon=1.0)
    line = found.lines[0]
    for value, bar, passes in ((0.05, 0.04, True), (-0.05, 0.06, None), (-0.2, 0.05, False), (0.12, 0.05, None)):
        told = replace(found, lines=(replace(line, before=Reading(value, bar)),))
        assert told.passes is passes


def test_regression_moments_give_the_balance_for_free() -> None:
    vault = source()
    own, shared = (RegressionMoments(OF, interaction) for interaction in (True, False))
    for query in (own, shared, WeightedRegressionMoments(OF)):
        moments = vault.release(query, dpc.Guarantee(epsilon=50.0, delta=1e-6))
        found = balance_from_moments(moments, vault)
        plain = truth(np.ones(N))
        assert [line.name for line in found.lines] == ["age", "smoker", "ward=b", "ward=c"]
        for line in found.lines:
            assert line.before is not None
            assert line.before.value == pytest.approx(plain[line.name], abs=max(0.03, line.before.bar))
        assert (found.receipts, found.guarantee) == ((moments.receipt,), moments.guarantee)
    with pytest.raises(QueryError, match="regression_moments"):
        balance_from_moments(vault.release(ArmTotals(), dpc.Guarantee(epsilon=1.0)), vault)


def test_wrong_parameters_are_refused_before_anything_is_spent() -> None:
    vault = dpc.Vault(pa.table(COLUMNS), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    wrong: list[Balance] = [
        Balance([]),
        Balance(["height"]),
        Balance(OF, ["height"]),
        Balance(OF, OF, clip=0.7),
        Balance(OF, OF, estimand="ALL"),  # type: ignore[arg-type]
        Balance(OF, OF, share=1.0),
        Balance(OF, most=0.0),
    ]
    for each in wrong:
        with pytest.raises(QueryError):
            each.estimate(vault, epsilon=1.0)
    with pytest.raises(QueryError, match="a score of age"):
        Balance(OF, ["age"]).estimate(vault, epsilon=1.0, score=SCORE)
    assert vault.ledger.spent.epsilon == 0


def test_diagnosis_is_paid_once_prints_and_survives_json() -> None:
    vault = dpc.Vault(pa.table(COLUMNS), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3))
    found = Balance(OF, ["age"]).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    assert Balance(OF, ["age"]).estimate(vault, epsilon=1.0) == found
    assert vault.ledger.spent.epsilon == pytest.approx(1.0)
    assert BalanceTable.from_json(found.to_json()) == found
    text = str(found)
    assert text.startswith("Balance of new and old\n")
    assert all(word in text for word in ("verdict", "age: ", ", then ", "effective units", "ledger entry"))
    assert "<table>" in found._repr_html_()
    plan = Balance(OF, ["age"]).estimate(dpc.Rehearsal(SCHEMA, n=N), epsilon=1.0)
    assert plan.rehearsed
    assert "expect ± " in str(plan)
    assert "verdict" not in str(plan)
    assert [(each.query, each.epsilon) for each in plan.receipts] == [
        (each.query, each.epsilon) for each in found.receipts
    ]
