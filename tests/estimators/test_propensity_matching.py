from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import GuaranteeError, RefusedError
from dpcausal.schema.schema import Protects


def vault_of(n: int, protects: Protects, seed: int = 0) -> dpc.Vault:
    """One confounder that moves both treatment and outcome; the effect is 0.1, a difference in means gives 0.16."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, n)
    t = (generator.random(n) < 0.2 + 0.6 * x).astype(int)
    y = 0.2 + 0.3 * x + 0.1 * t + generator.uniform(0, 0.3, n)
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0),
        covariates=[dpc.Real("x", 0, 1)],
        protects=protects,
    )
    table = pa.table({"t": t, "x": x, "y": y})
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1000, delta=0.1))


def test_matching_on_public_covariates_adjusts() -> None:
    vault = vault_of(5_000, "outcome")
    effect = dpc.PropensityMatching(covariates=["x"]).estimate(vault, epsilon=1.0)
    low, high = effect.interval()
    assert effect.estimate == pytest.approx(0.1, abs=0.02)
    assert high - low < 0.03
    assert "they are declared public" in str(effect)
    assert effect.receipts[0].epsilon == 1.0


def test_more_epsilon_allows_units_to_serve_more_often() -> None:
    estimator = dpc.PropensityMatching(covariates=["x"])
    limits = []
    for epsilon in (0.1, 1.0, 10.0):
        method = estimator.estimate(vault_of(3_000, "outcome"), epsilon=epsilon).method
        limits.append(float(method.split("limits ")[1].split(" ")[0]))
    assert limits[0] < limits[1] <= limits[2]


def test_matching_on_private_records_refuses_an_interval() -> None:
    effect = dpc.PropensityMatching(covariates=["x"]).estimate(vault_of(3_000, "record"), epsilon=1.0)
    assert "a baseline for comparison" in str(effect)
    with pytest.raises(RefusedError, match="confounding"):
        effect.interval()
    assert sum(receipt.epsilon for receipt in effect.receipts) <= 1.0


def test_flipped_arms_shrink_the_estimate_towards_0() -> None:
    estimator = dpc.PropensityMatching(covariates=["x"])
    little, much = (
        np.mean([estimator.estimate(vault_of(3_000, "record", seed), epsilon=e).estimate for seed in range(5)])
        for e in (1.0, 20.0)
    )
    # A difference in means is 0.168; at epsilon 1 about a third of it is left.
    assert 0.02 < little < 0.09
    assert 0.13 < much < 0.2


def test_public_arms_with_private_records_are_refused() -> None:
    with pytest.raises(GuaranteeError, match="protects the outcome or the record"):
        dpc.PropensityMatching(covariates=["x"]).estimate(vault_of(100, "record_within_arm"), epsilon=1.0)


def test_whole_budget_can_be_spent_exactly() -> None:
    table = pa.table({"t": [0, 1] * 50, "x": [0.5] * 100, "y": [0.2, 0.7] * 50})
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0),
        covariates=[dpc.Real("x", 0, 1)],
    )
    for epsilon in (0.1, 0.3, 0.7, 1.1, 2.3):
        for name in ("propensity_matching", "inverse_weighting"):
            effect = dpc.estimate(table, schema, name, epsilon=epsilon, delta=1e-6)
            assert effect.guarantee.epsilon == epsilon


@pytest.mark.parametrize(
    "wrong", [{"neighbours": 0}, {"limit": 0}, {"split": (0.5, 0.5, 0.5)}, {"covariates": "x * z"}], ids=str
)
def test_a_mistake_costs_nothing(wrong: dict[str, Any]) -> None:
    vault = vault_of(100, "record")
    with pytest.raises(dpc.DpcausalError):
        dpc.PropensityMatching(**{"covariates": ["x"]} | wrong).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0
