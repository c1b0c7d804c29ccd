"""No unit moves all looks of a schedule together beyond their bound, over versions of a table; less noise is caught."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import Cut, LookMetrics, LookMoments, Norm, Sensitivity, payment, question
from dpcausal.queries.look_moments import FINE, running_weights, weights
from dpcausal.schema.columns import Column
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

LOOKS = 3
ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""

NORMS: tuple[Norm, Norm] = ("l1", "l2")
Record = tuple[str, float]
Life = tuple[int, tuple[Record | None, ...]]
"""The cohort of a unit, and its record in each version; None where the version does not hold it."""

VALUES: list[Record] = [("low", 0.0), ("low", 0.5), ("low", 1.0), ("high", 1.0), ("elsewhere", 1.0)]
DATABASE = connect(threads=1)


def schema_for(protects: Protects, more: Sequence[Column] = (), unit: dpc.Unit | None = None) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", arms=ARMS[:3], compare="high"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Category("week", [1, 2, 3]), *more],
        protects=protects,
        entry="week",
        unit=unit,
    )


def answer(look: int, cohorts: Sequence[int], records: Sequence[Record], norm: Norm) -> dict[str, int]:
    """What the answer itself makes of one version, without noise."""
    arms, outcomes = zip(*records, strict=True)
    table = DATABASE.from_arrow(pa.table({"t": arms, "y": outcomes, "week": cohorts}))
    schema = schema_for("record")
    guarantee = dpc.Guarantee(epsilon=1, delta=1e-6 if norm == "l2" else 0.0)
    return dict(exact_answer(LookMoments(Cut("week"), look), schema, open_table(table, schema), guarantee).ticks)


@cache
def part(look: int, cohort: int, record: Record | None, norm: Norm) -> dict[str, int]:
    """What one unit adds to a look; answers add up."""
    alone = ("elsewhere", 0.5)
    return answer(look, [cohort], [record or alone], norm)


@cache
def scaled(sensitivity: Sensitivity, life: Life) -> np.ndarray:
    """What one unit adds to all looks, each coordinate in units of its weight."""
    return np.array(
        [
            float(Fraction(part(look, life[0], life[1][look - 1], sensitivity.norm)[at.name]) / (at.weight or 0))
            for look in range(1, LOOKS + 1)
            for at in sensitivity.coordinates
        ]
    )


def moved(sensitivity: Sensitivity, one: Life, other: Life) -> float:
    """The norm of the change over all looks."""
    return float(np.linalg.norm(scaled(sensitivity, one) - scaled(sensitivity, other), int(sensitivity.norm[1])))


LIVES: list[Life] = [
    (cohort, records)
    for cohort in (1, 2, 3)
    for records in itertools.product([None, *VALUES], VALUES[::2], VALUES[1::2] + VALUES[:1])
]
"""Units that come late, change their values and arms, and leave the declared arms."""


def worst(sensitivity: Sensitivity) -> float:
    """The largest move between any two lives. In which versions the unit is may differ too: more than is needed."""
    vectors = np.array([scaled(sensitivity, life) for life in LIVES])
    return max(float(np.linalg.norm(vectors - each, int(sensitivity.norm[1]), axis=1).max()) for each in vectors)


def sensitivity_of(protects: Protects, norm: Norm) -> Sensitivity:
    return LookMoments(Cut("week"), 1).sensitivity(schema_for(protects), protects, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_over_all_looks_and_versions_and_is_attained(norm: Norm) -> None:
    sensitivity = sensitivity_of("record", norm)
    constant = [(1, (record,) * LOOKS) for record in VALUES]
    most = max(moved(sensitivity, one, other) for one, other in itertools.combinations(constant, 2))
    assert most > 0.99 * float(sensitivity.bound)  # so that 9/10 of it is not enough
    assert max(most, worst(sensitivity)) <= float(sensitivity.bound) * (1 + 1e-12)


@pytest.mark.parametrize("protects", PROTECTS[1:])
def test_narrower_protection_has_the_same_bound(protects: Protects) -> None:
    assert sensitivity_of(protects, "l2") == sensitivity_of("record", "l2")


def test_schedule_charged_as_one_look_is_caught() -> None:
    honest = sensitivity_of("record", "l2")
    alone = replace(honest, bound=Fraction(FINE))
    constant = [(1, (record,) * LOOKS) for record in VALUES]
    assert max(moved(alone, *pair) for pair in itertools.combinations(constant, 2)) > 1.15 * float(alone.bound)


def test_unit_that_changes_its_cohort_from_version_to_version_breaks_the_bound() -> None:
    """Why a unit must stay in its cohort: one that is always in the newest cohort moves every look in full."""
    sensitivity = sensitivity_of("record", "l2")
    changes = []
    for look in range(1, LOOKS + 1):
        parts = [part(look, look, record, "l2") for record in (("low", 1.0), ("high", 1.0))]
        changes += [(parts[0][at.name] - parts[1][at.name]) / float(at.weight or 0) for at in sensitivity.coordinates]
    assert np.linalg.norm(changes) > 1.3 * float(sensitivity.bound)
    several = schema_for("record", unit=dpc.Unit("who", by="day"), more=[dpc.Real("visits", 0, 9)])
    for column in (None, "day", "visits"):
        with pytest.raises(QueryError, match="the column by which units enter"):
            LookMoments(Cut("week"), 1).sensitivity(replace(several, entry=column), "record", "l2")
    with pytest.raises(QueryError, match="the column by which units enter"):
        LookMoments(Cut("visits", [3, 6]), 1).sensitivity(several, "record", "l2")


lives = st.tuples(
    st.integers(1, 3),
    st.tuples(*[st.one_of(st.none(), st.tuples(st.sampled_from(ARMS), st.floats()))] * LOOKS),
)


@settings(max_examples=15, deadline=None)
@given(lives, lives, st.sampled_from(NORMS))
def test_bound_holds_for_lives_of_any_kind(one: Life, other: Life, norm: Norm) -> None:
    """Also where a unit is missing from a version in one life only."""
    sensitivity = sensitivity_of("record", norm)
    assert moved(sensitivity, one, other) <= float(sensitivity.bound) * (1 + 1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("looks", [1, 2, 52, 400])
def test_weights_are_below_the_square_root_and_running_sums_follow_exactly(norm: Norm, looks: int) -> None:
    used = weights(looks, norm)
    assert np.allclose(np.convolve(used, running_weights(used))[:looks], FINE, rtol=1e-12)
    assert all(0 <= each <= FINE for each in used)
    if norm == "l2":
        square = np.convolve(used, used)[:looks] / FINE**2
        assert (square <= 1).all()
        assert square.min() > 0.95


def test_answer_weighs_cohorts_up_to_the_look_only() -> None:
    records = [("none", 1.0), ("low", 1.0), ("low", 0.0), ("high", 1.0), ("elsewhere", 1.0)]
    found = answer(2, [1, 1, 2, 3, 1], records, "l2")
    assert [found[f"size_{arm}"] for arm in range(3)] == [FINE // 2, FINE // 2 + FINE, 0]
    assert found["total_1"] == 2**20 * (FINE // 2 - FINE)
    pure = answer(2, [1, 1, 2, 3, 1], records, "l1")
    assert [pure[f"size_{arm}"] for arm in range(3)] == [0, FINE, 0]


def test_looks_have_no_version_and_one_payment() -> None:
    schema, guarantee = schema_for("record"), dpc.Guarantee(epsilon=1, delta=1e-6)
    looks = [LookMoments(Cut("week"), look) for look in (1, 2)]
    asked = [question(look, guarantee, schema, as_of) for look in looks for as_of in ("2025", "2026")]
    assert asked[0] == asked[1] != asked[2] == asked[3]
    assert payment(looks[0], asked[0]) == payment(looks[1], asked[2])
    with pytest.raises(QueryError, match="look 4"):
        LookMoments(Cut("week"), 4).sensitivity(schema, "record", "l2")
    with pytest.raises(QueryError, match="from 1 on"):
        LookMoments(Cut("week"), 0)


METRIC_SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", arms=ARMS[:3], compare="high"),
    outcome=dpc.Real("y", 0, 1, missing=0),
    covariates=[dpc.Real("v", -2, 2, missing=0), dpc.Binary("z", missing=0), dpc.Category("week", [1, 2, 3])],
    entry="week",
)
METRIC_VALUES = [*itertools.product((0.0, 1.0), (-2.0, 2.0), (0, 1)), (0.4, 2.0, 1), (0.4, 0.3, 0), (1.0, 0.3, 1)]
"""Units with values at all ends of their ranges, and some inside."""

SEVERAL_METRICS = (
    LookMetrics(Cut("week"), 1, [["y"]], [1]),
    LookMetrics(Cut("week"), 1, [["y"], ["v"], ["z"], ["y", "v"]], [1, 2, 3, 4]),
    LookMetrics(Cut("week"), 1, [["y", "v"]], [1]),
    LookMetrics(Cut("week"), 1, [["v", "z"], ["y", "z"]], [1, 5]),
)


@cache
def metric_parts(query: LookMetrics, norm: Norm) -> np.ndarray:
    """What units in two arms, and one in none, add to their first look: in units of each weight, and of FINE."""
    coordinates = query.sensitivity(METRIC_SCHEMA, "record", norm).coordinates
    guarantee = dpc.Guarantee(epsilon=1, delta=1e-6 if norm == "l2" else 0.0)
    found = [np.zeros(len(coordinates))]
    for values in METRIC_VALUES:
        columns = dict(zip(("y", "v", "z"), ([each] * 3 for each in values), strict=True))
        table = pa.table({"t": ["low", "high", "elsewhere"], "week": [1] * 3, **columns})
        opened = open_table(DATABASE.from_arrow(table), METRIC_SCHEMA)
        ticks = exact_answer(query, METRIC_SCHEMA, opened, guarantee).ticks
        both = np.array([ticks[at.name] / float(at.weight or 0) / FINE for at in coordinates])
        found += [both * np.array([arm in at.name for at in coordinates]) for arm in ("_1", "_2")]
    return np.array(found)


def most_over_looks(query: LookMetrics, norm: Norm) -> float:
    """The largest move over all looks, of a unit in any cohorts whose part may be another one at every look."""
    parts, used, power = metric_parts(query, norm), weights(LOOKS, norm), int(norm[1])
    lines = [[0] * (cohort - 1) + list(used[: LOOKS - cohort + 1]) for cohort in range(1, LOOKS + 1)]
    most = 0.0
    for one, other in itertools.product(lines, lines):
        moves = [
            (np.abs(a * parts[:, None] - b * parts[None]) ** power).sum(axis=2).max()
            for a, b in zip(one, other, strict=True)
        ]
        most = max(most, float(sum(moves)))
    return float(most ** (1 / power))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("query", SEVERAL_METRICS)
def test_bound_holds_for_many_metrics_and_is_not_loose(query: LookMetrics, norm: Norm) -> None:
    bound = float(query.sensitivity(METRIC_SCHEMA, "record", norm).bound)
    assert 0.95 * bound < most_over_looks(query, norm) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("query", SEVERAL_METRICS)
def test_parts_of_metrics_are_never_opposite(query: LookMetrics) -> None:
    """What the sizes are for: without them a unit whose values change from look to look would move looks further."""
    parts = metric_parts(query, "l2")
    assert (parts @ parts.T).min() >= -1e-12
    sizes = [not at.name.startswith("size") for at in query.sensitivity(METRIC_SCHEMA, "record", "l2").coordinates]
    assert (parts[:, sizes] @ parts[:, sizes].T).min() < -0.1


def test_sizes_that_ignore_products_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    query = SEVERAL_METRICS[2]
    honest = LookMetrics._noise_weights

    def careless(self: LookMetrics, schema: dpc.Schema, norm: Norm) -> tuple[dict[str, Fraction], Fraction]:
        return honest(self, schema, norm)[0], Fraction(1)

    monkeypatch.setattr(LookMetrics, "_noise_weights", careless)
    assert most_over_looks(query, "l2") > 1.1 * float(query.sensitivity(METRIC_SCHEMA, "record", "l2").bound)


def test_one_metric_has_the_bound_and_weights_of_the_outcome() -> None:
    for norm in NORMS:
        one = LookMetrics(Cut("week"), 1, [["y"]], [1]).sensitivity(schema_for("record"), "record", norm)
        outcome = sensitivity_of("record", norm)
        assert one.bound == outcome.bound
        named = {at.name.removesuffix(" of y"): (at.tick, at.weight) for at in one.coordinates}
        assert named == {at.name: (at.tick, at.weight) for at in outcome.coordinates}


def test_answer_weighs_metrics_of_cohorts_as_their_sums() -> None:
    table = pa.table(
        {"t": ["low", "low", "high"], "y": [1.0, 0.0, 1.0], "v": [2.0, 2.0, 0.0], "z": [1, 0, 1], "week": [1, 2, 2]}
    )
    query = LookMetrics(Cut("week"), 2, [["y", "v"], ["z"]], [1, 1])
    guarantee = dpc.Guarantee(epsilon=1, delta=1e-6)
    opened = open_table(DATABASE.from_arrow(table), METRIC_SCHEMA)
    found = exact_answer(query, METRIC_SCHEMA, opened, guarantee).ticks
    assert found["size_1"] == FINE + FINE // 2
    assert found["total_1 of y"] == 2**20 * (FINE // 2 - FINE)
    assert found["product_1 of v and y"] == 2**20 * (FINE // 2 - FINE)
    assert found["total_2 of z"] == 2**20 * FINE
