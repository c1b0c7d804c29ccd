"""Residuals of units with an outcome are weighted to all units: for arms, and for having an outcome."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.estimators.model_errors import PropensityError, averaged
from dpcausal.estimators.observed_scores import ModelsOfAll
from dpcausal.queries import ObservedScores
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.source import guarantee_for
from dpcausal.vault.table import open_table

Vector = NDArray[np.float64]

UNITS = 20_000
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"),
    outcome=dpc.Real("y", 0, 100),
    covariates=[dpc.Real("x", -2, 2, typical=(-1.8, 1.8)), dpc.Binary("s")],
)
NAMES = ["x", "s"]
ALL, COMPLETE = dpc.DoublyRobust(NAMES, include_missing=True), dpc.DoublyRobust(NAMES)


def chance(logits: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-logits)))


def observed(x: Vector, s: Vector, arm: Vector) -> Vector:
    return chance(1.2 - 0.9 * x + 0.4 * s + arm * (0.2 * s - 0.5 * x))


def table(
    curved: float = 0.0, seen: Callable[[Vector, Vector, Vector], Vector] = observed, units: int = UNITS
) -> tuple[pa.Table, float, float]:
    """Return a table, and the effect in all and in those seen; with a curve outcomes are not linear."""
    random = np.random.default_rng(5)
    x, s = random.uniform(-2, 2, units), random.integers(0, 2, units).astype(float)
    arm = (random.random(units) < chance(0.5 * x - 0.3 * s)).astype(float)
    effects = 5 + 4 * x + 2 * s + curved * x**2
    outcomes = 40 + 4 * x + 3 * s + effects * arm + random.normal(0, 6, units)
    missing = random.random(units) >= seen(x, s, arm)
    columns = {"t": arm.astype(int), "y": pa.array(np.where(missing, np.nan, outcomes), from_pandas=True), "x": x}
    return pa.table({**columns, "s": s.astype(int)}), float(effects.mean()), float(effects[~missing].mean())


TABLE, IN_ALL, IN_SEEN = table()


def vault(schema: dpc.Schema = SCHEMA, units: pa.Table = TABLE) -> dpc.Vault:
    return dpc.Vault(units, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=200, delta=1e-4))


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


def test_one_of_two_models_is_enough() -> None:
    """Weights make up for outcomes that are not linear, and linear outcomes for weights that are wrong."""
    curved, in_all, in_seen = table(curved=3.5)
    weighted = ALL.estimate(vault(units=curved), epsilon=90.0)
    regressed = dpc.RegressionAdjustment(NAMES, include_missing=True).estimate(vault(units=curved), epsilon=90.0)
    sd = weighted.sampling_sd or 0.0
    assert abs(weighted.estimate - in_all) < 3 * sd
    assert abs(regressed.estimate - in_all) > 4 * sd
    assert abs(in_seen - in_all) > 4 * sd > 0

    def bent(x: Vector, _: Vector, __: Vector) -> Vector:
        return np.asarray(np.where(np.abs(x - 0.5) < 1, 0.9, 0.3))

    odd, in_all, in_seen = table(seen=bent)
    effect = ALL.estimate(vault(units=odd), epsilon=90.0)
    sd = effect.sampling_sd or 0.0
    assert abs(effect.estimate - in_all) < 3 * sd
    assert abs(in_seen - in_all) > 4 * sd > 0


def test_scores_are_residuals_over_both_probabilities() -> None:
    x, s, arm = (np.array(TABLE[name], dtype=float) for name in ("x", "s", "t"))
    outcome = np.array(TABLE["y"].to_numpy(zero_copy_only=False), dtype=float)
    schema = SCHEMA
    root = 3**0.5
    lines = {"propensity": (0.2, 0.8, -0.2), "control": (-0.2, 0.2, 0.0), "treated": (0.0, 0.3, 0.1)}
    seen = {"observed_control": (0.5, -1.5, 0.2), "observed_treated": (1.0, -2.5, -0.3)}
    query = ObservedScores(
        NAMES, **{name: [root * each for each in line] for name, line in (lines | seen).items()}, clip=0.2, limit=1.5
    )
    ticks = exact_answer(query, schema, open_table(TABLE, schema), dpc.Guarantee(epsilon=1.0)).ticks
    found = {at.name: ticks[at.name] * at.tick for at in query.sensitivity(schema, "record", "l1").coordinates}
    design = np.column_stack([np.ones(UNITS), x / 2, 2 * s - 1])

    def line(name: str) -> Vector:
        return np.asarray(design @ np.array((lines | seen)[name]))

    treated = np.clip(chance(line("propensity")), 0.2, 0.8)
    of_arm = np.where(arm == 1, treated, 1 - treated)
    of_outcome = np.maximum(chance(np.where(arm == 1, line("observed_treated"), line("observed_control"))), 0.2)
    predicted = 50 + 50 * np.where(arm == 1, line("treated"), line("control"))
    scores = ((2 * arm - 1) * (outcome - predicted) / of_arm / of_outcome)[~np.isnan(outcome)]
    kept = np.clip(scores, -75, 75)
    assert 0.01 < np.mean(scores != kept) < 0.5
    assert found["score"] == pytest.approx(float(kept.sum()), rel=1e-2, abs=0.002 * np.abs(kept).sum())
    assert found["square"] == pytest.approx(float((kept**2).sum()), rel=2e-3)
    assert found["clipped"] == pytest.approx(int((scores != kept).sum()), rel=0.01)


def test_what_is_left_in_is_the_product_of_two_errors() -> None:
    """Errors of models, drawn and multiplied for units of normal features, vary as the closed form says."""
    source = vault()
    models, _ = ModelsOfAll.ask(source, NAMES, guarantee_for(source, 1.0, 0.0))
    random = np.random.default_rng(0)
    centre = models.whole[0, 1:]
    features = random.multivariate_normal(centre, models.whole[1:, 1:] - np.outer(centre, centre), 40_000)
    design = np.column_stack([np.ones(len(features)), features])
    of_treated = chance(design @ models.propensity.coefficients)
    count, products = 4_000, 0.0
    wrong = random.multivariate_normal(np.zeros(6), models.regressions.covariance, count)
    logits = random.multivariate_normal(np.zeros(3), models.propensity.covariance, count)
    for arm, sign, other in ((0, 1, of_treated), (1, -1, 1 - of_treated)):
        seen = models.observed[arm]
        missing = 1 - chance(design @ seen.coefficients)
        own = random.multivariate_normal(np.zeros(3), seen.covariance, count)
        of_arm = wrong[:, :3] if arm == 0 else wrong[:, 3:]
        # The mean over units of: error of the prediction, times error of the logarithm of the weight.
        squares = [(design * weight[:, None]).T @ design / len(design) for weight in (other, missing)]
        products += np.einsum("ri,ij,rj->r", of_arm, squares[0], logits)
        products += sign * np.einsum("ri,ij,rj->r", of_arm, squares[1], own)
    assert models.left_in(0.001) == pytest.approx(float(np.std(products)), rel=0.08)


def test_noise_in_each_model_counts() -> None:
    source = vault()
    models, _ = ModelsOfAll.ask(source, NAMES, guarantee_for(source, 1.0, 0.0))

    def without(error: PropensityError) -> PropensityError:
        return replace(error, covariance=0 * error.covariance)

    seen = without(models.observed[0]), without(models.observed[1])
    none = replace(models, propensity=without(models.propensity), observed=seen)
    assert none.left_in(0.001) < 0.02 * models.left_in(0.001)
    assert none.weight_noise_sd == 0
    for part in ("propensity", "observed"):
        only = replace(none, **{part: getattr(models, part)})
        assert 0.2 * models.left_in(0.001) < only.left_in(0.001) < models.left_in(0.001)
        assert 0 < only.weight_noise_sd <= models.weight_noise_sd


def test_averages_over_normal_features_are_those_of_draws() -> None:
    coefficients, mean = np.array([0.4, -1.0, 0.7]), np.array([0.5, -0.2])
    spread = np.array([[0.6, 0.2], [0.2, 0.4]])
    moments = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], spread + np.outer(mean, mean)]])
    draws = np.random.default_rng(0).multivariate_normal(mean, spread, 400_000)
    design = np.column_stack([np.ones(len(draws)), draws])
    expected = (design * chance(design @ coefficients)[:, None]).T @ design / len(design)
    assert averaged(coefficients, moments, chance) == pytest.approx(expected, abs=0.006)


def test_result_says_whose_effect_it_is(effects: dict[str, dpc.Effect]) -> None:
    effect = effects["all"]
    assert effect.includes_missing
    assert not effects["complete"].includes_missing
    assert "over all units, with an outcome or without" in effect.estimand
    assert "outcomes are missing at random given the arm and x, s" in effect.assumptions
    assert "the effect is that in all units, with an outcome or without\n" in str(effect)
    first_page = dpc.Report.of(effect, date=date(2026, 1, 1)).to_html().partition("<h2")[2]
    assert "The effect is that in all units, with an outcome or without." in first_page
    assert dpc.Effect.from_json(effect.to_json()) == effect
    assert effect.arm_means is not None


def test_price_is_all_of_epsilon_and_nothing_more_is_asked_where_it_is_not_needed(
    effects: dict[str, dpc.Effect],
) -> None:
    assert sum(receipt.epsilon for receipt in effects["all"].receipts) == pytest.approx(2.0)
    assert "observed_logistic" not in {receipt.query for receipt in effects["complete"].receipts}
    never = dpc.Rehearsal(replace(SCHEMA, outcome=dpc.Real("y", 0, 100, missing=50)), n=UNITS)
    plans = [each.estimate(never, epsilon=1.0) for each in (ALL, COMPLETE)]
    assert plans[0] == replace(plans[1], estimator=plans[0].estimator)


@pytest.mark.parametrize("estimator", [ALL, dpc.RegressionAdjustment(NAMES, include_missing=True)], ids=repr)
def test_plan_knows_how_many_outcomes_are_expected_to_be_missing(estimator: Estimator) -> None:
    seen = 1 - TABLE["y"].null_count / UNITS
    rehearsals = [
        dpc.Rehearsal(SCHEMA, n=UNITS, outcome_mean=44, typical={"y": (25, 65)}, compared_share=share)
        for share in (None, seen)
    ]
    plans = [estimator.estimate(each, epsilon=2.0, delta=1e-6) for each in rehearsals]
    (low, high), own = estimator.estimate(vault(), epsilon=2.0, delta=1e-6).interval(), plans[1].interval()
    assert 0.6 < (own[1] - own[0]) / (high - low) < 1.4
    assert (plans[0].standard_error or 0.0) < 0.9 * (plans[1].standard_error or 0.0)
    assert any(f"as if {1 - seen:.0%} of outcomes were missing" in note for note in plans[1].notes)
    shares = plans[1].missing_outcomes
    assert shares is not None
    assert shares.values == pytest.approx((1 - seen, 1 - seen), abs=1e-3)


@pytest.mark.parametrize("estimand", ["ATT", "ATO"])
def test_other_estimands_are_refused_before_anything_is_spent(estimand: str) -> None:
    source = vault()
    with pytest.raises(QueryError, match='estimand="ATE" with include_missing=True'):
        replace(ALL, estimand=estimand).estimate(source, epsilon=1.0)  # type: ignore[arg-type]
    assert source.ledger.spent.epsilon == 0


def test_plan_asks_the_same_and_says_what_it_does_not_know(effects: dict[str, dpc.Effect]) -> None:
    plan = ALL.estimate(dpc.Rehearsal(SCHEMA, n=UNITS), epsilon=2.0, delta=1e-6)
    asked = [(each.query, each.epsilon, each.delta) for each in plan.receipts]
    assert asked == [(each.query, each.epsilon, each.delta) for each in effects["all"].receipts]
    assert any("as if no outcome were missing" in note for note in plan.notes)
    assert not plan.no_interval


def test_there_is_no_interval_where_some_kinds_of_units_are_hardly_ever_seen() -> None:
    def rarely(x: Vector, _: Vector, __: Vector) -> Vector:
        return chance(-4 - 5 * x)

    effect = ALL.estimate(vault(units=table(seen=rarely)[0]), epsilon=20.0)
    assert "in an arm and have an outcome" in effect.no_interval
