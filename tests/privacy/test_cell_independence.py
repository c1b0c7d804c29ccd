"""One unit's cells change that unit's integers and nothing else: not another's, not n, not whether the table opens."""

import datetime as dt
import gc
import gzip
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines.dialects import DUCKDB
from dpcausal.vault.readers.unicode_files import unicode_files
from dpcausal.vault.table import open_table
from tests.support.pooled_databases import pooled_connection
from tests.support.slow import sampled

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
def test_outcome_cell_leaves_other_cells_alone(make: Make, rest: list[Any], firsts: list[Any]) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
    seen = set()
    for first in [rest[-1], *firsts]:
        frame = pd.DataFrame({"t": [1] + [0] * len(rest), "y": make([first, *rest])})
        arms = open_table(frame, schema).aggregate({"treatment": 2}, ["outcome", "1"])
        seen.add((arms[0, 0], arms[0, 1]))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("make", "rest", "firsts"), [case[1:] for case in CELLS[:5]], ids=[case[0] for case in CELLS[:5]]
)
def test_cell_of_a_key_or_order_column_leaves_other_cells_alone(make: Make, rest: list[Any], firsts: list[Any]) -> None:
    sums, sizes = set(), set()
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
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
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    integers = pa.int32() if kind.bit_width == 32 else pa.int64()
    for far in (0, -(2 ** (kind.bit_width - 2)), 2 ** (kind.bit_width - 2), 2 ** (kind.bit_width - 1) - 1):
        when = pa.array([1, far, 3], integers).view(kind)
        table = pa.table({"who": [1, 1, 2], "when": when, "t": [0, 1, 0], "y": [1.0, 2.0, 3.0]})
        assert open_table(table, schema).aggregate({}, ["1"])[0] == 2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_in_parquet_either_read_whatever_they_are_or_are_refused_by_type(unit: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
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


@pytest.mark.parametrize("bad", [b"\xff", b"\xff" * 9, b"\xff" * 40, b"\xff" * 4 + b"abcdefgh"])
@pytest.mark.parametrize("way", ["frame", "relation"])
def test_bytes_that_are_not_unicode_in_a_key_disturb_nobody(bad: bytes, way: str) -> None:
    """DuckDB's order of such text corrupts other rows, or the process; as bytes it is ordered soundly."""
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    sums = []
    for cell in (b"0007", bad):
        when = [b"%04d" % place for place in range(999)] + [cell]
        offsets = np.cumsum([0, *map(len, when)]).astype(np.int32)
        texts = pa.Array.from_buffers(pa.string(), 1000, [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(when))])
        table = pa.table({"who": list(range(1000)), "when": texts, "t": [0, 1] * 500, "y": [5.0] * 1000})
        opened = table if way == "frame" else pooled_connection().from_arrow(table)
        sums.append(open_table(opened, schema).aggregate({"treatment": 2}, ["outcome", "1"]).tolist())
    assert sums[0] == sums[1] == [[0, 500], [0, 500]]


@pytest.mark.parametrize("last", ["5", "127", None])
def test_new_dictionary_value_leaves_other_cells_alone(last: str | None) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 200))
    kind = pa.dictionary(pa.int8(), pa.string())
    chunks = [pa.array([str(place) for place in range(64)], pa.string()).cast(kind)]
    chunks.append(pa.array([*(str(place) for place in range(64, 127)), last], pa.string()).cast(kind))
    table = pa.table({"t": [0, 1] * 64, "y": pa.chunked_array(chunks)})
    assert open_table(table, schema).aggregate({}, ["1"])[0] == 127 + (last is not None)


def test_visits_written_as_text_are_ordered_as_numbers() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    columns = {"who": [1, 1, 1], "t": [0, 0, 0], "y": [1.0, 2.0, 3.0]}
    for when in ([10, 9, 11], ["10", "9", "11"], pd.Series([10, 9, "x"], dtype=object), ["b", "a", "c"]):
        ticks = open_table(pd.DataFrame({**columns, "when": when}), schema).collect(["outcome"], 10)["outcome"]
        assert ticks.tolist() == [round((2.0 - 5) / 5 * 2**20)]


def test_types_that_engines_cannot_read_are_refused_by_type() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
    with pytest.raises(TableError):
        open_table(pa.table({"t": [0, 1], "y": pa.array([Decimal(1), None], pa.decimal256(60, 2))}), schema)
    with pytest.raises(TableError):
        open_table(pl.DataFrame({"t": [0, 1], "y": [dt.date(2020, 1, 1), None]}), schema)
    with pytest.raises(TableError):
        open_table(pa.table({"t": [0, 1], "y": pa.array(["1", "2"], pa.string_view())}), schema)
    spans = pa.array([(1, 2, 3), None], pa.month_day_nano_interval())
    ordered = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=UNIT)
    with pytest.raises(TableError):
        open_table(pa.table({"t": [0, 1], "y": [1.0, 2.0], "who": [1, 2], "when": spans}), ordered)
    with pytest.raises(TableError, match="stand twice"):
        open_table(pd.DataFrame([[0, 1, 2]], columns=["t", "y", "y"]), schema)


def nan_in_a_file(last: float | None, folder: Path) -> list[int]:
    """What a NaN next to two numbers becomes in a parquet file whose last cell may be empty."""
    cells = [nan, 5.0, 7.0, last]
    pq.write_table(pa.table({"t": [0, 1, 1, 1], "y": pa.array(cells, pa.float64())}), folder / "file.parquet")
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10))
    views = folder / "file.parquet", duckdb.connect().read_parquet(str(folder / "file.parquet"))
    return [int(open_table(view, schema).aggregate({"treatment": 2}, ["outcome"])[0, 0]) for view in views]


def test_an_empty_cell_does_not_decide_what_becomes_of_another_that_is_not_a_number(tmp_path: Path) -> None:
    """Files tell the least and the greatest number of a column, not-a-number aside; DuckDB would take them at that."""
    assert nan_in_a_file(None, tmp_path) == nan_in_a_file(6.0, tmp_path) == [0, 0]


def test_file_read_with_inferred_types_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.vault.engines.duckdb._WITHOUT_STATISTICS", "SET disabled_optimizers = ''")
    monkeypatch.setattr("dpcausal.vault.readers.files._parquet", lambda path, _, duck: duck.read_parquet(str(path)))
    for last in (None, 6.0):
        with pytest.raises(EngineError):  # statistics say that all numbers are within the bounds, and one is none
            nan_in_a_file(last, tmp_path)


RULES: list[dpc.Real | dpc.Binary | dpc.Category] = [
    dpc.Real("x", 0, 10, decimal=",", thousands=".", strip=["mg", "€"], indicator=True),
    dpc.Real("x", 0, 1, percent=True, indicator=True),
    dpc.Real("x", 0, 10, since="2020-01-01", date_format=["%d.%m.%Y", "%Y-%m-%d"], indicator=True),
    dpc.Binary("x"),
    dpc.Category("x", ["a", "b", "c"], aliases={"a": ["1,5 mg"]}),
    dpc.Category("x", [1, 2, 3], aliases={3: ["drei"]}),
    dpc.Real("x", 0, 10_000, indicator=True),
    dpc.Real("x", 0, 10_000, missing_codes=[350, -9], indicator=True),
]
USUAL = ["1,234", "350", "1,5 mg", "45 %", "03.01.2020", "yes", "B", "drei"]
STRANGE = [
    b"", b"\xff", b"\xff" * 40, b"\xc3", b"1,5\xa0", b"\\xff", b"'", b"1.234.5", b"30.02.2020", b"9999-99-99", b"inf",
    b"%", b"0" * 100_000, b"1." * 50_000, b"1" + b",000" * 25_000, b"," * 100_000, b"1,\xff00",
    b"\0", b" " * 100_000, "\u00a0".encode() * 9_999, "½ \u2028 \ufeff".encode(),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "way"),
    sampled([(rule, ("frame", "relation")[(rule + place) % 2]) for rule in range(len(RULES)) for place in (0, 1)], 2),
)
def test_cell_read_by_a_rule_leaves_other_cells_alone(rule: int, way: str) -> None:
    """Whatever one cell holds, the cells of others become the same integers, and nothing fails."""
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 10), [RULES[rule]])
    names = [name for name in column_names(schema) if name.startswith("covariate")]
    seen = set()
    for cell in [*(text.encode() for text in USUAL), *STRANGE]:
        cells = [cell, *(text.encode() for text in USUAL * 20)]
        offsets = np.cumsum([0, *map(len, cells)]).astype(np.int32)
        parts = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(cells))]
        texts = pa.Array.from_buffers(pa.string(), len(cells), parts)
        table = pa.table({"t": [1] + [0] * (len(cells) - 1), "y": [5.0] * len(cells), "x": texts})
        opened = table if way == "frame" else pooled_connection().from_arrow(table)
        sums = open_table(opened, schema).aggregate({"treatment": 2}, [*names, "1"])
        seen.add((*sums[0].tolist(), sums[1, -1]))
    assert len(seen) == 1


def sums_beside(cell: bytes, file: Path) -> tuple[int, ...]:
    """Write a cell into a .csv file, and return what the records of others add up to, and how many units there are."""
    records = [b"0,5," + text.replace(",", ".").encode() for text in USUAL] * 20
    content = b"\n".join([b"t,y,x", b"1,5," + cell, *records, b""])
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10), [RULES[0]])
    names = [name for name in column_names(schema) if name.startswith("covariate")]
    engine = open_table(file, schema)
    sums = engine.aggregate({"treatment": 2}, [*names, "1"])
    return (*sums[0].tolist(), sums[1, -1])


NOT_UNICODE = [
    b"S\xfcd",
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    b"\xff" * 9_999,
]


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_letters_of_another_encoding_leave_other_cells_and_the_record_alone(name: str, tmp_path: Path) -> None:
    """DuckDB leaves out the record of such a cell, and with it what else is declared about the person."""
    seen = {sums_beside(cell, tmp_path / name) for cell in [b"yes", *NOT_UNICODE, "Süd \uffff".encode()]}
    assert len(seen) == 1


def test_file_that_duckdb_reads_as_it_is_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.vault.readers.files.unicode_files", lambda files, *_: files)
    with pytest.raises(AssertionError):
        test_letters_of_another_encoding_leave_other_cells_and_the_record_alone("table.csv", tmp_path)


def test_copy_in_unicode_is_private_and_goes_with_its_owner(tmp_path: Path) -> None:
    file, owner = tmp_path / "table.csv", duckdb.connect()
    file.write_bytes(b"t,y\n1,S\xfcd\n")
    (copy,) = unicode_files([str(file)], str(tmp_path), owner)
    assert (Path(copy).stat().st_mode & 0o777, Path(copy).parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert Path(copy).read_bytes() == "t,y\n1,S\ufffdd\n".encode()
    assert unicode_files([copy], str(tmp_path), owner) == [copy]  # no copy where none is needed
    del owner
    gc.collect()
    assert not Path(copy).exists()


def test_text_that_is_folded_as_it_is_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: DuckDB's own functions fail at text that is not Unicode, so one cell would stop the table.

    The error ends a database for good, so it is none that the next test gets.
    """
    monkeypatch.setitem(vars(DUCKDB), "folded", "lower({})".format)
    monkeypatch.setattr(sys.modules[__name__], "pooled_connection", duckdb.connect)
    with pytest.raises(EngineError):
        test_cell_read_by_a_rule_leaves_other_cells_alone(4, "relation")


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms"), pa.date64()], ids=str
)
@pytest.mark.parametrize("way", ["frame", "relation", "file"])
def test_no_date_however_far_off_decides_on_another(kind: pa.DataType, way: str, tmp_path: Path) -> None:
    schema = dpc.Schema(
        dpc.Treatment("t"), dpc.Real("y", 0, 10), [dpc.Real("x", 0, 10, since="1970-01-01", indicator=True)]
    )
    integers = pa.int32() if kind.bit_width == 32 else pa.int64()
    far = 2 ** (kind.bit_width - 1) - 1
    seen = set()
    for place, cell in enumerate((0, far, -far, -far - 1, far // 2, None)):
        cells = pa.array([cell, 5, 7, None], integers).view(kind)
        table = pa.table({"t": [1, 0, 0, 0], "y": [5.0] * 4, "x": cells})
        if way == "file":
            pq.write_table(table, tmp_path / f"{place}.parquet")
        relation = pooled_connection().from_arrow(table) if way == "relation" else None
        ways = {"frame": table, "relation": relation, "file": tmp_path / f"{place}.parquet"}
        try:
            sums = open_table(ways[way], schema).aggregate({"treatment": 2}, ["covariate_0", "covariate_1", "1"])
            seen.add((*sums[0].tolist(), sums[1, -1]))
        except TableError:  # by its type
            seen.add(())
    assert len(seen) == 1


def test_a_frame_read_by_its_values_would_be_caught() -> None:
    """The mutant: letting Arrow infer a type from the cells makes one cell decide for all, or fail."""
    pa.array([None, None, 5])
    with pytest.raises(pa.ArrowInvalid):
        pa.array([5, None, "x"])
    assert pa.array([None, None]).type != pa.array([None, 5]).type
