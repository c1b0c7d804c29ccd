import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import RefusedError
from dpcausal.queries.features import Estimand
from dpcausal.vault.table import open_table
from tests.support.engines import fresh_noise

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("x", 0, 1), dpc.Category("k", ["p", "q", "r"]), dpc.Binary("b")],
)

# The effect is 0.2 x, so that each estimand has an effect of its own; a difference in means is far from all of them.
EFFECTS = {"ATE": 0.1, "ATT": 0.1305, "ATC": 0.0707, "ATO": 0.1}


def table_of(n: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, n)
    t = (generator.random(n) < 1 / (1 + np.exp(-4 * (x - 0.5)))).astype(int)
    y = 0.1 + 0.4 * x + 0.2 * x * t + generator.uniform(0, 0.2, n)
    k, b = generator.choice(["p", "q", "r"], n), generator.integers(0, 2, n)
    return pa.table({"t": t, "x": x, "y": y, "k": k, "b": b})


def vault_of(table: pa.Table) -> dpc.Vault:
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1000, delta=0.1))


@pytest.mark.parametrize("estimand", EFFECTS)
def test_each_estimand_is_found(estimand: Estimand) -> None:
    """Among them ATT and ATC, which the paper's formula multiplies by the share of the arm."""
    effect = dpc.InverseWeighting(covariates=["x"], estimand=estimand).estimate(vault_of(table_of(40_000)), epsilon=4.0)
    assert effect.estimate == pytest.approx(EFFECTS[estimand], abs=0.012)
    low, high = effect.interval()
    assert high - low < 0.05


def test_all_kinds_of_covariates_make_a_score() -> None:
    effect = dpc.InverseWeighting(covariates=["x", "k", "b"]).estimate(vault_of(table_of(40_000)), epsilon=4.0)
    assert effect.estimate == pytest.approx(0.1, abs=0.015)


def test_output_perturbation_refuses_an_interval() -> None:
    effect = dpc.InverseWeighting(covariates=["x"], scores="output", penalty=0.001).estimate(
        vault_of(table_of(40_000)), epsilon=4.0, delta=1e-6
    )
    assert effect.estimate == pytest.approx(0.1, abs=0.03)
    with pytest.raises(RefusedError, match="ridge"):
        effect.interval()


def test_too_noisy_a_score_refuses_an_interval() -> None:
    effect = dpc.InverseWeighting(covariates=["x", "k", "b"]).estimate(vault_of(table_of(500)), epsilon=0.1)
    with pytest.raises(RefusedError, match=r"noise"):
        effect.interval()


def test_a_score_from_other_units_leaves_each_source_all_of_epsilon() -> None:
    table = table_of(40_000)
    halves = [vault_of(table.slice(0, 20_000)), vault_of(table.slice(20_000))]
    effect = dpc.InverseWeighting(covariates=["x"]).estimate(halves[0], epsilon=2.0, scores_from=halves[1])
    assert effect.estimate == pytest.approx(0.1, abs=0.02)
    assert [vault.ledger.spent.epsilon for vault in halves] == [pytest.approx(2.0), pytest.approx(2.0, abs=0.05)]
    assert effect.guarantee.epsilon == 2.0
    assert "other units" in str(effect)


def test_scores_from_needs_other_units_with_the_same_protection() -> None:
    table = table_of(200)
    vault, estimator = vault_of(table), dpc.InverseWeighting(covariates=["x"])
    on_one_ledger = dpc.Vault(table, SCHEMA, ledger=vault.ledger)
    weaker = dpc.Vault(table, replace(SCHEMA, protects="outcome"), ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    for other in (vault, on_one_ledger, weaker):
        with pytest.raises(dpc.DpcausalError):
            estimator.estimate(vault, epsilon=1.0, scores_from=other)
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimand": "att"},
        {"clip": 0},
        {"clip": 0.6},
        {"scores": "Objective"},
        {"penalty": -1},
        {"share": 1},
        {"covariates": "x * z"},
        {"covariates": ["y"]},
    ],
    ids=str,
)
def test_a_mistake_costs_nothing(wrong: dict[str, Any]) -> None:
    vault = vault_of(table_of(200))
    with pytest.raises(dpc.DpcausalError):
        dpc.InverseWeighting(**{"covariates": ["x"]} | wrong).estimate(vault, epsilon=1.0)
    assert vault.ledger.spent.epsilon == 0


def test_debiased_weights_undo_the_bias_of_noise() -> None:
    """Weights are exponentials of a noisy predictor: too large on average, unless they are shrunk."""
    engine = open_table(table_of(4_000), SCHEMA)
    query = dpc.queries.WeightedArms(["x"], [0.0, 1.5], "ATT", 0.001)

    def control_weight(coefficients: np.ndarray[tuple[int, ...], np.dtype[np.float64]], shrink: float) -> float:
        asked = replace(query, coefficients=coefficients.tolist(), shrink=shrink)
        ticks = exact_answer(asked, SCHEMA, engine, dpc.Guarantee(epsilon=1)).ticks
        return (ticks["weight_sum"] - ticks["weight_difference"]) / 2

    sd = 0.8
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)  # Gaussian quadrature: means over noise without a draw
    noisy = [np.array(query.coefficients) + sd * np.array(at) for at in itertools.product(nodes, nodes)]
    shares = np.outer(weights, weights).ravel() / weights.sum() ** 2
    wanted = control_weight(np.array(query.coefficients), 0.0)
    plain, debiased = (shares @ [control_weight(each, shrink) for each in noisy] for shrink in (0.0, sd**2 / 2))
    assert plain > 1.1 * wanted
    assert debiased == pytest.approx(wanted, rel=0.12)


def test_means_of_arms_have_the_error_of_their_sizes() -> None:
    """Not of the outcome's level, which gave the error to one arm: a third of the control arm's where few have one."""
    random = np.random.default_rng(0)
    x, t = random.uniform(0, 1, 20_000), random.integers(0, 2, 20_000)
    y = (random.random(20_000) < 0.1 + 0.02 * t).astype(int)
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Binary("y"), covariates=[dpc.Real("x", 0, 1, typical=(0.05, 0.95))])
    source = fresh_noise(pa.table({"t": t, "y": y, "x": x}), schema)
    means = dpc.InverseWeighting(covariates=["x"], estimand="ATE").estimate(source, epsilon=20.0).arm_means
    assert means is not None
    for place, risk in enumerate((0.1, 0.12)):
        line = [float(place == at) for at in range(2)]
        assert means.sampling_sd(line) == pytest.approx((risk * (1 - risk) / 10_000) ** 0.5, rel=0.15)
