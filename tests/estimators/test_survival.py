"""Survival agrees with independent implementations, and its intervals cover."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.errors import QueryError, SchemaError
from dpcausal.estimators.survival_curves import Grid, martingale_residuals, measures
from dpcausal.schema.schema import Protects
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from dpcausal.utils.arrays import Array
from dpcausal.vault.engines.duckdb import connect
from tests.statistics.samplers import Undrawn
from tests.support.engines import CachedEngine

HORIZON = 5.0
TIMES = (1.0, 2.0, 3.0, 4.0, HORIZON)
KINDS = ("censored", "relapse", "death")
DATABASE = connect(threads=1)


def columns(n: int = 4_000, seed: int = 1, ratio: float = 0.7) -> dict[str, Any]:
    """Return a trial with two competing events and censoring; wards differ in hazard and in who is treated."""
    random = np.random.default_rng(seed)
    ward = random.integers(0, 2, n)
    arm = (random.random(n) < 0.35 + 0.3 * ward).astype(int)
    hazards = [0.15 * np.where(arm == 1, ratio, 1.0) * (1 + ward), np.full(n, 0.06), np.full(n, 0.08)]
    times = np.array([random.exponential(1 / hazard) for hazard in hazards])
    kinds = np.array([KINDS[1], KINDS[2], KINDS[0]])[times.argmin(axis=0)]
    return {"arm": arm, "years": times.min(axis=0), "end": kinds, "ward": np.array(["a", "b"])[ward]}


def schema_for(protects: Protects = "record", undeclared: int | None = 0) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=undeclared, labels=("placebo", "drug")),
        outcome=dpc.Real("years", 0, HORIZON, missing=0),
        covariates=[dpc.Category("end", KINDS, missing="censored"), dpc.Category("ward", ["a", "b"])],
        protects=protects,
    )


def source(
    table: dict[str, Any], protects: Protects = "record", sampler: Any = None, undeclared: int | None = 0
) -> Unmetered:
    schema = schema_for(protects, undeclared)
    return Unmetered(CachedEngine(DATABASE.from_arrow(pa.table(table)), schema), schema, sampler)


def exact(estimator: dpc.Survival, table: dict[str, Any], **kind: Any) -> dpc.Effect:
    """What the estimator gives where noise vanishes."""
    return estimator.estimate(source(table, sampler=Undrawn(), **kind), epsilon=100.0)


def life_table(table: dict[str, Any], arm: int, of: tuple[str, ...] = KINDS[1:]) -> dict[str, Array]:
    """Return an arm's life table, interval by interval, as a textbook has it."""
    times, ends = table["years"][table["arm"] == arm], table["end"][table["arm"] == arm]
    survival, incidence, greenwood, at_risk = [1.0], [0.0], 0.0, float(len(times))
    variances = []
    for low, high in itertools.pairwise((0.0, *TIMES)):
        inside = ends[(times >= low) & (times < high)]
        lost, events = np.sum(inside == KINDS[0]), np.sum(np.isin(inside, of))
        interest, exposed = np.sum(inside == KINDS[1]), at_risk - lost / 2
        incidence.append(incidence[-1] + survival[-1] * interest / exposed)
        survival.append(survival[-1] * (1 - events / exposed))
        greenwood += events / (exposed * (exposed - events))
        variances.append(survival[-1] ** 2 * greenwood)
        at_risk -= len(inside)
    return {"survival": np.array(survival), "incidence": np.array(incidence), "variances": np.array(variances)}


def test_curves_are_those_of_a_life_table() -> None:
    table = columns()
    effect = exact(dpc.Survival("end", TIMES), table)
    survival, _, incidence = effect.curves
    for arm, name in enumerate(effect.arms):
        textbook = life_table(table, arm)
        assert survival.values(name) == pytest.approx(textbook["survival"][1:], abs=1e-12)
        assert incidence.values(name) == pytest.approx(textbook["incidence"][1:], abs=1e-12)
        errors = np.diag(np.array(survival.estimates.sampling))[arm * 5 : (arm + 1) * 5]
        # Greenwood takes exposure as given; the multinomial delta method also has the error of who is censored.
        assert errors == pytest.approx(textbook["variances"], rel=0.02)


def test_primary_effects_are_differences_of_the_curves() -> None:
    table = columns()
    curves = [life_table(table, arm) for arm in (0, 1)]
    means = [((each["survival"][1:] + each["survival"][:-1]) / 2).sum() for each in curves]
    wanted = {
        "rmst": means[1] - means[0],
        "survival": curves[1]["survival"][-1] - curves[0]["survival"][-1],
        "incidence": curves[1]["incidence"][-1] - curves[0]["incidence"][-1],
    }
    for estimand, truth in wanted.items():
        effect = exact(dpc.Survival("end", TIMES, estimand=estimand), table)  # type: ignore[arg-type]
        assert effect.estimate == pytest.approx(truth, abs=1e-12)
        assert effect.arm_means is not None
        assert effect.treated_mean - effect.control_mean == pytest.approx(truth)  # type: ignore[operator]
    ratio = exact(dpc.Survival("end", TIMES, estimand="incidence"), table).risk_ratio()
    assert ratio.estimate == pytest.approx(curves[1]["incidence"][-1] / curves[0]["incidence"][-1])


def test_log_rank_statistic_and_hazard_ratio_on_the_grid() -> None:
    table = columns()
    effect = exact(dpc.Survival("end", TIMES), table)
    top = bottom = 0.0
    for low, high in itertools.pairwise((0.0, *TIMES)):
        still = [(table["arm"] == arm) & (table["years"] >= low) for arm in (0, 1)]
        inside = [each & (table["years"] < high) for each in still]
        time = [each.sum() - leave.sum() / 2 for each, leave in zip(still, inside, strict=True)]
        events = [np.sum(each & (table["end"] == KINDS[1])) for each in inside]
        top += events[1] * time[0] / sum(time)
        bottom += events[0] * time[1] / sum(time)
    assert effect.contrasts is not None
    assert effect.contrasts.value("log-rank statistic of end=relapse") == pytest.approx(top - bottom)
    assert effect.contrasts.value("log hazard ratio of end=relapse") == pytest.approx(math.log(top / bottom))


def test_strata_standardise_to_both_arms() -> None:
    table = columns(40_000)
    adjusted = exact(dpc.Survival("end", TIMES, by=["ward"]), table)
    parts = {}
    for ward in ("a", "b"):
        keep = table["ward"] == ward
        one = {name: column[keep] for name, column in table.items()}
        parts[ward] = keep.mean(), exact(dpc.Survival("end", TIMES), one)
    assert adjusted.estimate == pytest.approx(sum(share * part.estimate for share, part in parts.values()))
    within = sum((share * (part.sampling_sd or 0)) ** 2 for share, part in parts.values())
    spread = sum(share * (part.estimate - adjusted.estimate) ** 2 for share, part in parts.values()) / 40_000
    assert adjusted.sampling_sd == pytest.approx(math.sqrt(within + spread))
    crude = exact(dpc.Survival("end", TIMES), table)
    assert abs(adjusted.estimate - crude.estimate) > 3 * (adjusted.sampling_sd or 0)  # there is confounding
    assert adjusted.contrasts is not None
    ratio = adjusted.contrasts.value("log hazard ratio of end=relapse")
    assert ratio == pytest.approx(math.log(0.7), abs=0.08)


def test_slopes_are_derivatives() -> None:
    random = np.random.default_rng(3)
    counts = random.integers(5, 60, (2, 2, 7)).astype(float)
    grid = Grid(0.0, (1.0, 2.5, 4.0), 2)
    found = measures(counts, grid, [True, True])
    for place in np.ndindex(counts.shape):
        step = np.zeros_like(counts)
        step[place] = 1e-4
        more, less = (measures(counts + sign * step, grid, [True, True]).values for sign in (1, -1))
        for name, slopes in found.slopes.items():
            assert slopes[(..., *place)] == pytest.approx((more[name] - less[name]) / 2e-4, abs=1e-6)


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_martingale_residuals_are_events_less_those_expected_unit_by_unit(kinds: int) -> None:
    grid = Grid(0.0, (1.0, 2.5, 4.0), kinds)
    counts = np.random.default_rng(3).integers(5, 60, (2, grid.counts))
    residuals = martingale_residuals(counts.astype(float), grid)
    for arm in (0, 1):
        cell = np.repeat(np.arange(grid.counts), counts[arm])
        interval, kind = cell // kinds, cell % kinds
        event = (interval < len(grid.times)) & ((kind > 0) | (kinds == 1))
        expected = np.zeros(len(cell))
        for place in range(len(grid.times)):
            spent = (interval > place) + 0.5 * (interval == place)  # of the interval, in its length
            expected += spent * (event & (interval == place)).sum() / spent.sum()
        assert residuals[arm, cell] == pytest.approx(event - expected)
        assert residuals[arm] @ counts[arm] == pytest.approx(0.0, abs=1e-9)


def test_without_an_event_every_time_is_one() -> None:
    table = columns()
    times = np.minimum(table["years"], HORIZON)
    means = [times[table["arm"] == arm].mean() for arm in (0, 1)]
    with pytest.raises(QueryError, match="1 to 60 rising times"):
        dpc.Survival(grid=500).estimate(source(table), epsilon=1.0)
    effect = exact(dpc.Survival(grid=50), table)
    assert effect.estimate == pytest.approx(means[1] - means[0], abs=0.01)
    spreads = [times[table["arm"] == arm].var() / np.sum(table["arm"] == arm) for arm in (0, 1)]
    assert effect.sampling_sd == pytest.approx(math.sqrt(sum(spreads)), rel=0.01)


@pytest.mark.parametrize("protects", ["record", "record_within_arm"])
@pytest.mark.parametrize("undeclared", [0, None])
def test_counts_add_up_to_what_is_public(protects: Protects, undeclared: int | None) -> None:
    table = columns(1_000)
    effect = dpc.Survival("end", TIMES).estimate(source(table, protects, undeclared=undeclared), epsilon=0.5)
    assert effect.arm_sizes is not None
    sizes = np.array(effect.arm_sizes.values)
    errors = np.sqrt(np.diag(effect.arm_sizes.covariance))
    if protects == "record_within_arm":
        assert sizes == pytest.approx([np.sum(table["arm"] == arm) for arm in (0, 1)])
        assert errors == pytest.approx([0.0, 0.0])
    else:
        assert (errors > 0).all()
        known = effect.arm_sizes.standard_error([1.0, 1.0])
        assert sizes.sum() == pytest.approx(1_000) if undeclared == 0 else known > 10
        assert known == pytest.approx(0.0, abs=1e-9) if undeclared == 0 else known > 10


def test_public_sizes_lower_the_noise() -> None:
    table, estimator = columns(1_000), dpc.Survival("end", TIMES)
    sources = [source(table, sampler=Undrawn(), undeclared=each) for each in (0, None)]
    sources.append(source(table, "record_within_arm", Undrawn()))
    known, private, by_arm = (estimator.estimate(each, epsilon=1.0).privacy_sd for each in sources)
    assert by_arm < known < private


def test_intervals_cover_where_noise_dominates() -> None:
    """The noise alone, 120 times: estimates are as far from the exact one as the noise says, with its shape."""
    table = columns(2_000)
    truth = exact(dpc.Survival("end", TIMES), table).estimate
    vault = source(table)
    found = [dpc.Survival("end", TIMES).estimate(vault, epsilon=0.5) for _ in range(120)]
    errors = np.array([(each.estimate - truth) / each.privacy_sd for each in found])
    assert abs(errors.mean()) < 0.3
    assert errors.std() == pytest.approx(1.0, abs=0.2)
    only_noise = [replace(each, sampling_sd=0.0, no_interval="").interval(0.9) for each in found]
    assert np.mean([low <= truth <= high for low, high in only_noise]) == pytest.approx(0.9, abs=0.08)


def test_too_few_at_risk_give_no_interval() -> None:
    effect = dpc.Survival("end", 40).estimate(source(columns(120)), epsilon=0.2)
    assert "too few units are at risk" in effect.no_interval
    assert math.isfinite(effect.estimate)
    assert "too few" in str(effect)


def test_strata_without_units_are_left_out_and_said() -> None:
    table = columns(2_000)
    table["ward"] = np.full(2_000, "a")
    effect = dpc.Survival("end", TIMES, by=["ward"]).estimate(source(table), epsilon=1.0)
    assert not effect.no_interval
    assert any("1 strata had too few units" in note for note in effect.notes)
    crude = dpc.Survival("end", TIMES).estimate(source(table), epsilon=1.0)
    assert effect.sampling_sd == pytest.approx(crude.sampling_sd or 0, rel=0.1)


def test_effect_survives_json_and_prints() -> None:
    vault = dpc.Vault(pa.table(columns()), schema_for(), ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    effect = dpc.Survival("end", TIMES, by=["ward"]).estimate(vault, epsilon=1.0)
    assert dpc.Effect.from_json(effect.to_json()) == effect
    text = str(effect)
    assert "restricted mean survival time" in text
    assert "log-rank statistic of end=relapse" in text
    assert "no confounders but ward" in text
    low, high = effect.curves[0].band("drug")
    assert (low < effect.curves[0].values("drug")).all()
    assert (high > low).all()


def test_query_adds_up_over_sites() -> None:
    table, guarantee = columns(600), dpc.Guarantee(epsilon=1)
    query = dpc.Survival("end", TIMES)._query(schema_for())
    parts = [{name: column[start::2] for name, column in table.items()} for start in (0, 1)]
    whole, *halves = (source(each, sampler=Undrawn()).release(query, guarantee).values for each in (table, *parts))
    assert query.adds_up
    assert np.sum(halves, axis=0) == pytest.approx(whole)


def test_unsuitable_schemas_are_refused() -> None:
    with pytest.raises(SchemaError, match="declares every covariate public"):
        dpc.Survival("end").estimate(dpc.Rehearsal(schema_for("outcome"), n=100), epsilon=1.0)
    binary = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Binary("died"))
    with pytest.raises(SchemaError, match="survival needs a time"):
        dpc.Survival().estimate(dpc.Rehearsal(binary, n=100), epsilon=1.0)
    with pytest.raises(QueryError, match="an estimand out of rmst, survival, incidence"):
        dpc.Survival("end", estimand="hazard").estimate(dpc.Rehearsal(schema_for(), n=100), epsilon=1.0)  # type: ignore[arg-type]
    for grid in (0, -1, True, [3, 2], [6.0]):
        with pytest.raises(QueryError):
            dpc.Survival("end", grid).estimate(dpc.Rehearsal(schema_for(), n=100), epsilon=1.0)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_noise_in_bands_is_independent_of_sampling_error(family: Any) -> None:
    one = JointEstimate(("a",), (0.0,), ((1.0,),), (JointNoise(family, (1.0,)),))
    half = one.simultaneous(0.95) * one.standard_error([1.0])
    assert half == pytest.approx(one.interval("a")[1], rel=0.03)


def confounded(n: int = 6_000, seed: int = 4) -> dict[str, Any]:
    """Return a table in which age moves both who is treated and the hazard."""
    random = np.random.default_rng(seed)
    age = random.uniform(40, 80, n)
    arm = (random.random(n) < 1 / (1 + np.exp(-(age - 60) / 12))).astype(int)
    event = random.exponential(5 / np.exp((age - 60) / 20) / np.where(arm == 1, 0.7, 1.0))
    loss = random.exponential(12, n)
    return {"arm": arm, "years": np.minimum(event, loss), "died": (event <= loss).astype(int), "age": age}


CONFOUNDED = dpc.Schema(
    treatment=dpc.Treatment("arm", undeclared=0),
    outcome=dpc.Real("years", 0, HORIZON),
    covariates=[dpc.Binary("died"), dpc.Real("age", 40, 80)],
)


def weighted_life_table(table: dict[str, Any], weights: Array, arm: int) -> Array:
    """Return survival of an arm at each time, from weighted events and weighted numbers at risk."""
    survival, found, own = 1.0, [], table["arm"] == arm
    for low, high in itertools.pairwise((0.0, *TIMES)):
        at_risk, inside = own & (table["years"] >= low), own & (table["years"] >= low) & (table["years"] < high)
        lost = weights[inside & (table["died"] == 0)].sum()
        survival *= 1 - weights[inside & (table["died"] == 1)].sum() / (weights[at_risk].sum() - lost / 2)
        found.append(survival)
    return np.array(found)


@pytest.mark.parametrize("population", ["ATE", "ATO"])
def test_weighted_curves_are_those_of_the_true_score(population: str) -> None:
    table = confounded()
    engine = CachedEngine(DATABASE.from_arrow(pa.table(table)), CONFOUNDED)
    estimator = dpc.Survival("died", TIMES, covariates=["age"], weights=population)  # type: ignore[arg-type]
    effect = estimator.estimate(Unmetered(engine, CONFOUNDED, Undrawn()), epsilon=100.0)
    score = 1 / (1 + np.exp(-(table["age"] - 60) / 12))
    score = np.where(table["arm"] == 1, score, 1 - score)
    weights = 1 / score if population == "ATE" else 1 - score
    for arm, name in enumerate(effect.arms):
        wanted = weighted_life_table(table, weights, arm)
        assert effect.curves[0].values(name) == pytest.approx(wanted, abs=0.02)
    plain = dpc.Survival("died", TIMES).estimate(Unmetered(engine, CONFOUNDED, Undrawn()), epsilon=100.0)
    assert effect.estimate > plain.estimate + 0.3  # older patients are treated more often and die sooner
    assert [receipt.query for receipt in effect.receipts] == [
        "covariate_moments",
        "bounded_influence_logistic",
        "weighted_counts",
        "missing_outcomes",
    ]
    assert effect.arm_sizes is None


def test_adjusted_survival_where_only_the_end_of_follow_up_can_be_missing() -> None:
    schema = replace(CONFOUNDED, outcome=dpc.Real("years", 0, HORIZON, missing=0))
    rehearsal = dpc.Rehearsal(schema, n=1_000)
    effect = dpc.Survival("died", TIMES, covariates=["age"]).estimate(rehearsal, epsilon=1.0)
    assert effect.privacy_sd > 0


def test_weights_and_strata_together_are_refused() -> None:
    both = dpc.Survival("died", TIMES, by=["died"], covariates=["age"])
    with pytest.raises(QueryError):
        both.estimate(dpc.Rehearsal(CONFOUNDED, n=1_000), epsilon=1.0)
    with pytest.raises(QueryError):
        dpc.Survival("died", TIMES, covariates=["died"]).estimate(dpc.Rehearsal(CONFOUNDED, n=1_000), epsilon=1.0)


def test_weights_of_the_overlap_population_have_less_noise() -> None:
    rehearsal = dpc.Rehearsal(CONFOUNDED, n=5_000)
    noise = [
        dpc.Survival("died", TIMES, covariates=["age"], weights=each).estimate(rehearsal, epsilon=1.0).privacy_sd
        for each in ("ATE", "ATO")
    ]
    assert noise[1] < 0.75 * noise[0]
