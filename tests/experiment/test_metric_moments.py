"""Sums of metrics in every declared arm, and metrics that are none."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, MetricMoments
from dpcausal.schema.schema import Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

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
