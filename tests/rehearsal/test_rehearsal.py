import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import SchemaError
from dpcausal.queries import ArmOutcomeCounts, EventCounts, OutcomeCounts
from dpcausal.schema.schema import PROTECTS, Protects


@pytest.mark.parametrize(("protects", "delta"), list(itertools.product(PROTECTS, (0.0, 1e-6))))
def test_a_rehearsal_expects_what_then_happens(table: pa.Table, protects: Protects, delta: float) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("score", 0, 10), protects=protects
    )
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3, delta=1e-5))
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=1000, outcome_sd=1.5), epsilon=1.0, delta=delta)
    effect = dpc.DifferenceInMeans().estimate(vault, epsilon=1.0, delta=delta)
    planned, realised = (np.ptp(each.interval(0.95)) for each in (plan, effect))
    assert realised == pytest.approx(planned, rel=0.35)
    assert plan.guarantee == effect.guarantee
    assert [(r.query, r.epsilon, r.delta) for r in plan.receipts] == [
        (r.query, r.epsilon, r.delta) for r in effect.receipts
    ]


def test_a_rehearsal_says_that_it_is_one(schema: dpc.Schema) -> None:
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=445), epsilon=1.0)
    text = str(plan)
    assert text.startswith("Rehearsal (no data read, nothing spent)")
    assert "expect the estimate ±" in text
    assert "price             arm_moments: epsilon 1, delta 0" in text
    assert "\nestimate" not in text
    assert "rehearsed with 50% of 445 units treated" in text


def test_more_units_and_more_epsilon_mean_narrower_intervals(schema: dpc.Schema) -> None:
    def width(n: int, epsilon: float) -> float:
        plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=n), epsilon=epsilon)
        return float(np.ptp(plan.interval()))

    assert width(4000, 1.0) < 0.6 * width(1000, 1.0)
    assert width(1000, 4.0) < width(1000, 0.5)


@pytest.mark.parametrize(("count", "least"), [(1, 2_000), (3, 5_000), (10, 20_000)])
def test_regression_intervals_are_to_be_expected_and_narrow_with_more_units(count: int, least: int) -> None:
    names = [f"x{place}" for place in range(count)]
    columns = [dpc.Real(name, -1, 1) for name in names]
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=columns)
    estimator, delta = dpc.RegressionAdjustment(covariates=names), 1e-6 if count == 10 else 0.0
    widths = []
    for n in (least, 2 * least, 10 * least):
        plan = estimator.estimate(dpc.Rehearsal(schema, n=n, confounding=0.1), epsilon=1.0, delta=delta)
        widths.append(float(np.ptp(plan.interval())))
    assert widths[0] > 1.3 * widths[1] > 2 * widths[2]


@pytest.mark.parametrize(("mean", "sd"), [(None, 0.5), (0.5, 0.5), (0.2, 0.4), (0.0, 0.0)])
def test_a_yes_or_no_outcome_is_as_spread_as_its_mean_says(mean: float | None, sd: float) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Binary("died"))
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=10_000, outcome_mean=mean), epsilon=100.0)
    assert plan.sampling_sd == pytest.approx(2 * sd / 100, rel=0.01, abs=1e-4)


@pytest.mark.parametrize("protects", PROTECTS)
def test_a_rehearsal_expects_no_effect(protects: Protects) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 60_000), protects=protects)
    plan = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=445, outcome_mean=5_000), epsilon=1.0)
    assert abs(plan.estimate) < 0.1 * (plan.sampling_sd or 0)


@pytest.mark.parametrize(
    "wrong", [{"n": 1}, {"treated_share": 0.0}, {"outcome_mean": 11}, {"outcome_sd": 6}, {"outcome_sd": -1}]
)
def test_impossible_expectations_are_refused(schema: dpc.Schema, wrong: dict[str, float]) -> None:
    with pytest.raises(SchemaError):
        dpc.Rehearsal(schema, **{"n": 100, **wrong})  # type: ignore[arg-type]


def test_arms_of_unknown_size_are_expected_to_be_of_one_size() -> None:
    arms = dpc.Treatment("dose", arms=("none", "low", "high"), compare="high")
    schema = dpc.Schema(treatment=arms, outcome=dpc.Real("y", 0, 1))
    assert dpc.Rehearsal(schema, n=900).compared == 600
    assert dpc.Rehearsal(schema, n=900, compared_share=0.5).arm_shares == pytest.approx((0.25, 0.5, 0.25))


def test_poor_overlap_is_expected_to_cost_weights_most() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real("x", 0, 1), dpc.Binary("b")]
    )
    good, poor = (dpc.Rehearsal(schema, n=20_000, outcome_sd=0.2, overlap=overlap) for overlap in (0.76, 0.45))
    widths = {}
    for estimand in ("ATE", "ATO"):
        estimator = dpc.InverseWeighting(["x", "b"], estimand=estimand)
        widths[estimand] = [np.ptp(estimator.estimate(each, epsilon=1.0).interval()) for each in (good, poor)]
    assert widths["ATE"][1] > 2 * widths["ATE"][0]
    assert widths["ATO"][1] < 1.6 * widths["ATO"][0]


def test_shapes_that_nobody_declares_may_leave_confounding_in() -> None:
    def left_in(**declared: Any) -> float:
        columns = [dpc.Real("x", 0, 1), dpc.Real("z", 0, 1)]
        columns[0] = replace(columns[0], **declared)
        schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=columns)
        estimator = dpc.RegressionAdjustment(covariates=["x", "z"])
        return estimator.estimate(dpc.Rehearsal(schema, n=100_000, outcome_sd=0.2), epsilon=1.0).bias_bound

    unknown = left_in()
    assert unknown > 0.02 * 0.3 * 0.2
    assert left_in(transform="linear") == pytest.approx(unknown / 2, rel=0.1)
    # One value in twenty that is missing leaves a twentieth of what the number confounds, and its shape a 33rd.
    assert left_in(indicator=True) > 1.5 * unknown


@pytest.mark.parametrize(
    "wrong",
    [{"overlap": 0.0}, {"overlap": 0.95, "confounding": 0.3}, {"correlation": 1.0}, {"typical": {"score": (8, 2)}}],
)
def test_expectations_that_contradict_each_other_are_refused(schema: dpc.Schema, wrong: dict[str, float]) -> None:
    with pytest.raises(SchemaError):
        dpc.Rehearsal(schema, n=100, **wrong)  # type: ignore[arg-type]


def test_expected_counts_are_skewed_where_one_bound_is_near() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", 0, 200_000, missing=100000))
    query = OutcomeCounts([2_000, 5_000, 40_000])
    table = dpc.Rehearsal(schema, n=10_000, outcome_mean=5_000, outcome_sd=6_500)
    found = list(table.release(query, dpc.Guarantee(epsilon=1)).values)
    random = np.random.default_rng(1)
    variance = np.log1p(1.69)
    drawn = np.exp(np.log(5_000) - variance / 2 + variance**0.5 * random.normal(size=200_000))
    assert found == pytest.approx(np.histogram(drawn, [0, *query.edges, 1e9])[0] / 20, rel=0.12)
    mirrored = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", -200_000, 0, missing=-100000))
    table = dpc.Rehearsal(mirrored, n=10_000, outcome_mean=-5_000, outcome_sd=6_500)
    other = table.release(OutcomeCounts([-edge for edge in query.edges[::-1]]), dpc.Guarantee(epsilon=1))
    assert other.values[::-1] == pytest.approx(found, abs=1)


def test_expected_counts_of_arms_follow_their_sizes() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 10, missing=5))
    table = dpc.Rehearsal(schema, n=1_000, treated_share=0.3)
    found = np.array(table.release(ArmOutcomeCounts([2.5, 5.0, 7.5]), dpc.Guarantee(epsilon=1)).values).reshape(2, -1)
    assert found.sum(axis=1) == pytest.approx([700, 300], abs=3)
    assert found[1] / 3 == pytest.approx(found[0] / 7, abs=1)


def test_expected_counts_of_events_have_the_expected_mean() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("time", 0, 10, missing=5),
        covariates=[dpc.Category("end", ["censored", "relapse", "death"], missing="censored")],
    )
    table = dpc.Rehearsal(schema, n=1_000, outcome_mean=6.0)
    times = np.linspace(0.01, 10, 60)
    release = table.release(EventCounts(times.tolist(), "end"), dpc.Guarantee(epsilon=1))
    expected = dict(zip(release.names, release.values, strict=True))
    assert sum(expected.values()) == pytest.approx(1_000, rel=0.02)
    beyond = expected["beyond_0"] + expected["beyond_1"]
    reach = 1_000 - np.cumsum([sum(v for k, v in expected.items() if f"_{at}_" in k[6:]) for at in range(60)])
    assert reach[-1] == pytest.approx(beyond, rel=0.02)
    area = np.sum((np.r_[1_000, reach[:-1]] + reach) / 2 * np.diff(np.r_[0, times]))
    assert area / 1_000 == pytest.approx(6.0, rel=0.02)
