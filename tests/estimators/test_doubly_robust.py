from dataclasses import replace
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.queries.augmented_scores import AugmentedEstimand
from dpcausal.source import SummedSource
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("x", 0, 1), dpc.Category("k", ["p", "q", "r"], missing="r")],
)

# The effect is 0.2 x, so that each estimand has an effect of its own; a difference in means is far from all of them.
EFFECTS = {"ATE": 0.1, "ATT": 0.1305, "ATO": 0.1}


def table_of(n: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, n)
    t = (generator.random(n) < 1 / (1 + np.exp(-4 * (x - 0.5)))).astype(int)
    y = 0.1 + 0.4 * x + 0.2 * x * t + generator.uniform(0, 0.2, n)
    return pa.table({"t": t, "x": x, "y": y, "k": generator.choice(["p", "q", "r"], n)})


def curved_table(n: int) -> pa.Table:
    """The outcome is curved and arms lie apart, so that a regression misses by a fifth of the effect of 0.1."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 1, n)
    t = (generator.random(n) < 1 / (1 + np.exp(-4 * (x - 0.7)))).astype(int)
    y = 0.1 + 1.5 * (x - 0.5) ** 2 + 0.1 * t + generator.uniform(0, 0.2, n)
    return pa.table({"t": t, "x": x, "y": y, "k": ["p"] * n})


def vault_of(table: pa.Table) -> dpc.Vault:
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1000, delta=0.1))


@pytest.mark.parametrize("estimand", get_args(AugmentedEstimand))
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_each_estimand_is_found(estimand: AugmentedEstimand, delta: float) -> None:
    estimator = dpc.DoublyRobust(covariates=["x", "k"], estimand=estimand)
    effect = estimator.estimate(vault_of(table_of(40_000)), epsilon=4.0, delta=delta)
    assert effect.estimate == pytest.approx(EFFECTS[estimand], abs=0.012)
    low, high = effect.interval()
    assert low - 0.01 < EFFECTS[estimand] < high + 0.01
    assert high - low < 0.05


def test_the_propensity_makes_up_for_a_regression_of_the_wrong_shape() -> None:
    vault = vault_of(curved_table(100_000))
    alone = dpc.RegressionAdjustment(covariates=["x"]).estimate(vault, epsilon=8.0, delta=1e-6)
    both = dpc.DoublyRobust(covariates=["x"], limit=20).estimate(vault, epsilon=8.0, delta=1e-6)
    assert abs(alone.estimate - 0.1) > 0.012
    assert abs(both.estimate - 0.1) < 0.008
    low, high = both.interval()
    assert low < 0.1 < high


def test_scores_that_the_limit_cuts_off_refuse_an_interval() -> None:
    """In the same table some scores are beyond the usual limit, which gives part of the correction away."""
    effect = dpc.DoublyRobust(covariates=["x"]).estimate(vault_of(curved_table(100_000)), epsilon=8.0, delta=1e-6)
    with pytest.raises(RefusedError, match="beyond the limit"):
        effect.interval()


def test_four_queries_share_the_guarantee() -> None:
    effect = dpc.DoublyRobust(covariates=["x"]).estimate(vault_of(table_of(5_000)), epsilon=1.0, delta=1e-6)
    assert {receipt.query for receipt in effect.receipts} == {
        "covariate_counts",
        "weighted_regression_moments",
        "bounded_influence_logistic",
        "augmented_scores",
        "missing_outcomes",
    }
    assert sum(receipt.epsilon for receipt in effect.receipts) == pytest.approx(1.0)
    deltas = {receipt.query: receipt.delta for receipt in effect.receipts if receipt.delta > 0}
    assert deltas == {"weighted_regression_moments": 1e-6}  # elsewhere Laplace noise is smaller
    assert effect.guarantee.delta == 1e-6


def test_many_moments_have_all_of_delta() -> None:
    effect = dpc.DoublyRobust(covariates=["x", "k", "z"]).estimate(
        dpc.Rehearsal(
            replace(SCHEMA, covariates=[*SCHEMA.covariates, dpc.Category("z", list("abcd"), missing="d")]), n=5_000
        ),
        epsilon=1.0,
        delta=1e-6,
    )
    assert {receipt.query: receipt.delta for receipt in effect.receipts} == {
        "covariate_counts": 0.0,
        "weighted_regression_moments": 1e-6,
        "bounded_influence_logistic": 0.0,
        "augmented_scores": 0.0,
        "missing_outcomes": 0.0,
    }
    assert effect.guarantee.delta == 1e-6


def test_more_units_leave_more_of_epsilon_to_the_sums() -> None:
    """The split follows from n, epsilon and the schema alone."""
    shares = []
    for n in (2_000, 2_000_000):
        plan = dpc.DoublyRobust(covariates=["x"]).estimate(dpc.Rehearsal(SCHEMA, n=n), epsilon=1.0, delta=1e-6)
        asked = {receipt.query: receipt.epsilon for receipt in plan.receipts}
        shares.append(asked["augmented_scores"])
    assert shares[0] < shares[1]


def test_models_that_noise_drowns_refuse_an_interval() -> None:
    """Noise hides what a covariate does that is narrow beside its bounds; in most runs that is seen."""
    table = table_of(20_000)
    narrow = table.set_column(1, "x", pa.array(0.5 + 0.01 * (table["x"].to_numpy() - 0.5)))
    source = SummedSource(fresh_noise(narrow, SCHEMA))  # without a scale
    effects = [dpc.DoublyRobust(covariates=["x"]).estimate(source, epsilon=1.0, delta=1e-6) for _ in range(12)]
    refused = [effect for effect in effects if effect.no_interval]
    assert len(refused) >= 6
    with pytest.raises(RefusedError, match="hides how x varies"):
        refused[0].interval()


def test_a_rare_arm_has_a_smaller_clip_and_an_interval_that_covers() -> None:
    """A treated unit in ten is kept: treatment is then logistic with another constant, and the mean of x is smaller."""
    table = table_of(200_000)
    treated = table["t"].to_numpy() == 1
    rare = table.filter(~treated | (np.arange(200_000) % 10 == 0))
    schema = replace(SCHEMA, covariates=[dpc.Real("x", 0, 1, typical=(0.1, 0.9), transform="linear")])
    vault = dpc.Vault(rare, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=4, delta=1e-6))
    # With a larger limit, so that no luck in the outcome regressions refuses an interval.
    effect = dpc.DoublyRobust(covariates=["x"], limit=20).estimate(vault, epsilon=4.0, delta=1e-6)
    assert "propensities clipped to 0.01 and 0.99" in effect.method
    low, high = effect.interval(0.999)
    assert low < 0.2 * float(np.mean(rare["x"].to_numpy())) < high


def test_a_clip_that_leaves_out_much_of_an_arm_refuses_an_interval() -> None:
    effect = dpc.DoublyRobust(covariates=["x"], clip=0.4).estimate(vault_of(table_of(40_000)), epsilon=4.0, delta=1e-6)
    with pytest.raises(RefusedError, match="lower clip"):
        effect.interval()


@pytest.mark.parametrize("wrong", [{"estimand": "ATC"}, {"clip": 0.0}, {"limit": 0.1}, {"limit": "5"}])
def test_wrong_parameters_are_refused_before_anything_is_spent(wrong: dict[str, object]) -> None:
    vault = vault_of(table_of(300))
    with pytest.raises(QueryError):
        dpc.DoublyRobust(covariates=["x"], **wrong).estimate(vault, epsilon=1.0)  # type: ignore[arg-type]
    assert vault.ledger.spent.epsilon == 0
