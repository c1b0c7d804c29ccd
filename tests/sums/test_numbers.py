"""Whatever the tree, its numbers are within their ranges, and SQL and NumPy compute the same ones."""

import itertools
import pickle
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot
from hypothesis import given, settings
from sqlglot import expressions as sge

from dpcausal.errors import QueryError
from dpcausal.sums import numbers as tree
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.limits import DEEPEST, MOST_NODES
from dpcausal.sums.numbers import (
    GRID,
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
)
from dpcausal.sums.printing import floating_sql, is_printable, sql
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.engines.ranges import Rules, ValueRange, query_ranges
from tests.sums.trees import numbers
from tests.support.conformance.expressions import evaluator

CELLS: dict[str, list[int]] = {
    "outcome": [-GRID, -GRID + 1, -513, 0, 1, GRID],
    "covariate_0": [-GRID, -1, 7, GRID],
    "treatment": [0, 1],
    "covariate_1": [0, 1],
    "covariate_2": [0, 3, 4],
}


@cache
def units() -> dict[str, Int64s]:
    lines = np.array(list(itertools.product(*CELLS.values())), dtype=np.int64)
    return {name: lines[:, place].copy() for place, name in enumerate(CELLS)}


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """Return a connection with the units, in integers of 32 bits and with numbers in floating point."""
    connection = duckdb.connect(config={"threads": 1})
    read = {name: column.astype(np.int32) for name, column in units().items()}
    for view, kind in (("whole", np.int32), ("floating", np.float64)):
        typed = {
            name: column.astype(kind) if name in ("outcome", "covariate_0") else column for name, column in read.items()
        }
        connection.register(f"{view}_arrays", typed)
        connection.execute(f"CREATE TABLE {view} AS SELECT * FROM {view}_arrays")
    return connection


def fetched(text: str, view: str) -> list[int]:
    return [int(line[0]) for line in engine().sql(f"SELECT {text} FROM {view}").fetchall()]


COLUMNS = {name: ValueRange("narrow", min(cells), max(cells)) for name, cells in CELLS.items()}


@given(numbers)
@settings(max_examples=150, deadline=None)
def test_numbers_are_within_their_ranges_and_the_same_everywhere(number: Number) -> None:
    expected = evaluate([number], units())[0]
    assert number.low <= expected.min() <= expected.max() <= number.high
    text = sql(number)
    assert fetched(text, "whole") == expected.tolist()
    columns: dict[str, Any] = {name: column.astype(object) for name, column in units().items()}
    assert np.broadcast_to(evaluator(text)(columns), len(expected)).tolist() == expected.tolist()
    floating = floating_sql(number)
    if floating is not None:
        assert fetched(floating, "floating") == expected.tolist()
    assert set(tree.columns(number)) <= set(CELLS)


@given(numbers)
@settings(max_examples=150, deadline=None)
def test_no_step_of_a_text_leaves_the_type_that_it_is_computed_in(number: Number) -> None:
    read = sqlglot.parse_one(f"SELECT {sql(number)} AS number FROM units", dialect="duckdb", into=sge.Select)
    (found,) = query_ranges(read, COLUMNS, Rules({})).values()
    assert found.is_bounded


def test_products_and_sums_are_cast_exactly_where_31_bits_are_not_enough() -> None:
    z, code = Ticks("outcome"), Code("covariate_2", 5)
    assert sql(z * code) == "(outcome * covariate_2)"
    assert sql(z * z) == "(CAST(outcome AS BIGINT) * outcome)"
    assert sql(1_000 * z + 2_000 * z) == "(CAST((1000 * outcome) AS BIGINT) + (2000 * outcome))"
    assert sql(3_000 * z) == "(CAST(3000 AS BIGINT) * outcome)"


def test_negative_numbers_are_shifted_without_being_negative() -> None:
    assert sql(Shift(Ticks("outcome") + 512, 10)) == "(((outcome + 1049088) >> 10) - 1024)"
    assert evaluate([Shift(Ticks("outcome"), 20)], {"outcome": np.array([-1, -GRID, 1, GRID])}).tolist() == [
        [-1, -1, 0, 1]
    ]


@pytest.mark.parametrize("start", [-2 * GRID, 1 - GRID, -513, 0, 7, GRID])
@pytest.mark.parametrize(("bits", "count"), [(0, 9), (1, 8), (9, 8), (10, 200), (15, 63), (18, 8)])
def test_bins_of_one_width_are_the_same_by_a_shift(start: int, bits: int, count: int) -> None:
    number = Bin(Ticks("outcome"), tuple(start + (place << bits) for place in range(count)))
    edges = np.array(number.edges)
    near = np.concatenate([units()["outcome"], edges - 1, edges, edges + 1]).clip(-GRID, GRID)
    expected = evaluate([number], {"outcome": near})[0]
    assert np.broadcast_to(evaluator(sql(number))({"outcome": near.astype(object)}), len(near)).tolist() == (
        expected.tolist()
    )
    assert fetched(sql(number), "whole") == evaluate([number], units())[0].tolist()
    read = sqlglot.parse_one(f"SELECT {sql(number)} AS number FROM units", dialect="duckdb", into=sge.Select)
    (found,) = query_ranges(read, COLUMNS, Rules({})).values()
    assert found.is_bounded
    assert "CASE" not in sql(number) or not bits or abs(number.edges[-1]) > 2 * GRID


def test_bins_of_other_widths_are_cases() -> None:
    edges = [place << 9 for place in range(9)]
    assert sql(Bin(Ticks("outcome"), tuple(edges))) == "LEAST(GREATEST((((outcome + 1048576) >> 9) - 2047), 0), 9)"
    for other in (edges[:7], [3 * edge for edge in edges], [*edges[:8], edges[8] + 1]):
        assert "CASE" in sql(Bin(Ticks("outcome"), tuple(other)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(2**42) * Ticks("outcome") + 1,
        lambda: Constant(2**43) * Ticks("outcome"),
        lambda: Sum((Constant(2**62), Ticks("outcome"))),
        lambda: Sum((Constant(2**62), Constant(-(2**62)))),  # which is 0, by steps that depend on the order
        lambda: Shift(Constant(2**42) * Ticks("outcome"), 3),  # which is moved up before it is shifted
    ],
)
def test_a_number_with_a_step_of_more_than_62_bits_cannot_be_made(make: Any) -> None:
    assert (Constant(2**42) * Ticks("outcome")).high == 2**62
    with pytest.raises(QueryError, match="62 bits"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ticks("treatment"),
        lambda: Ticks("outcome; DROP TABLE patients"),
        lambda: Ticks("covariate_01"),
        lambda: Ticks("covariate_\u0661"),
        lambda: Ticks("outcome\n"),
        lambda: Ticks(["outcome"]),  # type: ignore[arg-type]
        lambda: Code("outcome", 2),
        lambda: Code("arm", 0),
        lambda: Code("arm", count=True),
        lambda: Code("arm", 2**40),
        lambda: Constant(1.0),  # type: ignore[arg-type]
        lambda: Constant(value=True),
        lambda: Constant(10**400),
        lambda: Ticks("outcome") + 0.5,  # type: ignore[operator]
        lambda: Ticks("outcome") * "2",  # type: ignore[operator]
        lambda: Sum((Ticks("outcome"),)),
        lambda: Sum(("outcome", "1) --")),  # type: ignore[arg-type]
        lambda: Shift(Ticks("outcome"), 0),
        lambda: Shift(Ticks("outcome"), -1),
        lambda: Clip(Ticks("outcome"), 3, 2),
        lambda: Between(Ticks("outcome"), 0, 10**30),
        lambda: Where("1 = 1", Ticks("outcome")),  # type: ignore[arg-type]
        lambda: Lookup(Code("arm", 3), (1, 2)),
        lambda: Lookup(Ticks("outcome"), (1, 2)),
        lambda: Lookup(Code("arm", 2), (1, "2")),  # type: ignore[arg-type]
        lambda: Bin(Ticks("outcome"), ()),
        lambda: Bin(Ticks("outcome"), (2, 1)),
        lambda: Product(Number(), Number()),
        lambda: tree.sign(Code("arm", 3)),
    ],
)
def test_what_is_no_number_is_refused(make: Any) -> None:
    with pytest.raises(QueryError):
        make()


def test_trees_that_are_too_deep_or_too_large_are_refused() -> None:
    deep: Number = Ticks("outcome")
    for _ in range(DEEPEST - 1):
        deep = Shift(deep, 1)
    with pytest.raises(QueryError, match="deep"):
        Shift(deep, 1)
    with pytest.raises(QueryError, match="nodes"):
        Sum(tuple(Ticks("outcome") for _ in range(MOST_NODES)))


def test_long_tables_are_left_to_kernels() -> None:
    code = Clip(Ticks("covariate_0"), 0, 2**17)
    long = Lookup(code, tuple(range(2**17 + 1)))
    assert not is_printable(long)
    with pytest.raises(QueryError, match="kernel"):
        sql(long)
    assert floating_sql(long) is None
    assert is_printable(Lookup(code, (0,) * 2**17 + (1,)))


def test_floating_point_is_for_numbers_whose_every_step_is_exact_there() -> None:
    z = Ticks("outcome")
    assert floating_sql(z) == "outcome"
    assert floating_sql(z * z) is None  # sums of which are not exact
    assert floating_sql(Code("covariate_2", 5)) is None  # which no engine has in floating point
    assert floating_sql(Shift(z * z * z, 41)) is None
    assert floating_sql(Shift(z * z, 20)) is not None


def test_numbers_are_compared_by_value() -> None:
    z = Ticks("outcome")
    assert z + 1 + 2 == 3 + z - 0
    assert hash(z + 3) == hash(z + 1 + 2)
    assert 0 - (0 - z) == z
    assert 0 * z == Constant(0)
    assert 2 * (3 * z) == 6 * z
    assert z * z != z * Ticks("covariate_0")
    assert (z * z).low == 0


def test_a_hash_stays_in_its_process() -> None:
    """Texts have another hash in each process: a number that took its own along would not be found there."""
    number = Where(Between(Code("treatment", 2), 1, 1), Ticks("outcome") + 1)
    known = {number: hash(number)}
    again = pickle.loads(pickle.dumps(number))  # noqa: S301 (its own)
    assert not any("_hash" in vars(each) for each in tree.nodes(again))
    assert again in known
    assert again != Where(Between(Code("treatment", 2), 1, 1), Ticks("outcome") + 2)
