"""No unit moves the moments of metrics beyond their bound, however many metrics share columns; less is caught."""

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
from dpcausal.queries import GRID, CellMoments, Coordinate, MetricMoments, Norm, Sensitivity
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

NORMS: tuple[Norm, Norm] = ("l1", "l2")
ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""
QUERIES = {
    "one mean": MetricMoments([["y"]], [1]),
    "means": MetricMoments([["y"], ["x"], ["b"]], [3, 2, 1]),
    "ratio": MetricMoments([["y", "x"]], [1]),
    "mean and ratio": MetricMoments([["b"], ["y", "x"]], [1, 2]),
    "shared denominator": MetricMoments([["y", "x"], ["b", "x"]], [1, 1]),
    "all pairs": MetricMoments([["y", "x"], ["b", "x"], ["b", "y"], ["x", "y"]], [1, 1, 1, 1]),
}
Record = tuple[str, float, float, int]
RECORDS: list[Record] = list(itertools.product(ARMS[1:], (0.0, 0.5, 0.9, 1.0), (-2.0, 0.5, 2.0), (0, 1)))
DATABASE = connect(threads=1)


def schema_for(protects: Protects) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", arms=ARMS[:3], compare="high"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("x", -2, 2), dpc.Binary("b")],
        protects=protects,
    )


def answer(query: MetricMoments, records: Sequence[Record], schema: dpc.Schema) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise."""
    table = pa.table(dict(zip(("t", "y", "x", "b"), zip(*records, strict=True), strict=True)))
    engine = open_table(DATABASE.from_arrow(table), schema)
    guarantee = dpc.Guarantee(epsilon=1, protects=schema.protects)
    return dict(exact_answer(query, schema, engine, guarantee).ticks)


@cache
def parts() -> dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"]:
    """The answers for each listed record, by coordinate; a query of all pairs holds the sums of every other."""
    answers = [answer(QUERIES["all pairs"], [record], schema_for("record")) for record in RECORDS]
    return {name: np.array([each[name] for each in answers], dtype=float) for name in answers[0]}


def worst(sensitivity: Sensitivity, protects: Protects) -> float:
    """The largest move over all neighbouring tables that differ in one unit, made of the listed records."""
    public = {"record": (), "record_within_arm": (0,), "outcome": (0, 2, 3)}[protects]
    keys = [tuple(record[place] for place in public) for record in RECORDS]
    neighbours = np.array([[one == other for other in keys] for one in keys])
    total, answers = np.zeros(neighbours.shape), parts()
    for at in sensitivity.coordinates:
        change = np.abs(np.subtract.outer(answers[at.name], answers[at.name])) / float(at.weight or 0)
        total += change if sensitivity.norm == "l1" else change**2
    most = float(total[neighbours].max())
    return most if sensitivity.norm == "l1" else most**0.5


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("protects", PROTECTS)
@pytest.mark.parametrize("name", QUERIES)
def test_bound_holds_and_is_attained(name: str, protects: Protects, norm: Norm) -> None:
    query = QUERIES[name]
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    most = worst(sensitivity, protects)
    assert most <= float(sensitivity.bound) * (1 + 1e-12)
    if protects != "outcome":  # which is charged as all metrics, and moves one
        assert most > 0.99 * float(sensitivity.bound)  # so that 9/10 of it is not enough


def lighter(sensitivity: Sensitivity, part: str, times: Fraction) -> Sensitivity:
    def weighed(at: Coordinate) -> Coordinate:
        return replace(at, weight=(at.weight or 0) * times) if at.name.startswith(part) else at

    return replace(sensitivity, coordinates=tuple(map(weighed, sensitivity.coordinates)))


@pytest.mark.parametrize("part", ["size", "total", "product"])
def test_lighter_sums_are_caught(part: str) -> None:
    query = QUERIES["mean and ratio"]
    for norm, protects in itertools.product(NORMS, ("record", "record_within_arm")):
        honest = query.sensitivity(schema_for(protects), protects, norm)  # type: ignore[arg-type]
        if part == "size" and protects != "record":
            continue
        found = worst(lighter(honest, part, Fraction(1, 4)), protects)  # type: ignore[arg-type]
        assert found > 1.05 * float(honest.bound), (norm, protects)


def test_deficits_too_light_for_their_products_are_caught() -> None:
    query = QUERIES["ratio"]
    honest = query.sensitivity(schema_for("record_within_arm"), "record_within_arm", "l1")
    assert worst(lighter(honest, "deficit", Fraction(1, 2)), "record_within_arm") > 1.05 * float(honest.bound)


def test_private_arms_taken_for_public_are_caught() -> None:
    for query in QUERIES.values():
        public = query.sensitivity(schema_for("record_within_arm"), "record_within_arm", "l1")
        assert worst(public, "record") > 2.5 * float(public.bound)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(sorted(QUERIES)),
    st.sampled_from(PROTECTS[:2]),
    st.sampled_from(NORMS),
    st.lists(st.tuples(st.sampled_from(ARMS), st.floats(), st.floats(), st.integers(-1, 2)), min_size=1, max_size=4),
    st.tuples(st.sampled_from(ARMS), st.floats(), st.floats(), st.integers(-1, 2)),
)
def test_bound_holds_for_records_of_any_kind(
    name: str, protects: Protects, norm: Norm, records: list[Record], new: Record
) -> None:
    query, old = QUERIES[name], records[0]
    new = (new[0] if protects == "record" else old[0], *new[1:])
    sensitivity = query.sensitivity(schema_for(protects), protects, norm)
    one, other = (answer(query, [first, *records[1:]], schema_for(protects)) for first in (old, new))
    changes = [float(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in sensitivity.coordinates]
    moved = float(np.abs(changes).sum() if norm == "l1" else np.linalg.norm(changes))
    assert moved <= float(sensitivity.bound) * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.sampled_from([1, 2]))
def test_inequality_of_the_proof(point: list[float], power: int) -> None:
    """Totals, deficits and products of three columns, each in two products, move by no more than the shares."""
    old, new = np.array(point[:3]), np.array(point[3:])
    free = 3 / 4 if power == 1 else 1.0
    crossed = 1 / 4 if power == 1 else 1.0
    deficit = (np.abs(old**2 - new**2) * (free / 4 if power == 1 else 0.5)) ** power
    moved = float(((np.abs(old - new) / 2) ** power + deficit).sum() / 3)
    for one, other in itertools.combinations(range(3), 2):
        product = abs(old[one] * old[other] - new[one] * new[other]) / 2
        moved += crossed * product**power / 6  # a metric of two columns has a third, its product half of it
    assert moved <= 1 + 1e-12


def test_one_metric_has_the_noise_of_cell_moments() -> None:
    for protects, norm in (("record", "l2"), ("record_within_arm", "l1"), ("record_within_arm", "l2")):
        schema, query = schema_for(protects), QUERIES["one mean"]  # type: ignore[arg-type]
        one, other = (each.sensitivity(schema, protects, norm) for each in (query, CellMoments()))  # type: ignore[arg-type]
        weights = [
            {at.name.partition(" ")[0]: float((at.weight or 0) * found.bound) for at in found.coordinates}
            for found in (one, other)
        ]
        assert weights[0] == pytest.approx(weights[1], rel=1e-5)


def test_answer_counts_every_declared_arm_and_binary_values_as_ends() -> None:
    records = [("none", 0.0, 2.0, 1), ("low", 1.0, 2.0, 1), ("low", 0.5, -2.0, 0), ("elsewhere", 1.0, 2.0, 1)]
    found = answer(QUERIES["shared denominator"], records, schema_for("record"))
    assert [found[f"size_{arm}"] for arm in range(3)] == [1, 2, 0]
    assert [found[f"total_{arm} of b"] for arm in range(3)] == [GRID, 0, 0]
    assert found["deficit_1 of y"] == GRID
    assert [found[f"product_{arm} of b and x"] for arm in range(3)] == [GRID, 2 * GRID, 0]
    assert found["product_0 of x and y"] == -GRID
    assert "deficit_0 of b" not in found


@pytest.mark.parametrize(
    ("metrics", "weights"),
    [([], []), ([["y", "y"]], [1]), ([["y"]], [0]), ([["y"]], [1, 1]), (["y"], [1]), ([["y", "x", "b"]], [1])],
)
def test_metrics_that_are_none_are_refused(metrics: list[list[str]], weights: list[float]) -> None:
    with pytest.raises(QueryError, match="one or two different columns"):
        MetricMoments(metrics, weights)


def test_metric_that_is_not_declared_is_refused() -> None:
    with pytest.raises(QueryError, match="'nobody'"):
        MetricMoments([["nobody"]], [1]).sensitivity(schema_for("record"), "record", "l1")
