"""Every kind of value, right or wrong, becomes what the schema declares, and nothing raises."""

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.queries import GRID
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import OUTSIDE
from dpcausal.vault.table import open_table

inf, nan = math.inf, math.nan


def coerce(column: dpc.Real | dpc.Category | dpc.Binary, cells: object) -> list[int]:
    """What becomes of the cells of one covariate."""
    length = len(cells)  # type: ignore[arg-type]
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[column])
    table = pa.table({"t": [0] * length, "y": [0.5] * length, column.name: cells})
    ticks: list[int] = open_table(table, schema).collect(["covariate_0"], 10**6)["covariate_0"].tolist()
    return ticks


def test_reals_are_clipped_rounded_and_filled() -> None:
    cells = [0.0, 10.0, 5.0, -1e308, 1e308, inf, -inf, nan, None, 5 + 5 / GRID, 5 + 2.4 / GRID, 5 + 2.6 / GRID]
    expected = [-GRID, GRID, 0, -GRID, GRID, GRID, -GRID, round(-GRID / 5), round(-GRID / 5), 1, 0, 1]
    assert coerce(dpc.Real("x", 0, 10, missing=4), cells) == expected


@given(st.floats(allow_nan=True, allow_infinity=True, width=64))
def test_any_float_lands_on_the_grid_near_its_clipped_value(value: float) -> None:
    (ticks,) = coerce(dpc.Real("x", -3, 7), [value])
    clipped = 2.0 if math.isnan(value) else min(max(value, -3), 7)
    assert -GRID <= ticks <= GRID
    assert abs(ticks / GRID * 5 + 2 - clipped) <= 5 / GRID


@pytest.mark.parametrize(("low", "high"), [(0, 1e-100), (-1e70, 1e70), (1e17, 1e17 + 64), (-0.1, 0.3), (5e-324, 1.0)])
def test_extreme_bounds_still_land_on_the_grid(low: float, high: float) -> None:
    ticks = coerce(dpc.Real("x", low, high), [low, high, 0.0, inf, -inf, nan, 1e308])
    assert all(-GRID <= step <= GRID for step in ticks)
    assert ticks[0] == -GRID
    assert ticks[1] == GRID


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, 0, None], pa.int8()),
        pa.array([1, 0, None], pa.uint64()),
        pa.array([1.0, 0.0, nan], pa.float32()),
        pa.array([True, False, None]),
        pa.array([Decimal("1.00"), Decimal("0.00"), None]),
        pa.array(["1", "0", "what?"]),
        pa.array([" 1", "0e0", None], pa.large_string()),
        pa.array(["1", "0", None]).dictionary_encode(),
    ],
)
def test_numbers_of_any_type_are_read(cells: pa.Array) -> None:
    assert coerce(dpc.Real("x", 0, 1), cells) == [GRID, -GRID, 0]
    assert coerce(dpc.Category("x", [0, 1]), cells) == [1, 0, 1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.decimal128(20, 2)])
@pytest.mark.parametrize("values", [(3, 4, 5, 6), (-1, 0, 1), (6, 5, 4), (0, 1), (5, 3), (4, 0, 2)])
def test_lists_of_integers_read_alike_in_columns_of_every_type(values: tuple[int, ...], kind: pa.DataType) -> None:
    cells = [-128, -1, 0, 1, 2, 3, 4, 5, 6, 7, 127, None]
    column = dpc.Category("x", values, missing=values[1])
    wanted = [values.index(each) if each in values else 1 for each in cells]
    assert coerce(column, pa.array([None if each is None else str(each) for each in cells]).cast(kind)) == wanted


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64()])
def test_no_integer_is_too_far_from_the_first_that_is_listed(kind: pa.DataType) -> None:
    values = list(range(-20, 121)) if pa.types.is_signed_integer(kind) else list(range(100, 200))
    least, most = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1) if values[0] < 0 else (0, 255)
    cells = [least, values[0], 110, values[-1], most]
    wanted = [values.index(each) if each in values else 3 for each in cells]
    assert coerce(dpc.Category("x", values, missing=values[3]), pa.array(cells, kind)) == wanted


def test_integers_left_as_narrow_as_they_are_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.vault.coercion._read", lambda *parts: parts[-1])
    with pytest.raises(EngineError):
        test_no_integer_is_too_far_from_the_first_that_is_listed(pa.int8())


def test_numbers_between_integers_are_none_of_them() -> None:
    cells = [0.5, 1.0, 2.9999, -0.0, 3.0, 4.0, 1e300, nan]
    assert coerce(dpc.Category("x", [0, 1, 2, 3], missing=0), cells) == [0, 1, 0, 0, 3, 0, 0, 0]
    assert coerce(dpc.Category("x", [0.5, 1.5, 2.5], missing=0.5), [0.5, 1.5, 2.5, 2.0, 1.0]) == [0, 1, 2, 0, 0]


def test_texts_are_told_apart_exactly() -> None:
    column = dpc.Category("x", ["O'Neil", 'say "hi"', "ß", "ss", " ", "other"], strict=True)
    cells = ["O'Neil", 'say "hi"', "ß", "ss", " ", "other", "SS", "", None, "☃", "o'neil"]
    assert coerce(column, cells) == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5]


def test_texts_are_told_apart_in_any_collation() -> None:
    """Somebody's own connection may be set to take A for a."""
    connection = duckdb.connect(config={"default_collation": "nocase"})
    relation = connection.from_arrow(pa.table({"t": [0, 0, 0], "y": [0.5] * 3, "x": ["a", "A", "ä"]}))
    covariates = [dpc.Category("x", ["a", "A", "b"], strict=True)]
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 1), covariates)
    assert open_table(relation, schema).aggregate({"covariate_0": 3}, ["1"]).ravel().tolist() == [1, 1, 1]


def numbers(column: dpc.Real, cells: list[str | None]) -> list[float | None]:
    """What cells of text are read as, to a millionth of the bounds; None for those that count as missing."""
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 1), [replace(column, indicator=True)])
    table = pa.table({"t": [0] * len(cells), "y": [0.5] * len(cells), "x": pa.array(cells, pa.string())})
    found = open_table(table, schema).collect(["covariate_0", "covariate_1"], 100)
    half = (column.high - column.low) / 2
    values = (column.low + half + half * ticks / GRID for ticks in found["covariate_0"].tolist())
    pairs = zip(values, found["covariate_1"].tolist(), strict=True)
    return [None if missing else round(value, 4) for value, missing in pairs]


N = None
SPELLED: list[tuple[dict[str, Any], dict[str | None, float | None]]] = [
    ({}, {"7": 7, "\u00a07 \t": 7, "7,5": 7.5, "7 mg": N, "nan": N, "inf": 2048, "-1": -1, "": N, None: N}),
    ({}, {"1,234": 1234, "-1,234.5": -1234.5, "+1,000": 1000, "350": 350, "1,5": 1.5, "0,125": 0.125,
          "1,0625": 1.0625, "12,75": 12.75, "1,234,5": N, ",25": 0.25, "1.234,5": 1234.5, "1.125": 1.125, "1 234": N,
          "1,000e0": 1000, "1,25e1": 12.5, "1e3": 1000, ",": N, "1,234 mg": N, "1.5,2": N, "1,2,3": N}),
    ({"strip": ["kg"]}, {"80,5 kg": 80.5, "80.5": 80.5, "1,234 kg": 1234, "1.125 kg": 1.125, "80;5 kg": N}),
    ({"thousands": ""}, {"1,234": N, "1,5": N, "1234": 1234}),
    ({"decimal": ","}, {"7,5": 7.5, "7.5": N, "1.234": 1234, "0.125": N, "1.234,5": 1234.5, ",5": 0.5,
                        "7,": 7, "5e-1": 0.5, "7,5,5": N, "-0,25": -0.25}),
    ({"thousands": ","}, {"1,234": 1234, "0,125": N, "1234.5": 1234.5, "1,5": N,
                          "1,2345": N, "12,34": N, "1,234.5": 1234.5}),
    ({"decimal": ",", "thousands": "."}, {"1.234,5": 1234.5, "1.5": N, "1,5": 1.5, "1.234": 1234, "1,234.5": N}),
    ({"thousands": " "}, {"1 234": 1234, "1\u202f234.5": 1234.5, "1 2": N, "1  234": N}),
    ({"thousands": "\u00a0"}, {"1 234": 1234}),
    ({"thousands": "'"}, {"1'234": 1234, "1\u2019234": N}),
    ({"strip": ["mg", "€", "$", "m2"]}, {"5 MG": 5, "€5": 5, "-$5": -5, "$-5": -5, "-$-5": N, "5 kg": N, "5": 5,
                                         "5 m2": 5, "m2 5": N, "mg": N, "$1,234": 1234, "5 mg mg": N, "$ 5 mg": 5}),
    ({"strip": ["%"]}, {"45 %": 45, "45": 45}),
    ({"missing_codes": [-9, 999]}, {"-9": N, "-9.0": N, "999": N, "9": 9, "-99": -99, "998": 998, "n/a": N}),
    ({"percent": True}, {"50 %": 0.5, "50": N, "0.5": N, "1e1%": N, "-25%": -0.25}),
    ({"since": "2020-01-01"}, {"2020-01-05": 4, "2020-1-5": 4, "2019-12-31": -1, "2020-01-05T23:59:59Z": 4,
                               "5.1.2020": N, "2020-02-30": N, "2020-01-05 1": N, "20200105": N, "9999-12-31": 2048}),
    ({"since": "2020-01-01", "date_format": ["%d.%m.%Y", "%Y%m%d"]}, {"5.1.2020": 4, "20200105": 4, "2020-01-05": N}),
    ({"since": "2020-01-01", "date_format": "%m/%d/%Y"}, {"01/05/2020": 4, "13/01/2020": N}),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "cells"), SPELLED, ids=[str(each[0]) for each in SPELLED])
def test_numbers_and_dates_in_text_are_read_as_declared(
    rules: dict[str, Any], cells: dict[str | None, float | None]
) -> None:
    assert numbers(dpc.Real("x", -2048, 2048, **rules), list(cells)) == [
        N if each is N else round(each, 4) for each in cells.values()
    ]


def test_commas_in_some_cells_are_read_in_every_kind_of_table(tmp_path: Path) -> None:
    """Exports write 1,101 in one row, 350 in the next, and 0,5 in a third: all but 350 once counted as missing."""
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", -GRID, GRID))
    columns = {"t": ["0", "1", "1", "1"], "y": ["1,101", "350", "n/a", "7,0"]}
    file = tmp_path / "table.csv"
    file.write_text('t,y\n0,"1,101"\n1,350\n1,n/a\n1,"7,0"\n', encoding="utf-8")
    arrow = pa.table(columns)
    tables = [pd.DataFrame(columns), pd.DataFrame(columns, dtype=object), pl.DataFrame(columns), arrow, file]
    for table in [*tables, duckdb.connect().from_arrow(arrow)]:
        assert open_table(table, schema).collect(["outcome"], 9, whole=True)["outcome"].tolist() == [1101, 350, 0, 7]


OUTCOMES: list[tuple[Any, list[Any], list[bool]]] = [
    (dpc.Real("y", 0, 10), [3.0, None, math.nan, -math.inf, math.inf, 99.0], [True, False, False, True, True, True]),
    (dpc.Real("y", 0, 10, missing_codes=[-9]), [3.0, -9.0, None], [True, False, False]),
    (dpc.Real("y", 0, 10), ["3,5", "n/a", None, "nan", "inf"], [True, False, False, False, True]),
    (dpc.Real("y", 0, 10), [3, None], [True, False]),
    (dpc.Real("y", 0, 99, since="2020-01-01"), ["2020-02-01", "soon", None], [True, False, False]),
    (dpc.Binary("y"), [0, 1, 2, None], [True, True, False, False]),
    (dpc.Binary("y"), [0.0, 1.0, 0.5, math.nan], [True, True, False, False]),
    (dpc.Binary("y"), [True, False, None], [True, True, False]),
    (dpc.Binary("y", values=("no", "yes")), [" NO", "yes", "maybe", None], [True, True, False, False]),
    (dpc.Real("y", 0, 10, missing=2), [3.0, None], [True, True]),
]


@pytest.mark.parametrize(
    ("outcome", "cells", "there"), OUTCOMES, ids=[f"{each[0].name} {each[1]}" for each in OUTCOMES]
)
@pytest.mark.parametrize("undeclared", [None, 1])
def test_row_without_an_outcome_is_in_no_arm(
    outcome: Any, cells: list[Any], there: list[bool], undeclared: int | None
) -> None:
    table = pa.table({"t": [1] * len(cells), "y": pa.array(cells, from_pandas=False)})
    schema = dpc.Schema(dpc.Treatment("t", undeclared=undeclared), outcome)
    engine = open_table(table, schema)
    rows = engine.collect(["treatment", "arm", "outcome"], 100, whole=True)
    assert rows["treatment"].tolist() == [1 if each else OUTSIDE for each in there]
    assert rows["arm"].tolist() == [1 if each else 2 for each in there]
    assert engine.aggregate({}, ["1"]).tolist() == [sum(there)]
    assert engine.aggregate({}, ["1"], whole=True).tolist() == [len(there)]


REQUIRED: list[tuple[Any, list[Any]]] = [
    (dpc.Real("x", 0, 10), [1.0, None]),
    (dpc.Binary("x", values=("no", "yes")), ["yes", "perhaps"]),
    (dpc.Category("x", ["a", "b", "c"]), ["b", ""]),
    (dpc.Category("x", [1, 2, 3]), [2, 7]),
    (dpc.Category("x", [1, 2, 3]), [2.0, 2.5]),
]


@pytest.mark.parametrize(("column", "cells"), REQUIRED, ids=[f"{each[1]}" for each in REQUIRED])
@pytest.mark.parametrize("unit", [None, dpc.Unit("who", by="day")])
def test_row_without_a_required_covariate_is_in_no_arm(column: Any, cells: list[Any], unit: dpc.Unit | None) -> None:
    table = pa.table({"t": [0, 1], "y": [1.0, 1.0], "x": cells, "who": ["a", "b"], "day": [1, 1]})
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10), [column], unit)
    for required, sizes in ((schema, [1, 1, 0]), (schema.requiring(["x"]), [1, 0, 1])):
        engine = open_table(table, required)
        assert engine.aggregate({"treatment": 3}, ["1"], whole=True).ravel().tolist() == sizes
        assert engine.aggregate({"arm": 3}, ["1"], whole=True).ravel().tolist() == sizes


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float64(), pa.decimal128(38, 0), pa.string()], ids=str)
def test_missing_codes_count_as_missing_in_columns_of_every_type(kind: pa.DataType) -> None:
    cells = pa.array([-9, 9, 99, 10, None], pa.int64()).cast(kind)
    assert coerce(dpc.Real("x", -10, 10, missing=0), cells) == [round(-0.9 * GRID), round(0.9 * GRID), GRID, GRID, 0]
    assert coerce(dpc.Real("x", -10, 10, missing=0, missing_codes=[-9, 99]), cells) == [
        0,
        round(0.9 * GRID),
        0,
        GRID,
        0,
    ]


def test_percent_is_the_nearest_number_to_its_hundredth() -> None:
    cells = [f"{number / 10} %" for number in range(1_000)]
    assert coerce(dpc.Real("x", 0, 1, percent=True), cells) == coerce(
        dpc.Real("x", 0, 1), [n / 1000 for n in range(1_000)]
    )


def test_values_are_found_whatever_their_capitals_and_blanks() -> None:
    column = dpc.Category("x", ["no", "Yes", "Gynäkologie", "?"], aliases={"Yes": ["ja"], "no": ["Nö"]})
    cells = ["NO ", "yes", "\u00a0YES\n", "JA", "GYNÄKOLOGIE", "gynäkologie", "NÖ", "nö", "no!", "", None]
    assert coerce(column, cells) == [0, 1, 1, 1, 2, 2, 0, 0, 3, 3, 3]
    assert coerce(dpc.Category("x", ["no", "Yes", "?"], strict=True), ["no", "yes", "Yes", "No", " no"]) == [
        0,
        2,
        1,
        2,
        2,
    ]


def test_words_for_yes_and_no_stand_for_one_and_zero_in_text() -> None:
    cells = ["yes", "NO", " True", "f", "y", "1", "0.0", "2", None, "1\u00a0"]
    for values in ((0, 1), (False, True)):
        assert coerce(dpc.Binary("x", values=values), cells) == [1, 0, 1, 0, 1, 1, 0, 0, 0, 1]
    assert coerce(dpc.Binary("x", values=(1, 0), missing=0), cells) == [0, 1, 0, 1, 0, 0, 1, 1, 1, 0]
    assert coerce(dpc.Binary("x", strict=True, missing=1), ["no", "0", "1"]) == [1, 0, 1]
    assert coerce(dpc.Binary("x", values=(1, 2), missing=2), ["no", "1", "2"]) == [1, 0, 1]


def test_a_column_of_numbers_has_no_percent_signs_and_is_no_date() -> None:
    for wrong, hint in (
        (dpc.Real("x", 0, 1, percent=True), "percent"),
        (dpc.Real("x", 0, 1, since="2020-01-01"), "since"),
    ):
        with pytest.raises(TableError, match=f"Hint: .*{hint}"):
            coerce(wrong, [0.5])
    with pytest.raises(TableError, match='since="2020-01-31"'):
        coerce(dpc.Real("x", 0, 1), pa.array([1], pa.date32()))
    with pytest.raises(TableError, match="without time zone"):
        coerce(dpc.Real("x", 0, 1, since="2020-01-01"), pa.array([1], pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))], ids=str
)
def test_dates_and_times_become_days(kind: pa.DataType) -> None:
    cells = pa.array([dt.datetime(2020, 1, 2), dt.datetime(2019, 12, 31), None], pa.timestamp("us"))  # noqa: DTZ001
    late = pa.array([dt.datetime(2020, 1, 2, 23, 59), dt.datetime(2019, 12, 31, 0, 1), None], pa.timestamp("us"))  # noqa: DTZ001
    column = dpc.Real("x", -1, 1, missing=0, since="2020-01-01")
    assert coerce(column, cells.cast(kind)) == [GRID, -GRID, 0]
    if pa.types.is_timestamp(kind):
        assert coerce(column, late.cast(kind)) == [GRID, -GRID, 0]


def test_a_text_with_an_underscore_is_no_number() -> None:
    """DuckDB would read 1_000 as a thousand, and longer ones wrongly."""
    long = "212961_90_22948945_457376_053602_9143073"
    assert duckdb.execute(f"SELECT CAST('{long}' AS DOUBLE)").fetchall() != [(float(long),)]
    assert coerce(dpc.Category("x", [1000, 10, 0]), ["1000", "1_000", "1_0", "10"]) == [0, 2, 2, 1]


def test_whole_numbers_beyond_64_bits_become_the_nearest_number() -> None:
    far = -709_546_286_026_032_576
    assert duckdb.execute(f"SELECT CAST(CAST('{far}' AS HUGEINT) AS DOUBLE)").fetchall() != [(float(far),)]
    cells = pa.array([Decimal(far), Decimal(1), None], pa.decimal128(38, 0))
    assert coerce(dpc.Category("x", [float(far), 1, 0]), cells) == [0, 1, 2]


def test_a_yes_or_no_outcome_spans_its_range() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Binary("y", values=("alive", "dead"), missing="dead")
    )
    table = pa.table({"t": [0, 1, 5, None], "y": ["alive", "dead", "unsure", None]})
    coerced = open_table(table, schema).collect(column_names(schema), 10)
    assert coerced["outcome"].tolist() == [-GRID, GRID, GRID, GRID]
    assert {values.dtype for values in coerced.values()} == {np.dtype(np.int64)}
    assert coerced["treatment"].tolist() == [0, 1, 0, 0]


class Hostile:
    def __str__(self) -> str:
        raise ValueError("no text for you")


def test_objects_and_broken_text_count_as_missing() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
    cells = [7, "7", 7.0, True, None, "seven", Hostile(), "\ud800", 10**400, [7], pd.NA, b"7", Decimal(7)]
    frame = pd.DataFrame({"t": [1] * len(cells), "y": pd.Series(cells, dtype=object)})
    seven, one, top = 2 * GRID // 5, -4 * GRID // 5, GRID
    expected = [seven, seven, seven, one, 0, 0, 0, 0, top, 0, 0, seven, seven]
    ticks = open_table(frame, schema).collect(["outcome"], 100, whole=True)["outcome"]
    assert np.abs(ticks - np.array(expected)).max() <= 1
    assert len(open_table(frame, schema).collect(["outcome"], 100)["outcome"]) == 7


def test_arrow_text_that_is_not_unicode_counts_as_missing() -> None:
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff1")])
    assert coerce(dpc.Real("x", 0, 1), broken) == [0, GRID]


@pytest.mark.parametrize(
    "cells", [pa.array([0, 1], pa.date32()), pa.array([[0], [1]]), pa.array([b"0", b"1"]), pa.array([None, None])]
)
def test_types_that_cannot_be_read_are_refused_by_type(cells: pa.Array) -> None:
    with pytest.raises(TableError, match="column 'x'"):
        coerce(dpc.Real("x", 0, 1), cells)


def test_text_values_need_a_text_column() -> None:
    with pytest.raises(TableError, match="a number type"):
        coerce(dpc.Category("x", ["a", "b"]), [1, 2])


@pytest.mark.parametrize("keep", ["first", "last"])
def test_one_record_of_each_unit_counts_whatever_the_order(keep: str) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", -GRID, GRID),
        unit=dpc.Unit("who", by="when", keep=keep),  # type: ignore[arg-type]
    )
    table = pl.DataFrame(
        {
            "who": ["a", "a", "a", "b", "c", "c", None, None],
            "when": [2, 1, 3, None, 5, 5, 1, 1],
            "t": [0, 1, 1, 1, 1, 0, 0, 0],
            "y": [10, 20, 30, 40, 50, 60, 80, 70],
        }
    )
    # Of two records of c at the same time, the one with the smaller values counts.
    expected = {"first": [20, 40, 60, 70], "last": [30, 40, 60, 70]}[keep]
    for seed in range(5):
        engine = open_table(table.sample(fraction=1, shuffle=True, seed=seed), schema)
        assert sorted(engine.collect(["outcome"], 10)["outcome"].tolist()) == expected


@pytest.mark.parametrize(("keep", "wanted"), [("first", [3, 5]), ("last", [1, 5])])
def test_dates_written_day_first_order_records_where_they_are_declared(keep: str, wanted: list[int]) -> None:
    """Letter by letter, 02.03.2021 comes before 15.01.2020. A text that is no date comes last either way."""
    unit = dpc.Unit("who", by="when", keep=keep, date_format="%d.%m.%Y")  # type: ignore[arg-type]
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", -GRID, GRID), unit=unit)
    when = ["02.03.2021", "n/a", "15.01.2020", "01.02.2020", " 7.7.2021"]
    table = pa.table({"who": list("aaaab"), "when": when, "t": [0] * 5, "y": [1, 2, 3, 4, 5]})
    assert sorted(open_table(table, schema).collect(["outcome"], 9)["outcome"].tolist()) == sorted(wanted)
    assert dpc.Schema.from_toml(schema.to_toml()) == schema
    undeclared = replace(schema, unit=replace(unit, date_format=None))
    assert sorted(open_table(table, undeclared).collect(["outcome"], 9)["outcome"].tolist()) != sorted(wanted)
