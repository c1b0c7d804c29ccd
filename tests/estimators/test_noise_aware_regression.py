"""Regressions that know the noise in their moments."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.noise_aware_regression import fit_noise_aware
from dpcausal.queries import RegressionMoments
from dpcausal.source import RecordingSource, SummedSource
from tests.support.engines import fresh_noise
from tests.support.slow import sampled

NAMES = ["a", "b", "c"]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -2, 2),
    covariates=[dpc.Real(name, -1, 1) for name in NAMES],
)
EFFECT, N = 0.3, 8_000


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    """Three confounders that all push the same way, and one effect for all."""
    random = np.random.default_rng(seed)
    x = np.clip(random.normal(0, 0.3, (3, N)), -1, 1)
    t = (random.random(N) < 1 / (1 + np.exp(-1.5 * x.sum(axis=0)))).astype(int)
    y = np.clip(0.5 * x.sum(axis=0) + EFFECT * t + random.normal(0, 0.3, N), -2, 2)
    return {"t": t, "y": y, "a": x[0], "b": x[1], "c": x[2]}


@pytest.mark.parametrize("interaction", [True, False])
def test_without_noise_it_is_least_squares(interaction: bool) -> None:
    data = columns()
    source = fresh_noise(pa.table(data), SCHEMA)
    release = source.release(RegressionMoments(NAMES, interaction), dpc.Guarantee(epsilon=100.0, delta=1e-3))
    found = fit_noise_aware(release, source)
    x = np.column_stack([data[name] for name in NAMES])
    if interaction:
        design = np.column_stack([np.ones(N), x])
        lines = [
            np.linalg.lstsq(design[data["t"] == arm], data["y"][data["t"] == arm], rcond=None)[0] for arm in (0, 1)
        ]
        expected = float((design @ (lines[1] - lines[0])).mean())
    else:
        lines = [np.linalg.lstsq(np.column_stack([np.ones(N), x, data["t"]]), data["y"], rcond=None)[0]] * 2
        expected = float(lines[0][-1])
    assert found.effect == pytest.approx(expected, abs=4 * found.effect_variance**0.5)
    assert found.effect_variance**0.5 < 0.003
    assert np.allclose(found.slopes, [line[1:4] for line in lines], atol=0.05)


@pytest.mark.parametrize(("epsilon", "interaction"), sampled([(0.25, True), (1.0, False), (1.0, True)], 3))
def test_posterior_sd_matches_the_error_of_noise(epsilon: float, interaction: bool) -> None:
    """Over releases of one table: the distance to what the same table gives without noise, shrinkage included."""
    source, query = fresh_noise(pa.table(columns()), SCHEMA), RegressionMoments(NAMES, interaction)
    exact = fit_noise_aware(source.release(query, dpc.Guarantee(epsilon=100.0, delta=1e-3)), source).effect
    found = [fit_noise_aware(source.release(query, dpc.Guarantee(epsilon=epsilon)), source) for _ in range(80)]
    error = np.sqrt(np.mean([(each.effect - exact) ** 2 for each in found]))
    assert 0.8 < np.median([each.effect_variance**0.5 for each in found]) / error < 1.6


def test_confounding_along_the_imbalance_is_taken_off() -> None:
    """Shrinkage alone would leave a good part of the confounding in: the prior is wide where arms differ."""
    data = columns()
    naive = data["y"][data["t"] == 1].mean() - data["y"][data["t"] == 0].mean() - EFFECT
    source = fresh_noise(pa.table(data), SCHEMA)
    found = [
        fit_noise_aware(source.release(RegressionMoments(NAMES), dpc.Guarantee(epsilon=0.5)), source).effect
        for _ in range(40)
    ]
    assert abs(np.mean(found) - EFFECT) < 0.2 * naive


def laboratory(n: int) -> pa.Table:
    """A table with a strong confounder that is nearly constant between its bounds of 0 and 50."""
    generator = np.random.default_rng(31)
    z = generator.normal(0, 1, n)
    arm = generator.random(n) < 1 / (1 + np.exp(-z))
    outcome = np.clip(50 + 5 * z + 2 * arm + generator.normal(0, 8, n), 0, 100)
    return pa.table({"t": arm.astype(int), "y": outcome, "creatinine": np.exp(0.05 + 0.4 * z)})


def laboratory_vault(n: int, high: float = 50.0) -> dpc.Vault:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 100, missing=50),
        covariates=[dpc.Real("creatinine", 0.05, high)],
    )
    return dpc.Vault(laboratory(n), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-3))


def test_resolution_knows_the_noise_in_the_mean_of_a_feature() -> None:
    """Far from the middle of its range, most of the noise in a variance is that of the mean."""
    vault = laboratory_vault(4_000)
    found = []
    for place in range(40):
        source = RecordingSource(SummedSource(vault))
        dpc.RegressionAdjustment(covariates=["creatinine"]).estimate(source, epsilon=1 + place / 1000)
        found.append(float(fit_noise_aware(source.releases[0], source).resolution[0]))
    assert 0.5 < np.std(found) < 1.6  # without that noise it would be 4


def test_hidden_number_between_declared_bounds_gives_no_interval_by_luck() -> None:
    vault = laboratory_vault(4_000)
    asked = [1 + place / 1000 for place in range(30)]
    effects = [
        dpc.RegressionAdjustment(covariates=["creatinine"]).estimate(SummedSource(vault), epsilon=e) for e in asked
    ]
    assert sum(not effect.no_interval for effect in effects) <= 1


def test_number_that_is_seen_but_not_surely_widens_the_interval() -> None:
    """What noise may have added to its variance is left in, and part of the bias that intervals allow for."""
    vault = laboratory_vault(20_000, 7.0)
    effect = dpc.RegressionAdjustment(covariates=["creatinine"]).estimate(SummedSource(vault), epsilon=1.0)
    assert not effect.no_interval
    assert effect.bias_bound > 0
    low, high = effect.interval()
    assert low < 2 < high
