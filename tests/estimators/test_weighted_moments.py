"""Regressions from moments of weighted units: right where least squares is, and chosen where noise is smaller."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.noise_aware_regression import fit_noise_aware
from dpcausal.estimators.outcome_regression import arm_refusal, fit_regressions, signs_of_moments
from dpcausal.estimators.weighted_moments import Moments, slope_moments, units_compared
from dpcausal.queries import RegressionMoments, WeightedRegressionMoments
from dpcausal.queries.regression_moments import FINE
from dpcausal.queries.weighted_regression_moments import USUAL
from dpcausal.results.effect import Estimator
from tests.support.engines import fresh_noise

NAMES = ["a", "b", "c"]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"),
    outcome=dpc.Real("y", -4, 4),
    covariates=[dpc.Real(name, -1, 1) for name in NAMES],
)
EFFECT, N = 0.3, 8_000
GUARANTEE = dpc.Guarantee(epsilon=1.0, delta=1e-6)


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    """Three skewed confounders, and an effect that grows with one: far out units weigh half as much as others."""
    random = np.random.default_rng(seed)
    x = np.clip(random.exponential(0.35, (3, N)) - 0.4, -1, 1)
    t = (random.random(N) < 1 / (1 + np.exp(-1.5 * x.sum(axis=0)))).astype(int)
    y = 0.5 * x.sum(axis=0) + (EFFECT + 0.4 * x[0]) * t + random.normal(0, 0.3, N)
    return {"t": t, "y": np.clip(y, -4, 4), "a": x[0], "b": x[1], "c": x[2]}


def weights_of(data: dict[str, np.ndarray]) -> np.ndarray:
    x = np.column_stack([data[name] for name in NAMES])
    usual = len(NAMES) * USUAL / FINE**2
    found: np.ndarray = np.minimum(1, 3 * usual / (2 * usual + (x**2).sum(axis=1)))
    return found


def test_without_noise_it_is_weighted_least_squares() -> None:
    data = columns()
    source = fresh_noise(pa.table(data), SCHEMA)
    release = source.release(WeightedRegressionMoments(NAMES), dpc.Guarantee(epsilon=100.0, delta=1e-3))
    found = fit_noise_aware(release, source)
    weights = weights_of(data)
    assert weights.min() < 0.55 < weights.mean() < 0.97
    x = np.column_stack([data[name] for name in NAMES])
    design, lines = np.column_stack([np.ones(N), x]), []
    for arm in (0, 1):
        root = np.sqrt(weights) * (data["t"] == arm)
        lines.append(np.linalg.lstsq(design * root[:, None], data["y"] * root, rcond=None)[0])
    assert np.allclose(found.slopes, [line[1:] for line in lines], atol=0.05)
    assert found.centres == pytest.approx(np.average(x, axis=0, weights=weights), abs=0.006)
    means = [float(np.average(design @ line, weights=weights)) for line in lines]
    assert found.means == pytest.approx(means, abs=0.01)
    assert units_compared(release, source) == pytest.approx(N, abs=1)
    fit = fit_regressions(release, source, np.array([release.values]))
    assert fit.n[0] == pytest.approx(weights.sum(), rel=0.01)
    assert not arm_refusal(release, source, fit)
    assert not signs_of_moments(release, source, fit).unread


def test_posterior_sd_matches_the_error_of_noise() -> None:
    """Over releases of one table: the distance to what the same table gives without noise, shrinkage included."""
    source, query = fresh_noise(pa.table(columns()), SCHEMA), WeightedRegressionMoments(NAMES)

    def effect(epsilon: float, delta: float) -> tuple[float, float]:
        release = source.release(query, dpc.Guarantee(epsilon=epsilon, delta=delta))
        found = fit_noise_aware(release, source)
        return found.effect, found.effect_variance**0.5

    exact, _ = effect(100.0, 1e-3)
    found, sds = np.array([effect(1.0, 1e-6) for _ in range(100)]).T
    assert 0.8 < np.median(sds) / np.sqrt(np.mean((found - exact) ** 2)) < 1.6


def test_effects_have_no_bias_where_the_outcome_is_linear() -> None:
    """Weights depend on covariates alone: skewed ones, arms that differ and effects that vary do not bias them."""
    errors = []
    for seed in range(12):
        data = columns(seed)
        source = fresh_noise(pa.table(data), SCHEMA)
        release = source.release(WeightedRegressionMoments(NAMES), dpc.Guarantee(epsilon=100.0, delta=1e-3))
        everyone = np.array([data[name].mean() for name in NAMES])
        found = fit_noise_aware(release, source).over(everyone, np.zeros((3, 3)))
        errors.append(found.effect - EFFECT - 0.4 * data["a"].mean())
    assert abs(np.mean(errors)) < np.std(errors) / 2 < 0.01


def chosen(count: int, *, delta: float = 1e-6, protects: str = "record") -> type[Moments]:
    names = [f"x{place}" for place in range(count)]
    covariates = [dpc.Real(name, 0, 1, typical=(0.3, 0.7)) for name in names]
    schema = replace(SCHEMA, covariates=covariates, protects=protects)  # type: ignore[arg-type]
    guarantee = dpc.Guarantee(epsilon=1.0, delta=delta, protects=protects)  # type: ignore[arg-type]
    return type(slope_moments(names, dpc.Rehearsal(schema, 10_000), guarantee))


def test_moments_with_the_least_noise_are_chosen_from_public_numbers() -> None:
    assert chosen(1) is WeightedRegressionMoments
    assert chosen(10) is WeightedRegressionMoments
    assert chosen(10, delta=0.0) is RegressionMoments
    assert chosen(10, protects="outcome") is RegressionMoments


def test_ten_covariates_take_a_fraction_of_the_noise() -> None:
    """In the products of the outcome and features, on which slopes hang."""
    names = [f"x{place}" for place in range(10)]
    schema = replace(SCHEMA, covariates=[dpc.Real(name, 0, 1, typical=(0.3, 0.7)) for name in names])
    plan = dpc.Rehearsal(schema, 20_000)
    asked = RegressionMoments(names), WeightedRegressionMoments(names)
    plain, weighted = (plan.release(query, GUARANTEE) for query in asked)
    for name, least in (("outcome * x0", 2.0), ("x0", 5.0), ("x0 * x1", 3.0)):
        assert weighted.scale(name) < plain.scale(name) / least


def test_nobody_is_compared_where_an_arm_is_empty() -> None:
    data = columns()
    source = fresh_noise(pa.table(data | {"t": np.zeros(N, dtype=int)}), SCHEMA)
    effect = dpc.RegressionAdjustment(covariates=NAMES).estimate(source, epsilon=1.0, delta=1e-6)
    assert effect.no_interval


def test_regression_adjustment_counts_all_units_alike() -> None:
    names = [f"x{place}" for place in range(10)]
    schema = replace(SCHEMA, covariates=[dpc.Real(name, 0, 1, typical=(0.3, 0.7)) for name in names])
    plan = dpc.RegressionAdjustment(covariates=names).estimate(dpc.Rehearsal(schema, 20_000), epsilon=1.0, delta=1e-6)
    asked = [receipt.query for receipt in plan.receipts]
    assert "regression_moments" in asked
    assert "weighted_regression_moments" not in asked


FOUR = ["a", "b", "c", "d"]


@pytest.mark.parametrize("estimator", [dpc.RegressionAdjustment(covariates=FOUR), dpc.DoublyRobust(covariates=FOUR)])
def test_a_trial_is_right_where_the_effect_is_not_linear(estimator: Estimator) -> None:
    """Randomisation alone makes it so (Lin 2013). A regression of units with weights is off by 0.16, two intervals."""
    covariates = [dpc.Real(name, 0, 10, typical=(1, 5)) for name in FOUR]
    schema, errors = replace(SCHEMA, outcome=dpc.Real("y", 0, 40), covariates=covariates), []
    for seed in range(3):
        random = np.random.default_rng(seed)
        x, t = np.clip(random.lognormal(0.7, 0.7, (4, 20_000)), 0, 10), random.integers(0, 2, 20_000)
        tau = 0.12 * ((x - 2.8) ** 2).sum(axis=0)
        y = np.clip(6 + 0.8 * x.sum(axis=0) + tau * t + random.normal(0, 1.5, 20_000), 0, 40)
        source = fresh_noise(pa.table({"t": t, "y": y, **dict(zip(FOUR, x, strict=True))}), schema)
        errors.append(estimator.estimate(source, epsilon=6.0, delta=1e-6).estimate - tau.mean())
    assert abs(np.mean(errors)) < 0.08


def test_regressions_of_weighted_units_give_no_level() -> None:
    """The scores correct the difference, and nothing the means: in such a trial the control arm's were off by 0.26."""
    source = fresh_noise(pa.table(columns()), SCHEMA)
    by_regression = "for the arms' means, but not their difference: outcomes are linear in the covariates in each arm"
    for delta, level in ((0.0, True), (1e-6, False)):
        effect = dpc.DoublyRobust(covariates=NAMES).estimate(source, epsilon=2.0, delta=delta)
        assert (effect.arm_means is not None) is level
        assert (by_regression in effect.assumptions) is level
