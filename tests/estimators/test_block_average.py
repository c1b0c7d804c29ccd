"""Averages over blocks: what learners find under quadratic confounding, and what the estimator makes of it."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.release import Noisy
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.learners import forest_average, linear, quadratic_average
from tests.support.engines import fresh_noise

EFFECT = 1.0
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", -10, 10),
    covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)],
)


def curved(n: int) -> dict[str, np.ndarray]:
    """Return a table in which the square of one covariate moves treatment and outcome."""
    generator = np.random.default_rng(5)
    a, b = generator.uniform(-1, 1, (2, n))
    arm = (generator.random(n) < 1 / (1 + np.exp(-4 * (a**2 - 1 / 3)))).astype(float)
    return {"t": arm, "y": 3 * a**2 + b + EFFECT * arm + generator.normal(0, 0.5, n), "a": a, "b": b}


@pytest.mark.parametrize("learner", [quadratic_average, forest_average])
def test_average_learner_finds_the_effect_that_a_linear_one_misses(learner: object) -> None:
    table = curved(4_000)
    covariates, profiles = np.column_stack([table["a"], table["b"]]), np.zeros((3, 2))
    found = learner(covariates, table["t"], table["y"], profiles)  # type: ignore[operator]
    assert found == pytest.approx([EFFECT] * 3, abs=0.1)
    assert linear(covariates, table["t"], table["y"], profiles)[0] > EFFECT + 0.4


def test_average_learner_ignores_terms_that_do_not_vary() -> None:
    table = curved(2_000)
    constant = np.column_stack([table["a"], np.ones(2_000)])
    assert quadratic_average(constant, table["t"], table["y"], np.zeros((1, 2)))[0] == pytest.approx(EFFECT, abs=0.15)


def test_estimate_and_standard_error_follow_from_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "add_noise", lambda _, ticks, __: Noisy(tuple(ticks)))
    n, blocks = 20_000, 50
    source = fresh_noise(pa.table(curved(n)), SCHEMA)
    effects = [dpc.BlockAverage(["a", "b"], blocks=blocks).estimate(source, epsilon=100) for _ in range(5)]
    errors = [effect.estimate - EFFECT for effect in effects]
    # The table's own error is common to all; another order of the units moves the estimate by far less.
    assert np.abs(errors).max() < 0.04
    # The residual's variance is 0.25, and the mean of 1 / (e (1 - e)) is 5.84, e the propensity.
    assert np.mean([effect.sampling_sd for effect in effects]) == pytest.approx((0.25 * 5.84 / n) ** 0.5, rel=0.15)


def test_noise_is_two_limits_over_the_number_of_blocks() -> None:
    plan = dpc.BlockAverage(["a"], blocks=100, limit=0.3).estimate(dpc.Rehearsal(SCHEMA, 50_000), epsilon=0.5)
    assert plan.privacy_sd == pytest.approx(2**0.5 * 2 * 0.3 * 10 / 100 / plan.receipts[0].epsilon, rel=1e-4)


def test_too_few_blocks_have_no_interval() -> None:
    plan = dpc.BlockAverage(["a", "b"]).estimate(dpc.Rehearsal(SCHEMA, 3_000), epsilon=1.0)
    assert "too few" in plan.no_interval
    assert not dpc.BlockAverage(["a", "b"]).estimate(dpc.Rehearsal(SCHEMA, 4_000), epsilon=1.0).no_interval


def test_many_covariates_have_larger_blocks() -> None:
    columns = [dpc.Real(f"x{place}", 0, 1) for place in range(12)]
    wide = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=columns)
    plan = dpc.BlockAverage([column.name for column in columns]).estimate(dpc.Rehearsal(wide, 100_000), epsilon=1.0)
    assert plan.method.startswith("mean over 43 blocks")


def test_an_effect_beyond_the_limit_has_no_interval() -> None:
    source = fresh_noise(pa.table(curved(20_000)), SCHEMA)
    effect = dpc.BlockAverage(["a", "b"], limit=0.1).estimate(source, epsilon=10)  # the effect is 0.1 half ranges
    assert "raise limit" in effect.no_interval
