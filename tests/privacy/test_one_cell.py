"""One unit's cells change that unit's integers and nothing else: not another's, not n, not whether the table opens."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import TableError
from dpcausal.vault.table import open_table

nan = float("nan")
FAR = 2**62
UNIT = dpc.Unit("who", by="when")


def series(dtype: str) -> Callable[[list[Any]], "pd.Series[Any]"]:
    return lambda cells: pd.Series(cells, dtype=dtype)


Make = Callable[[list[Any]], Any]
CELLS: list[tuple[str, Make, list[Any], list[Any]]] = [
    ("objects, all missing", series("object"), [None] * 120, [5, "5", dt.date(2020, 1, 1), Decimal(5), b"5", [5], nan]),
    (
        "objects, late numbers",
        series("object"),
        [None] * 110 + [1, 2, 3],
        [1, "x", pd.NaT, pd.NA, 10**50, Decimal(10**50)],
    ),
    ("objects, texts", series("object"), ["1", nan, "nan", None, "2"], [3, 2.5, "x", "\ud800", True]),
    ("objects, decimals", series("object"), [None] * 100 + [Decimal("1.5")], [10**50, Decimal("1e40"), "x"]),
    ("categories", series("category"), ["1", "2", "3"], ["4", b"\xff", 7, None]),
    ("texts", series("str"), ["1", "2", None], ["x", "☃", None]),
    ("numbers", series("float64"), [1.0, 2.0, nan], [np.inf, 1e308, -0.0, nan]),
    ("nullable", series("Int64"), [1, 2, None], [2**62, None, -(2**62)]),
]

NAMES = [case[0] for case in CELLS]


@pytest.mark.parametrize(("make", "rest", "firsts"), [case[1:] for case in CELLS], ids=NAMES)
def test_as_an_outcome(make: Make, rest: list[Any], firsts: list[Any]) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 10))
    seen = set()
    for first in [rest[-1], *firsts]:
        frame = pd.DataFrame({"t": [1] + [0] * len(rest), "y": make([first, *rest])})
        arms = open_table(frame, schema).aggregate({"treatment": 2}, ["outcome", "1"])
        seen.add((arms[0, 0], arms[0, 1], arms[1, 1]))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("make", "rest", "firsts"), [case[1:] for case in CELLS[:5]], ids=[case[0] for case in CELLS[:5]]
)
def test_as_the_column_that_orders_or_names_units(make: Make, rest: list[Any], firsts: list[Any]) -> None:
    sums, sizes = set(), set()
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    names = {str(cell) for cell in rest}
    for first in [rest[-1], *firsts]:
        # Unit "own" has one record and changes it; all other units have two records, one in each arm.
        frame = pd.DataFrame(
            {
                "t": [1] + [0, 1] * len(rest),
                "y": [10.0] + [1.0, 2.0] * len(rest),
                "who": ["own", *(f"u{place // 2}" for place in range(2 * len(rest)))],
                "when": make([first, *(cell for cell in rest for _ in (0, 1))]),
            }
        )
        sums.add(tuple(open_table(frame, schema).aggregate({"treatment": 2}, ["outcome", "1"])[0]))
        swapped = frame.assign(who=frame["when"], when=frame["who"])
        sizes.add(int(open_table(swapped, schema).aggregate({}, ["1"])[0]))
    assert len(sums) == 1
    assert sizes <= {len(names) - 1, len(names), len(names) + 1}  # the changed unit is its own or joins another


TIMES = [pa.timestamp("s", "UTC"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.duration("s"),
         pa.duration("ms"), pa.date64(), pa.time64("us"), pa.date32(), pa.time32("s")]  # fmt: skip


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_no_time_however_far_off_stops_a_frame(kind: pa.DataType) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    integers = pa.int32() if kind.bit_width == 32 else pa.int64()
    for far in (0, -(2 ** (kind.bit_width - 2)), 2 ** (kind.bit_width - 2), 2 ** (kind.bit_width - 1) - 1):
        when = pa.array([1, far, 3], integers).view(kind)
        table = pa.table({"who": [1, 1, 2], "when": when, "t": [0, 1, 0], "y": [1.0, 2.0, 3.0]})
        assert open_table(table, schema).aggregate({}, ["1"])[0] == 2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_in_parquet_either_read_whatever_they_are_or_are_refused_by_type(unit: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    outcomes = set()
    for place, far in enumerate((0, FAR, -FAR, 2**63 - 1)):
        when = pa.array([1, far, 3], pa.int64()).view(pa.timestamp(unit))
        file = tmp_path / f"{place}.parquet"
        pq.write_table(pa.table({"who": [1, 1, 2], "when": when, "t": [0, 1, 0], "y": [1.0, 2.0, 3.0]}), file)
        try:
            outcomes.add(int(open_table(file, schema).aggregate({}, ["1"])[0]))
        except TableError:
            outcomes.add(-1)
    assert len(outcomes) == 1


def test_types_that_engines_cannot_read_are_refused_by_type() -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 10))
    with pytest.raises(TableError):
        open_table(pa.table({"t": [0, 1], "y": pa.array([Decimal(1), None], pa.decimal256(60, 2))}), schema)
    with pytest.raises(TableError):
        open_table(pl.DataFrame({"t": [0, 1], "y": [dt.date(2020, 1, 1), None]}), schema)


def test_a_frame_read_by_its_values_would_be_caught() -> None:
    """The twin: letting Arrow infer a type from the cells makes one cell decide for all, or fail."""
    pa.array([None, None, 5])
    with pytest.raises(pa.ArrowInvalid):
        pa.array([5, None, "x"])
    assert pa.array([None, None]).type != pa.array([None, 5]).type
