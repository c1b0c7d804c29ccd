"""Sums of metrics in every declared arm, and metrics that are none."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, MetricMoments, Norm
from dpcausal.schema.schema import Protects
from dpcausal.sums.cases import domain_of
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table
from tests.sums.neighbours import Case, furthest

ARMS = ("none", "low", "high", "elsewhere")
"""The last one is not declared."""
Record = tuple[str, float, float, int]
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


def test_answer_counts_every_declared_arm_and_binary_values_as_ends() -> None:
    records = [("none", 0.0, 2.0, 1), ("low", 1.0, 2.0, 1), ("low", 0.5, -2.0, 0), ("elsewhere", 1.0, 2.0, 1)]
    found = answer(MetricMoments([["y", "x"], ["b", "x"]], [1, 1]), records, schema_for("record"))
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


MANY = [f"m{at}" for at in range(12)]
UNEVEN = [1.0 + 0.37 * at for at in range(len(MANY))]


def of_many(protects: Protects) -> dpc.Schema:
    first, *others = (dpc.Real(name, 0, 10, missing=0) for name in MANY)
    return dpc.Schema(treatment=dpc.Treatment("t"), outcome=first, covariates=others, protects=protects)


@pytest.mark.parametrize("protects", ["record", "record_within_arm"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_bound_of_many_metrics_with_uneven_shares_is_that_of_even_ones(norm: Norm, protects: Protects) -> None:
    """One unit that turns all of its values moves totals by 1 in all, however the shares are divided."""
    schema, alone = of_many(protects), [[name] for name in MANY]
    even, uneven = (MetricMoments(alone, weights) for weights in ([1.0] * len(MANY), UNEVEN))
    bounds = [query.sensitivity(schema, protects, norm).bound for query in (even, uneven)]
    assert abs(float(bounds[1] / bounds[0]) - 1) < 0.001
    if norm == "l2":
        assert 1 <= bounds[1] < Fraction(1001, 1000)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_unit_moves_many_metrics_beyond_their_bound_and_some_reach_it(norm: Norm) -> None:
    schema = of_many("record")
    pairs = [list(pair) for pair in itertools.pairwise(MANY[:4])]
    query = MetricMoments([*([name] for name in MANY[4:]), *pairs], UNEVEN[: len(MANY) - 4 + len(pairs)])
    (described,) = query.sums(schema, "record", norm)
    bound = query.sensitivity(schema, "record", norm).bound ** (1 if norm == "l1" else 2)
    most = furthest(Case(described, domain_of(schema, "record"), norm), seed=1, units=40, steps=4)
    assert bound * Fraction(97, 100) <= most <= bound


def test_bound_of_very_many_metrics_is_found() -> None:
    names = [f"m{at}" for at in range(200)]
    first, *others = (dpc.Real(name, 0, 10, missing=0) for name in names)
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=first, covariates=others)
    query = MetricMoments([[name] for name in names], [1.0 + at / 100 for at in range(200)])
    assert query.sensitivity(schema, "record", "l2").bound < Fraction(1001, 1000)
