"""Regressions among units with an outcome are averaged over all units: where asked for, and for no other price."""

from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import DpcausalError, QueryError
from dpcausal.estimators.all_units import ask_all_units
from dpcausal.estimators.noise_aware_regression import fit_noise_aware
from dpcausal.estimators.outcome_regression import fit_regressions
from dpcausal.queries import VaryingEffectMoments
from dpcausal.schema.schema import PROTECTS, Protects

UNITS = 20_000
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"),
    outcome=dpc.Real("y", 0, 100),
    covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b", "c"], missing="c")],
)
NAMES = ["age", "ward"]
ALL, COMPLETE = dpc.RegressionAdjustment(NAMES, include_missing=True), dpc.RegressionAdjustment(NAMES)


def _table(units: int = UNITS, seed: int = 3) -> tuple[pa.Table, float, float]:
    """Return a table in which the old gain more and are seen less often, and the effect in all and in those seen."""
    random = np.random.default_rng(seed)
    age, ward = np.clip(random.normal(50, 15, units), 18, 90), random.integers(0, 3, units)
    old = (age - 50) / 15
    arm = (random.random(units) < 1 / (1 + np.exp(-0.5 * old))).astype(int)
    effects = 5 + 4 * old + 3 * (ward == 2)
    outcomes = 40 + 5 * old + 2 * ward + effects * arm + random.normal(0, 8, units)
    missing = random.random(units) < 1 / (1 + np.exp(1.1 - (1 + 0.3 * arm) * old))
    outcomes[missing] = np.nan
    columns = {"t": arm, "y": pa.array(outcomes, from_pandas=True), "age": age, "ward": np.array(["a", "b", "c"])[ward]}
    return pa.table(columns), float(effects.mean()), float(effects[~missing].mean())


TABLE, IN_ALL, IN_SEEN = _table()


def vault(schema: dpc.Schema = SCHEMA) -> dpc.Vault:
    return dpc.Vault(TABLE, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=9, delta=1e-5))


@pytest.fixture(scope="module")
def effects() -> dict[str, dpc.Effect]:
    source = vault()
    return {
        name: each.estimate(source, epsilon=2.0, delta=1e-6) for name, each in (("all", ALL), ("complete", COMPLETE))
    }


def test_effect_in_all_units_is_found_where_complete_cases_give_another(effects: dict[str, dpc.Effect]) -> None:
    assert abs(IN_ALL - IN_SEEN) > 0.8
    for name, truth, other in (("all", IN_ALL, IN_SEEN), ("complete", IN_SEEN, IN_ALL)):
        low, high = effects[name].interval()
        assert low < truth < high
        assert not low < other < high


@pytest.mark.parametrize("protects", PROTECTS[1:])
def test_it_is_found_where_arms_or_covariates_are_public(protects: Protects) -> None:
    effect = ALL.estimate(vault(replace(SCHEMA, protects=protects)), epsilon=2.0)
    low, high = effect.interval()
    assert low < IN_ALL < high
    assert effect.guarantee.protects == protects


def test_result_says_whose_effect_it_is(effects: dict[str, dpc.Effect]) -> None:
    both = effects["all"], effects["complete"]
    assert [effect.includes_missing for effect in both] == [True, False]
    assert "over all units, with an outcome or without" in both[0].estimand
    assert "outcomes are missing at random given the arm and age, ward" in both[0].assumptions
    for effect, said in zip(both, ("all units, with an outcome or without", "units with an outcome"), strict=True):
        assert f"the effect is that in {said}\n" in str(effect)
        first_page = dpc.Report.of(effect, date=date(2026, 1, 1)).to_html().partition("<h2")[2]
        assert f"The effect is that in {said}." in first_page
        assert ("it differs from that in all units" in first_page) == (not effect.includes_missing)
        assert dpc.Effect.from_json(effect.to_json()) == effect
    assert dpc.pool({"north": both[0], "south": both[0]}, "sample_size").includes_missing
    with pytest.raises(DpcausalError, match="the same estimand"):
        dpc.pool({"north": both[0], "south": both[1]}, "sample_size")


def test_units_compared_are_those_with_an_outcome(effects: dict[str, dpc.Effect]) -> None:
    for effect in effects.values():
        assert effect.compared == pytest.approx(UNITS - TABLE["y"].null_count, rel=0.05)


def test_price_is_the_same_and_nothing_is_asked_where_it_is_not_needed(effects: dict[str, dpc.Effect]) -> None:
    asked = [receipt.query for receipt in effects["complete"].receipts]
    assert asked == ["covariate_counts", "regression_moments", "missing_outcomes"]
    assert sum(receipt.epsilon for receipt in effects["all"].receipts) == pytest.approx(2.0)
    never = dpc.Rehearsal(replace(SCHEMA, outcome=dpc.Real("y", 0, 100, missing=50)), n=UNITS)
    plans = [each.estimate(never, epsilon=1.0) for each in (ALL, COMPLETE)]
    assert replace(plans[0], estimator=plans[1].estimator) == plans[1]


def test_one_effect_for_all_is_refused_before_anything_is_spent() -> None:
    source = vault()
    with pytest.raises(QueryError, match="interaction=True with include_missing=True"):
        replace(ALL, interaction=False).estimate(source, epsilon=1.0)
    assert source.ledger.spent.epsilon == 0


def test_plan_asks_the_same_and_says_what_it_does_not_know(effects: dict[str, dpc.Effect]) -> None:
    plan = ALL.estimate(dpc.Rehearsal(SCHEMA, n=UNITS), epsilon=2.0, delta=1e-6)
    asked = [(each.query, each.epsilon, each.delta) for each in plan.receipts]
    assert asked == [(each.query, each.epsilon, each.delta) for each in effects["all"].receipts]
    assert any("as if no outcome were missing" in note for note in plan.notes)


def test_errors_over_all_units_are_those_of_predictions_at_their_means() -> None:
    """Drawn coefficients and mean covariates, multiplied out, vary as the closed form says."""
    source = vault()
    everyone, rest = ask_all_units(source, NAMES, dpc.Guarantee(epsilon=0.2))
    release = source.release(VaryingEffectMoments(NAMES), rest)
    own = fit_noise_aware(release, source)
    moved = own.over(everyone.centre, everyone.noise)
    random = np.random.default_rng(0)
    coefficients = random.multivariate_normal(own.coefficients.ravel(), own.covariance, 200_000).reshape(200_000, 2, -1)
    centres = random.multivariate_normal(everyone.centre, everyone.noise, 200_000) - own.centres
    means = coefficients[:, :, 0] + np.einsum("vai,vi->va", coefficients[:, :, 1:], centres)
    apart = means[:, 1] - means[:, 0]
    assert moved.effect == pytest.approx(float(apart.mean()), abs=5 * apart.std() / 200_000**0.5)
    assert moved.effect_variance == pytest.approx(float(apart.var()), rel=0.02)
    assert moved.effect_variance > own.effect_variance
    still = own.over(own.centres, 0 * everyone.noise)
    assert still.means == pytest.approx(own.means)
    assert still.covariance == pytest.approx(own.covariance)
    fit = fit_regressions(release, source, np.array([release.values]))
    centre = (fit.sizes[0][:, None] * fit.centres[0]).sum(axis=0) / fit.n[0]
    assert fit.sampling_variance_over(float(fit.n[0]), centre) == pytest.approx(fit.sampling_variance)
    assert fit.sampling_variance_over(float(fit.n[0]), everyone.centre)[0] > fit.sampling_variance[0]
