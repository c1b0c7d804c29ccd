"""Logistic regressions of all units: what one unit moves that changes its arm, or gains or loses its outcome."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.densities import Law, largest_ratio
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, AllUnitsLogistic, ObjectivePerturbedLogistic, ObservedLogistic, seen_by
from dpcausal.queries.features import COEFFICIENT_TICK
from dpcausal.vault.answers.logistic import penalised
from dpcausal.vault.answers.observed_logistic import observed_sums
from dpcausal.vault.engines import Batch
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.exact_gradients import as_floats, minimise
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.table import open_table
from tests.support.unit_losses import UnitByUnit, by_units

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)],
)
NAMES = ("intercept", "a", "b")
QUERY = ObservedLogistic(["a", "b"])
FEATURES = Features(["a", "b"], SCHEMA)
SHARES = float(QUERY.shares["curvature"] + QUERY.shares["gradient"])


def table(units: int = 400, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    arm, a, b = random.integers(0, 2, units), random.uniform(-1, 1, units), random.uniform(-1, 1, units)
    missing = random.random(units) < 1 / (1 + np.exp(1 - 2 * a * (2 * arm - 1)))
    return pa.table({"t": arm, "y": pa.array(np.where(missing, np.nan, 0.5), from_pandas=True), "a": a, "b": b})


def batch_of(units: pa.Table) -> Batch:
    missing = np.array(units["y"].is_null())
    made = {"treatment": np.array(units["t"]), "outcome": np.where(missing, GRID, -GRID)}
    covariates = {f"covariate_{at}": np.rint(np.array(units[name]) * GRID) for at, name in enumerate("ab")}
    return {name: np.asarray(column, dtype=np.int64) for name, column in (made | covariates).items()}


def coefficients(units: pa.Table, query: ObjectivePerturbedLogistic, epsilon: float = 0.5) -> NDArray[np.float64]:
    ticks = exact_answer(query, SCHEMA, open_table(units, SCHEMA), dpc.Guarantee(epsilon=epsilon)).ticks
    names = [at.name for at in query.sensitivity(seen_by(query, SCHEMA), "record", "l1").coordinates]
    return np.array([ticks[name] for name in names]) * COEFFICIENT_TICK


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_both_arms_together_keep_epsilon_at_every_coefficient(epsilon: float) -> None:
    """All tables of up to two units, and all changes of one: of its arm, its covariates, and whether it is seen."""
    most, tried = largest_ratio(by_units(Law.of_outcomes(epsilon)), epsilon, (1, 2))
    assert tried > 5_000
    assert 0.3 * epsilon < most <= SHARES * epsilon


@pytest.mark.parametrize("arm", [0, 1])
def test_losses_of_a_table_are_those_of_its_units(arm: int) -> None:
    """So that a search may add them up unit by unit: exactly, in tables of any size."""
    losses = partial(observed_sums, features=FEATURES, arm=arm)
    unit_by_unit = UnitByUnit(losses)
    for units in (1, 2, 3_000):
        batch, at = batch_of(table(units)), np.random.default_rng(units).normal(0, 5, 3)
        assert (losses(at, batch) == unit_by_unit(at, batch)).all()


def test_half_the_tilt_in_each_arm_or_a_tiny_ridge_is_caught() -> None:
    """The mutants: a unit is in one of two arms, but one that stays moves all of that arm's random term."""
    law = by_units(Law.of_outcomes(0.5))
    assert largest_ratio(replace(law, scale=law.scale / 2), 0.5, (1, 2))[0] > 0.5
    assert largest_ratio(replace(law, penalty=law.penalty / 50), 0.5, (1, 2))[0] > 0.5


def test_each_arm_has_a_tilt_of_its_own_and_the_ridge_of_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, float]] = []
    tilts = [np.array([3.0, -2.0, 1.0]), np.array([-1.0, 0.5, 2.0])]

    def cube(_: Sampler, dimensions: int, scale: float) -> NDArray[np.float64]:
        drawn.append((dimensions, scale))
        return tilts[len(drawn) - 1]

    monkeypatch.setattr(Sampler, "cube", cube)
    units = table()
    found = coefficients(units, QUERY)
    assert drawn == [(3, QUERY.tilt_scale(0.5, 3))] * 2
    for arm, own in enumerate(np.split(found, 2)):
        losses = as_floats(observed_sums(own, batch_of(units), FEATURES, arm))[0]
        assert losses + QUERY.penalty(0.5) * own == pytest.approx(-tilts[arm], abs=1e-4)


@pytest.mark.parametrize("arm", [0, 1])
def test_an_arm_is_fitted_to_its_own_units_alone(arm: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by one regression of that arm's units; those of the other arm may be anything."""
    monkeypatch.setattr(Sampler, "cube", lambda _, dimensions, __: np.zeros(dimensions))
    units = table()
    own = units.filter(pa.compute.equal(units["t"], arm))
    signs = np.where(np.array(own["y"].is_null()), -1, 1)
    lines = np.column_stack([np.ones(len(signs)), np.array(own["a"]), np.array(own["b"])]) / math.sqrt(3)

    def losses(at: NDArray[np.float64]) -> NDArray[np.float64]:
        share = 1 / (1 + np.exp(signs * (lines @ at)))
        gradient = -(signs * share) @ lines
        return np.vstack([gradient, (lines * (share * (1 - share))[:, None]).T @ lines])

    expected = minimise(penalised(losses, QUERY.penalty(0.5), np.zeros(3)), 3, 1e-9)
    other = table(300, seed=1)
    both = pa.concat_tables([own, other.filter(pa.compute.equal(other["t"], 1 - arm))])
    for each in (units, both):
        assert np.split(coefficients(each, QUERY), 2)[arm] == pytest.approx(expected, abs=1e-4)


def test_slack_counts_for_both_arms() -> None:
    """Solver and grid move each arm's minimum, and noise on the result covers both."""
    one = ObjectivePerturbedLogistic(["a", "b"]).sensitivity(SCHEMA, "record", "l1")
    both = QUERY.sensitivity(seen_by(QUERY, SCHEMA), "record", "l1")
    assert [at.name for at in both.coordinates] == [f"arm_{arm} * {name}" for arm in (0, 1) for name in NAMES]
    root = math.sqrt(2)
    for at in both.coordinates:
        assert (at.weight or 0) * both.bound >= 2 * root * (one.coordinates[0].weight or 0) * one.bound * 0.9999


def test_propensity_of_all_units_counts_those_without_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "cube", lambda _, dimensions, __: np.zeros(dimensions))
    units = table()
    complete = units.set_column(1, "y", pa.array([0.5] * len(units)))
    of_all = coefficients(units, AllUnitsLogistic(["a", "b"]))
    assert of_all.tolist() == coefficients(complete, ObjectivePerturbedLogistic(["a", "b"])).tolist()
    assert of_all.tolist() != coefficients(units, ObjectivePerturbedLogistic(["a", "b"])).tolist()


@pytest.mark.parametrize("kind", [AllUnitsLogistic, ObservedLogistic])
def test_it_is_refused_where_no_outcome_can_be_missing(kind: type[ObjectivePerturbedLogistic]) -> None:
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1, missing=0.5), covariates=SCHEMA.covariates)
    vault = dpc.Vault(table(), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    with pytest.raises(QueryError, match="cannot be missing"):
        vault.release(kind(["a", "b"]), dpc.Guarantee(epsilon=1))
