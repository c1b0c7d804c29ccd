from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators.outcome_regression import as_score_coefficients, fit_regressions
from dpcausal.queries import RegressionMoments
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.source import SummedSource
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -1, 3),
    covariates=[dpc.Real("x", 0, 2), dpc.Category("k", ["p", "q", "r"]), dpc.Binary("b", values=("no", "yes"))],
)
ALL = ["x", "k", "b"]


def columns(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Effects from 0.2 to 0.6, 0.4 on average; a difference in means is 0.75."""
    generator = np.random.default_rng(seed)
    x, k, b = generator.uniform(0, 2, n), generator.choice(["p", "q", "r"], n), generator.choice(["no", "yes"], n)
    t = (generator.random(n) < 1 / (1 + np.exp(-2 * (x - 1) - (k == "q")))).astype(int)
    y = 0.1 + 0.5 * x + 0.3 * (k == "q") - 0.2 * (b == "yes") + (0.2 + 0.2 * x) * t + generator.normal(0, 0.2, n)
    return {"t": t, "x": x, "k": k, "b": b, "y": y}


def vault_of(n: int, schema: dpc.Schema = SCHEMA) -> dpc.Vault:
    return dpc.Vault(pa.table(columns(n)), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1000, delta=0.1))


@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_effect_is_found_under_confounding(protects: Protects, delta: float) -> None:
    vault = vault_of(40_000, replace(SCHEMA, protects=protects))
    effect = dpc.RegressionAdjustment(covariates=ALL).estimate(vault, epsilon=4.0, delta=delta)
    assert effect.estimate == pytest.approx(0.4, abs=0.02)
    low, high = effect.interval(0.9999)  # noise is drawn anew in each run of this test
    assert low < 0.4 < high
    assert high - low < 0.06


def test_nearly_without_noise_it_is_the_regression_with_interactions() -> None:
    """Also in a table as small and uneven as this one: numbers agree with least squares."""
    data = columns(3_000)
    effect = dpc.RegressionAdjustment(covariates=ALL).estimate(vault_of(3_000), epsilon=100.0, delta=1e-3)
    design = np.column_stack([np.ones(3_000), data["x"], data["k"] == "q", data["k"] == "r", data["b"] == "yes"])
    arms = [np.linalg.lstsq(design[data["t"] == arm], data["y"][data["t"] == arm], rcond=None)[0] for arm in (0, 1)]
    assert effect.estimate == pytest.approx(float((design @ (arms[1] - arms[0])).mean()), abs=0.01)
    fitted = [design[data["t"] == arm] @ arms[arm] - data["y"][data["t"] == arm] for arm in (0, 1)]
    assert effect.sampling_sd == pytest.approx(np.sqrt(sum(each.var() / len(each) for each in fitted)), rel=0.35)


def test_without_interaction_there_is_one_regression() -> None:
    data = columns(3_000)
    effect = dpc.RegressionAdjustment(covariates=ALL, interaction=False).estimate(
        vault_of(3_000), epsilon=100.0, delta=1e-3
    )
    parts = [np.ones(3_000), data["t"], data["x"], data["k"] == "q", data["k"] == "r", data["b"] == "yes"]
    slopes = np.linalg.lstsq(np.column_stack(parts), data["y"], rcond=None)[0]
    assert effect.estimate == pytest.approx(float(slopes[1]), abs=0.01)
    assert "with one effect for all" in str(effect)


@pytest.mark.slow  # tests/statistics compares the same without chance
def test_reported_noise_matches_its_spread() -> None:
    """Over many releases of one table the estimate varies by privacy_sd."""
    declared = dpc.Real("x", 0, 2, typical=(0.1, 1.9), transform="linear")  # no counts, so that the table is cached
    schema = replace(SCHEMA, covariates=[declared])
    source, estimator = fresh_noise(pa.table(columns(5_000)), schema), dpc.RegressionAdjustment(covariates=["x"])
    effects = [estimator.estimate(source, epsilon=1.0, delta=1e-6) for _ in range(200)]
    spread = np.std([effect.estimate for effect in effects])
    assert spread == pytest.approx(np.median([effect.privacy_sd for effect in effects]), rel=0.2)


def test_confounding_that_noise_may_leave_in_widens_the_interval() -> None:
    """With little epsilon the estimate keeps part of the confounding of 0.35, and its interval says so."""
    source, estimator = fresh_noise(pa.table(columns(20_000)), SCHEMA), dpc.RegressionAdjustment(covariates=ALL)
    effects = [estimator.estimate(source, epsilon=0.1, delta=1e-6) for _ in range(20)]
    assert not any(effect.no_interval for effect in effects)
    covered = [low < 0.4 < high for low, high in (effect.interval(0.95) for effect in effects)]
    assert sum(covered) >= 17
    assert np.median([effect.standard_error or 0 for effect in effects]) > 5 * (effects[0].sampling_sd or 0)


def test_a_covariate_that_is_narrow_beside_its_bounds_has_a_scale_of_its_own() -> None:
    data = columns(20_000)
    source = fresh_noise(pa.table(data | {"x": 1 + 0.01 * (data["x"] - 1)}), SCHEMA)
    effects = [dpc.RegressionAdjustment(covariates=ALL).estimate(source, epsilon=1.0, delta=1e-6) for _ in range(4)]
    assert all(low < 0.4 < high for low, high in (effect.interval() for effect in effects))


def test_a_narrow_covariate_without_a_scale_refuses_an_interval() -> None:
    """Noise hides how it varies, although the other covariates are plain to see; in most runs that is seen."""
    data = columns(20_000)
    source = SummedSource(fresh_noise(pa.table(data | {"x": 1 + 0.01 * (data["x"] - 1)}), SCHEMA))
    effects = [dpc.RegressionAdjustment(covariates=ALL).estimate(source, epsilon=1.0, delta=1e-6) for _ in range(12)]
    refused = [effect for effect in effects if effect.no_interval]
    assert len(refused) >= 6
    with pytest.raises(RefusedError, match="hides how x varies; declare tighter bounds"):
        refused[0].interval()


def test_delta_is_used_only_where_it_means_less_noise() -> None:
    vault = vault_of(2_000)
    few, many = (
        dpc.RegressionAdjustment(covariates=names).estimate(vault, epsilon=1.0, delta=1e-6) for names in (["x"], ALL)
    )
    assert (few.guarantee.delta, few.receipts[-1].delta) == (0.0, 0.0)
    assert (many.guarantee.delta, many.receipts[-1].delta) == (1e-6, 1e-6)


def test_an_arm_that_noise_hides_refuses_an_interval() -> None:
    table = pa.table(columns(2_000) | {"t": np.zeros(2_000, dtype=int)})
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=10, delta=0.1))
    effect = dpc.RegressionAdjustment(covariates=["x"]).estimate(vault, epsilon=1.0, delta=1e-6)
    with pytest.raises(RefusedError):
        effect.interval()


def test_score_coefficients_predict_as_the_regression() -> None:
    vault = vault_of(20_000)
    release = vault.release(RegressionMoments(ALL), dpc.Guarantee(epsilon=100, delta=1e-3))
    fit = fit_regressions(release, vault, np.array([release.values]))
    for arm in (0, 1):
        coefficients = np.array(as_score_coefficients(fit, arm, ALL, SCHEMA)) / np.sqrt(4)
        for x, k, b in ((0.0, "p", "no"), (2.0, "q", "yes"), (0.5, "r", "yes")):
            features = [1, x - 1, k == "p", k == "q", k == "r", 1 if b == "yes" else -1]
            said = 1 + 2 * float(coefficients @ np.array(features, dtype=float))
            truth = 0.1 + 0.5 * x + 0.3 * (k == "q") - 0.2 * (b == "yes") + (0.2 + 0.2 * x) * arm
            assert said == pytest.approx(truth, abs=0.03)


def test_unknown_covariates_are_refused_before_anything_is_spent() -> None:
    vault = vault_of(300)
    with pytest.raises(QueryError, match="'z' is not a covariate of the schema, which has x, k, b"):
        dpc.RegressionAdjustment(covariates=["x", "z"]).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0
