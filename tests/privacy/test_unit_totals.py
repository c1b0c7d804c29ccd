"""Records of a unit that are added up: the total of a unit depends on its own records alone, and is within bounds."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.losses import Claim
from dpcausal.errors import SchemaError
from dpcausal.ledger import DataSet
from dpcausal.queries import GRID, ArmMoments, question
from dpcausal.queries.profiles import grid
from dpcausal.vault.table import open_table

inf, nan = math.inf, math.nan
Event = float | None
HOSTILE: tuple[Event, ...] = (None, nan, inf, -inf, 1.7e308, -1.7e308, 5e-324, 0.0, 0.1, -0.1, 3.3, 10.0, -7.5)
OUTCOMES = (dpc.Real("y", 0, 10), dpc.Real("y", -3, 4.5), dpc.Real("y", 2, 3), dpc.Real("y", -1e-60, 1e-60))


def schema_of(
    outcome: dpc.Real | dpc.Binary,
    sum: Sequence[str] = ("y",),  # noqa: A002
    count: Sequence[str] = (),
) -> dpc.Schema:
    unit = dpc.Unit("who", by="when", sum=sum, count=count)
    return dpc.Schema(dpc.Treatment("t"), outcome, unit=unit)


def table_of(units: Sequence[Sequence[Event]], arms: Sequence[int] | None = None) -> pa.Table:
    places = [(who, when) for who, events in enumerate(units) for when in range(len(events))]
    return pa.table(
        {
            "who": pa.array([who for who, _ in places]),
            "when": pa.array([when for _, when in places]),
            "t": pa.array([arms[who] if arms else 0 for who, _ in places]),
            "y": pa.array([units[who][when] for who, when in places], pa.float64()),
        }
    )


def totals(table: pa.Table, schema: dpc.Schema) -> list[int]:
    found = open_table(table, schema).collect(("outcome",), len(table))["outcome"]
    return sorted(int(ticks) for ticks in found)


def expected_ticks(column: dpc.Real, events: Sequence[Event]) -> int:
    """Return the ticks of a unit's total, by exact fractions."""
    size = math.frexp(max(abs(column.low), abs(column.high)))[1]
    to_one, most = Fraction(2) ** (40 - size), 2.0 ** (12 + size)
    numbers = (
        Fraction(max(-most, min(most, event))) for event in events if event is not None and not math.isnan(event)
    )
    total = sum(math.floor(number * to_one + Fraction(1, 2)) for number in numbers) / to_one
    middle, ticks_to_one = grid(column)
    within = max(column.low, min(column.high, float(max(-Fraction(most), min(Fraction(most), total)))))
    return math.floor((within - middle) * ticks_to_one + 0.5)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_totals_of_all_small_units_are_exact_and_within_bounds(outcome: dpc.Real) -> None:
    units = [events for size in (1, 2, 3) for events in itertools.combinations_with_replacement(HOSTILE, size)]
    found = totals(table_of(units), schema_of(outcome))
    assert found == sorted(expected_ticks(outcome, events) for events in units)
    assert -GRID <= found[0] <= found[-1] <= GRID


def test_many_records_of_one_unit_do_not_overflow() -> None:
    units = [[1.7e308] * 100_000, [-1.7e308] * 100_000, [0.1] * 50]
    assert totals(table_of(units), schema_of(dpc.Real("y", 0, 10))) == [-GRID, 0, GRID]


UNITS = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(rest=st.lists(UNITS, max_size=3), one=UNITS, other=UNITS, arms=st.tuples(*[st.integers(0, 1)] * 5))
def test_changing_all_records_of_a_unit_moves_sums_within_the_bound(
    rest: list[list[Event]], one: list[Event], other: list[Event], arms: tuple[int, ...]
) -> None:
    schema = schema_of(dpc.Real("y", -3, 4.5))
    claim = Claim(ArmMoments(), schema, dpc.Guarantee(epsilon=1.0))
    before, after = (
        claim.answer(open_table(table_of([*rest, unit], [*arms[: len(rest)], arm]), schema))
        for unit, arm in ((one, arms[3]), (other, arms[4]))
    )
    assert claim.loss(before, after) <= 1 + 1e-9


def test_the_bound_is_attained() -> None:
    schema = schema_of(dpc.Real("y", -3, 4.5))
    claim = Claim(ArmMoments(), schema, dpc.Guarantee(epsilon=1.0))
    tables = (table_of([[1.0], events], [0, arm]) for arm, events in ((0, [-2.0] * 9), (1, [2.0] * 9)))
    before, after = (claim.answer(open_table(table, schema)) for table in tables)
    assert claim.loss(before, after) > 0.99


def test_the_order_of_records_makes_no_difference() -> None:
    schema, table = schema_of(dpc.Real("y", 0, 10)), table_of([[0.1, 0.7, 1e308, -1e308, None], [0.3] * 7])
    backwards = table.take(list(reversed(range(len(table)))))
    assert totals(table, schema) == totals(backwards, schema)


def test_any_yes_counts_and_records_are_counted() -> None:
    table = pa.table(
        {
            "who": [1, 1, 2, 2, 3, 3],
            "when": [1, 2, 1, 2, 1, 2],
            "t": [0, 1, 1, 0, 0, 0],
            "y": ["no", "YES", "no", None, "?", ""],
            "order": pa.array([7.0, nan, None, None, 8.0, 9.0]),
        }
    )
    outcome, orders = dpc.Binary("y", ("no", "yes"), missing="yes"), dpc.Real("order", 0, 2)
    unit = dpc.Unit("who", by="when", sum=["y"], count=["order"])
    schema = dpc.Schema(dpc.Treatment("t"), outcome, [orders], unit=unit)
    found = open_table(table, schema).collect(("treatment", "outcome", "covariate_0"), 3)
    lines = sorted(zip(*(found[name].tolist() for name in found), strict=True))
    assert lines == [(0, -GRID, GRID), (0, GRID, 0), (1, -GRID, -GRID)]


def test_an_answer_for_one_record_is_never_given_for_a_total() -> None:
    added, kept = schema_of(dpc.Real("y", 0, 10)), schema_of(dpc.Real("y", 0, 10), sum=[])
    asked = [question(ArmMoments(), dpc.Guarantee(epsilon=1.0), schema, "2026") for schema in (added, kept)]
    assert asked[0] != asked[1]
    assert DataSet.of(added) == DataSet.of(kept)  # the same units, and so one budget


@pytest.mark.parametrize(
    ("outcome", "rules"),
    [
        (dpc.Real("y", 0, 10), {"sum": ["t"]}),
        (dpc.Real("y", 0, 10), {"sum": ["absent"]}),
        (dpc.Real("y", 0, 10, since="2020-01-01"), {"sum": ["y"]}),
        (dpc.Binary("y"), {"sum": [], "count": ["y"]}),
        (dpc.Real("y", 0, 10), {"sum": ["y"], "count": ["y"]}),
        (dpc.Real("y", 0, 10), {"sum": "y"}),
    ],
)
def test_columns_without_a_total_are_refused(outcome: dpc.Real | dpc.Binary, rules: dict[str, Sequence[str]]) -> None:
    with pytest.raises(SchemaError):
        schema_of(outcome, **rules)
