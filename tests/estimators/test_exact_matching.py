import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError
from dpcausal.queries.stratum_matches import smoothness
from dpcausal.vault.answers.stratum_matches import smooth_bound
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0),
    covariates=[dpc.Category("x", list(range(10)))],
)


def table_of(n: int, seed: int = 0) -> pa.Table:
    """Strata that move both treatment and outcome; the effect is 0.1."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 10, n)
    t = (generator.random(n) < 0.3 + 0.04 * x).astype(int)
    y = 0.1 + 0.05 * x + 0.1 * t + generator.uniform(0, 0.3, n)
    return pa.table({"t": t, "x": x, "y": y})


def vault_of(n: int, rule: str = "additive") -> dpc.Vault:
    budget = dpc.Budget(epsilon=1000, delta=0.1, rule=rule)  # type: ignore[arg-type]
    return dpc.Vault(table_of(n), SCHEMA, ledger="sqlite://", budget=budget)


def test_exact_matching_with_delta_finds_the_effect_and_its_noise_scale() -> None:
    vault = vault_of(20_000)
    effect = dpc.ExactMatching(by=["x"]).estimate(vault, epsilon=2.0, delta=1e-6)
    low, high = effect.interval()
    assert effect.estimate == pytest.approx(0.1, abs=0.03)
    assert high - low < 0.05
    generator = np.random.default_rng(0)
    x = generator.integers(0, 10, 20_000)
    t = (generator.random(20_000) < 0.3 + 0.04 * x).astype(int)
    sizes = np.array([[np.sum((x == k) & (t == arm)) for arm in (1, 0)] for k in range(10)])
    share = 2.0 * 0.7
    exact = 2 * smooth_bound(sizes, 20_000, smoothness(share, 1e-6)) / share / 2**21 / 20_000
    # It is released with noise of its own, of about a quarter.
    source = fresh_noise(table_of(20_000), SCHEMA)
    told = [dpc.ExactMatching(by=["x"]).estimate(source, epsilon=2.0, delta=1e-6) for _ in range(40)]
    assert np.median([each.noise[0].scale for each in told]) == pytest.approx(exact, rel=0.4)


def test_exact_matching_without_delta_has_noise_of_the_whole_range() -> None:
    effect = dpc.ExactMatching(by=["x"]).estimate(vault_of(2_000), epsilon=1.0)
    assert effect.noise[0].scale == pytest.approx(1 / 0.8, rel=1e-3)
    assert "global" in effect.method


def test_a_ledger_by_rho_refuses_smooth_sensitivity() -> None:
    vault = vault_of(200, rule="zcdp")
    with pytest.raises(BudgetExceededError, match="additive"):
        dpc.ExactMatching(by=["x"]).estimate(vault, epsilon=1.0, delta=1e-6)


def test_effect_names_its_estimand_and_assumptions() -> None:
    text = str(dpc.ExactMatching(by=["x"]).estimate(vault_of(2_000), epsilon=1.0, delta=1e-6))
    assert "a baseline for comparison" in text
    assert "without both arms" in text
