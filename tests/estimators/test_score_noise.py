"""What noise in a private score does to a weighted effect is as large as its effect says."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.score_noise import CovariateSpread, PrivateScore
from dpcausal.queries import CovariateMoments, ObjectivePerturbedLogistic

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("x", 0, 1), dpc.Category("k", ["p", "q", "r"]), dpc.Binary("b")],
)
OF = ["x", "k", "b"]


def table_of(n: int, seed: int = 0) -> pa.Table:
    """Confounded by x, which the outcome depends on; an effect of 0.1."""
    generator = np.random.default_rng(seed)
    x, k, b = generator.uniform(0, 1, n), generator.integers(0, 3, n), generator.integers(0, 2, n)
    t = (generator.random(n) < 1 / (1 + np.exp(-1.5 * (2 * x - 1) - 0.4 * (k == 1)))).astype(int)
    y = 0.1 + 0.5 * x + 0.1 * (k == 2) + 0.1 * t + generator.uniform(0, 0.2, n)
    return pa.table({"t": t, "x": x, "y": y, "k": np.array(["p", "q", "r"])[k], "b": b})


def vault_of(table: pa.Table) -> dpc.Vault:
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1000))


def spread_at(epsilon: float) -> CovariateSpread:
    vault, query = vault_of(table_of(20_000)), CovariateMoments(OF)
    return CovariateSpread.of(query, vault.release(query, dpc.Guarantee(epsilon=epsilon)), vault)


def test_moments_without_much_noise_are_those_of_the_table() -> None:
    spread = spread_at(100.0)
    assert spread.means == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0], abs=0.03)
    assert spread.variances == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3, 1], abs=0.02)
    slopes = spread.slopes(0.35)
    assert slopes.mean[0] == pytest.approx(0.53, abs=0.05)  # a quarter of 2 for half ranges, and what the effect adds
    assert slopes.mean[3] - slopes.mean[1] == pytest.approx(0.2, abs=0.04)
    assert slopes.mean[4] == pytest.approx(0, abs=0.02)


def test_slopes_fall_back_on_the_prior_where_noise_hides_them() -> None:
    spread = spread_at(0.001)
    slopes = spread.slopes(0.35)
    prior = 0.25 * 0.35**2 * np.array([1, 1 / 3, 1 / 3, 1 / 3, 1]) / 3 / spread.variances
    assert slopes.mean == pytest.approx(np.zeros(5), abs=0.05)
    assert slopes.variance == pytest.approx(prior, rel=0.2)


def test_ridge_is_undone() -> None:
    """Over many draws the slope is that of the regression without a ridge, within noise; as released it is smaller."""
    vault, spread = vault_of(table_of(4_000)), spread_at(100.0)
    found = []
    for run in range(40):
        guarantee = dpc.Guarantee(epsilon=0.5 + run * 1e-6)  # so that each is drawn anew
        release = vault.release(ObjectivePerturbedLogistic(OF), guarantee)
        score = PrivateScore.of(release, 3, replace(spread, units=4_000), 4_000)
        found.append((release.value("x") / 2, score.coefficients[1]))
    released, undone = np.mean(found, axis=0)
    assert released < 1.5 * 0.97
    assert undone == pytest.approx(1.5, abs=0.12)
    assert undone > 1.02 * released


@pytest.mark.parametrize("estimand", ["ATE", "ATO", "ATT"])
def test_privacy_noise_is_as_large_as_printed(estimand: str) -> None:
    vault = vault_of(table_of(5_000))
    effects = [
        dpc.InverseWeighting(covariates=OF, estimand=estimand).estimate(vault, epsilon=1 + run * 1e-6)  # type: ignore[arg-type]
        for run in range(80)
    ]
    sd = np.std([effect.estimate for effect in effects])
    printed = np.sqrt(np.mean([effect.privacy_sd**2 for effect in effects]))
    assert 0.75 < printed / sd < 1.4
    score = np.sqrt(np.mean([effect.noise[-1].variance for effect in effects]))
    assert score > 0.25 * sd  # without the score's part it would be too small


def test_clip_that_is_used_is_printed_with_the_share_beyond_it() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 1, 20_000)
    t = (generator.random(20_000) < 1 / (1 + np.exp(2.5 - 2 * (2 * x - 1)))).astype(int)
    table = pa.table({"t": t, "x": x, "y": 0.2 + 0.2 * x + 0.1 * t, "k": ["p"] * 20_000, "b": [0] * 20_000})
    uneven = dpc.InverseWeighting(covariates=["x"]).estimate(vault_of(table), epsilon=1.0)
    assert "% of units" in uneven.estimand
    assert uneven.estimate == pytest.approx(0.1, abs=0.05)
    overlap = dpc.InverseWeighting(covariates=["x"], estimand="ATO").estimate(vault_of(table), epsilon=1.0)
    assert "clipped to 0.01 and 0.99" in overlap.estimand
    assert overlap.treated_mean is not None
    assert overlap.control_mean is not None
    assert overlap.treated_mean - overlap.control_mean == pytest.approx(overlap.estimate)


def test_delta_is_not_spent_where_laplace_noise_is_narrower() -> None:
    vault = dpc.Vault(table_of(2_000), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1, delta=1e-6))
    effect = dpc.InverseWeighting(covariates=OF).estimate(vault, epsilon=1.0, delta=1e-6)
    assert effect.guarantee.delta == 0
    assert vault.ledger.spent.delta == 0


def test_interval_as_wide_as_all_effects_is_refused() -> None:
    effect = dpc.InverseWeighting(covariates=OF).estimate(vault_of(table_of(300)), epsilon=0.3)
    assert "noise" in effect.no_interval
