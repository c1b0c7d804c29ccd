"""Every cell becomes the same integer on DuckDB and on Spark, whatever its type, its column's name or any setting."""

import datetime as dt
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import TableError
from dpcausal.utils.plain_text import is_plain_text
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.dialects import DUCKDB, SPARK
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.engines.spark import SparkEngine
from dpcausal.vault.table import open_table
from tests.support.engines import InOrder
from tests.support.slow import sampled
from tests.vault.on_spark import MARKS, NUMBERS, SMALL, TEXTS, frame_of, settings, sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.costly, *MARKS]

FAR = 709_546_286_026_032_576  # whose negative DuckDB takes to a DOUBLE that is not the nearest
STAMPS = [dt.datetime(1, 1, 1), dt.datetime(2021, 3, 28, 2, 30), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), None]  # noqa: DTZ001
CELLS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "t": (pa.bool_(), [True, False, None]),
    "y": (pa.float64(), NUMBERS),
    "small": (pa.int8(), [0, 1, 127, -128, None]),
    "large": (pa.int64(), [0, 1, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "stage": (pa.int64(), [-2, -1, 0, 1, 2, 3, 2**40, None]),
    "grade": (pa.float64(), [*NUMBERS, 0.5, 1.5, 2.0]),
    "single": (pa.float32(), [0.0, -0.0, 0.1, math.nan, math.inf, None]),
    "price": (pa.decimal128(12, 3), [Decimal("0.100"), Decimal("-7.5"), Decimal(10**8), None]),
    "wide": (pa.decimal128(38, 0), [Decimal(1), Decimal(2**53 + 1), Decimal(-FAR), None]),
    "text": (pa.string(), TEXTS),
    "ward": (pa.string(), TEXTS),
    "who": (pa.string(), [*TEXTS, *map(str, range(99))]),
    "weight": (pa.float64(), NUMBERS),
    "day": (pa.date32(), [stamp and stamp.date() for stamp in STAMPS]),
    "born": (pa.date32(), [stamp and stamp.date() for stamp in STAMPS]),
    "clock": (pa.timestamp("us"), STAMPS),
    "moment": (pa.timestamp("us", "UTC"), STAMPS),
}
COVARIATES: list[dpc.Real | dpc.Category] = [
    dpc.Category("small", [0, 1, -128]),
    dpc.Real("large", -1e19, 1e19),
    dpc.Category("stage", [-1, 0, 1, 2], missing=0),
    dpc.Category("grade", [0, 1, 2], missing=1),
    dpc.Real("single", -0.1, 0.3),
    dpc.Category("price", [0.1, -7.5, 0]),
    dpc.Category("wide", [1, float(2**53 + 1), -float(FAR), 0]),
    dpc.Real("text", -3, 57),
    dpc.Category("ward", [each for each in TEXTS if each is not None and is_plain_text(each)], strict=True),
    dpc.Real("born", -1e6, 1e6, since="2020-02-29", indicator=True),
]


def by_type(unit: dpc.Unit | None = None) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), covariates=COVARIATES, unit=unit
    )


@pytest.fixture(scope="module")
def typed() -> pa.Table:
    draw = np.random.default_rng(3)
    places = {name: draw.integers(0, len(cells), 500) for name, (_, cells) in CELLS.items()}
    return pa.table({name: pa.array([cells[at] for at in places[name]], kind) for name, (kind, cells) in CELLS.items()})


@pytest.fixture(scope="module")
def typed_frame(spark: "SparkSession", typed: pa.Table) -> "DataFrame":
    return frame_of(spark, typed, 3)


def rows(engine: Engine, schema: dpc.Schema) -> list[list[int]]:
    """All coerced rows in one order."""
    return [column.tolist() for column in InOrder(engine).collect(column_names(schema), 500).values()]


UNITS = [
    None, dpc.Unit("who", "clock"), dpc.Unit("who", "text"), dpc.Unit("who", "text", "last"),
    dpc.Unit("who", "text", date_format=["%d.%m.%Y", "%Y%m%d"]), dpc.Unit("clock", "y"),
    dpc.Unit("moment", "weight", "last"), dpc.Unit("day", "wide", "last"), dpc.Unit("weight", "moment"),
]  # fmt: skip


@pytest.mark.parametrize("unit", sampled(UNITS, 2), ids=str)
def test_every_cell_becomes_the_same_integer(unit: dpc.Unit | None, typed: pa.Table, typed_frame: "DataFrame") -> None:
    schema = by_type(unit)
    assert rows(SparkEngine(typed_frame, schema), schema) == rows(open_table(typed, schema), schema)


CHANGED = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_setting_of_a_session_changes_an_integer(
    ansi: str, spark: "SparkSession", typed: pa.Table, typed_frame: "DataFrame"
) -> None:
    schema = by_type(dpc.Unit("who", "text"))
    with settings(spark, CHANGED | {"spark.sql.ansi.enabled": ansi}):
        engine = SparkEngine(typed_frame, schema)
        seen, size = rows(engine, schema), engine.fold(["outcome"], sizes)[0]
    expected = rows(open_table(typed, schema), schema)
    assert seen == expected
    assert size == len(expected[0])


def hostile_text(draw: np.random.Generator) -> str:
    """Something like a number."""
    digits = "".join(draw.choice(list("0123456789"), draw.integers(1, 30)))
    if draw.random() < 0.4:
        number = struct.unpack("d", draw.bytes(8))[0]
        return f"{number!r}" if draw.random() < 0.5 else f"{number:.{draw.integers(0, 40)}e}"
    if draw.random() < 0.3:
        return f"{digits[:9]}.{digits[9:]}{draw.choice(['', 'e', 'E-', 'e+'])}{draw.integers(0, 400)}"
    pieces = [
        *"0123456789+-._eE \t\n\v\f\r()",
        "inf",
        "NaN",
        "nan(",
        "infinity",
        "d",
        "F",
        "0x",
        "p",
        "\0",
        "\x1c",
        "\x85",
    ]
    return "".join(draw.choice(pieces, draw.integers(0, 7)))


def _bits(number: float | None) -> bytes | None:
    return None if number is None else struct.pack("d", math.nan if math.isnan(number) else number)


def test_texts_read_as_the_same_numbers_to_the_last_bit(spark: "SparkSession") -> None:
    draw = np.random.default_rng(17)
    texts = [each for each in TEXTS if each] + [hostile_text(draw) for _ in range(20_000)]
    texts += ["1" * 50_000, "1" * 50_000 + "x", " " * 50_000 + "7", "." + "0" * 50_000 + "1e50001", "nan(" * 9_999]
    table = pa.table({"place": range(len(texts)), "text": texts})
    ordered = f"SELECT {DUCKDB.number('text')} FROM numbers ORDER BY place"
    one = connect().register("numbers", table).execute(ordered).fetchall()
    other = spark.createDataFrame(table).selectExpr("place", SPARK.number("text")).collect()
    bits = [[_bits(each[-1]) for each in found] for found in (one, sorted(other))]
    assert [texts[at] for at, (first, second) in enumerate(zip(*bits, strict=True)) if first != second] == []
    assert sum(each is not None for each in bits[0]) > 5_000


RULES: list[dpc.Real | dpc.Binary | dpc.Category] = [
    dpc.Real("cell", -3, 57, indicator=True),
    dpc.Real("cell", -1e6, 1e6, decimal=",", thousands=".", strip=["µg", "kg", "€"], indicator=True),
    dpc.Real("cell", -1e6, 1e6, thousands=" ", strip=["%", "a+b", "m2", "\\"]),
    dpc.Real("cell", -1e6, 1e6, thousands="'", indicator=True),
    dpc.Real("cell", -1e6, 1e6, decimal=",", thousands="\u2019"),
    dpc.Real("cell", -1, 1, percent=True, thousands=",", strip=["e"], indicator=True),
    dpc.Real("cell", -1e7, 1e7, since="2020-01-01", date_format=["%d.%m.%Y", "%Y-%m-%d"], indicator=True),
    dpc.Real("cell", -1e7, 1e7, since="1582-10-15", date_format="%Y%m%d"),
    dpc.Binary("cell"),
    dpc.Binary("cell", values=(1, 0), aliases={1: ["é", "kg"], 0: ["\ufffd"]}, missing=1),
    dpc.Category("cell", ["a", "É", "\ufffd", "", "k g", "ärzt\\in", "{x}", "it's", '"'], missing="a"),
    dpc.Category("cell", ["a", "A", " a", "\u00a0", "?"], strict=True, aliases={"?": ["\ufffd"]}),
    dpc.Real("cell", -3, 57, missing_codes=[0, 7, 1234], indicator=True),
]
PIECES = [
    *"0123456789", *"0123456789", *"+-.,eE'\u2019 \t\n\"%\\", "000", "1.234", "1,234", "1 234", "1'234", "inf", "nan",
    "µg", "kg", "€", "m2", "a+b", "\u00a0", "\u202f", "\ufeff", "\x85", "\x1c", "\0", "T", "Z", ":", "12:30",
    "2020-01-31", "31.1.2020", "29.02.2021", "20200131", "0000-01-01", "9999-12-31", "yes", "No", "TRUE", "f", "a", "A",
    "é", "É", "\ufffd", "ärzt\\in", "{x}", "it's", "\u0130", "\u0131", "\u212a", "\u017f", "\u2028", "½", "\u0661",
]  # fmt: skip
LONG = [
    "1" * 50_000,
    "1.234" * 10_000,
    " " * 50_000 + "7",
    "1" + ".234" * 10_000,
    "7" + " " * 50_000 + "x",
    "kg" * 30_000,
]


def by_rule(place: int) -> dpc.Schema:
    covariates = [dpc.Real("place", 0, 2**20), RULES[place]]
    return dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), covariates=covariates)


def as_bytes(cells: Sequence[bytes]) -> pa.Array:
    """Text of any bytes, Unicode or not."""
    offsets = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(cells), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(cells))])


@pytest.fixture(scope="module")
def hostile() -> list[bytes]:
    draw = np.random.default_rng(23)
    texts = ["".join(draw.choice(PIECES, draw.integers(1, 6))) for _ in range(4_000)] + PIECES + LONG
    cells = [text.encode() for text in texts]
    broken = [draw.choice([b"\xff", b"\xc3", b"\x85", b"\xa0", b"\xe2\x80"]) for _ in range(400)]
    return cells + [cell[:at] + bad + cell[at:] for at, (cell, bad) in enumerate(zip(cells[:400], broken, strict=True))]


@pytest.fixture(scope="module")
def hostile_frame(spark: "SparkSession", hostile: list[bytes]) -> "DataFrame":
    table = pa.table({"place": range(len(hostile)), "cell": pa.array(hostile, pa.binary())})
    frame = spark.createDataFrame(table).selectExpr("0 AS t", "5.0D AS y", "place", "CAST(cell AS STRING) AS cell")
    return frame.repartition(2).cache()


@pytest.mark.parametrize(
    ("rule", "ansi"),
    sampled([(rule, ("true", "false")[(rule + place) % 2]) for rule in range(len(RULES)) for place in (0, 1)], 2),
)
def test_hostile_cells_read_by_rules_become_the_same_integers(
    rule: int, ansi: str, spark: "SparkSession", hostile: list[bytes], hostile_frame: "DataFrame"
) -> None:
    schema, size = by_rule(rule), len(hostile)
    table = pa.table({"t": [0] * size, "y": [5.0] * size, "place": range(size), "cell": as_bytes(hostile)})
    one = open_table(connect().from_arrow(table), schema).collect(column_names(schema), 10**6)
    with settings(spark, CHANGED | {"spark.sql.ansi.enabled": ansi}):
        other = SparkEngine(hostile_frame, schema).collect(column_names(schema), 10**6)
    found = [sorted(zip(*(each[name].tolist() for name in column_names(schema)), strict=True)) for each in (one, other)]
    different = [place for place, (a, b) in enumerate(zip(*found, strict=True)) if a != b]
    assert [hostile[place][:60] for place in different] == []
    assert len({line[3] for line in found[0]}) > 1


def test_hostile_cells_read_as_several_arms_become_the_same_integers(
    spark: "SparkSession", hostile: list[bytes], hostile_frame: "DataFrame"
) -> None:
    arms = ("1", "a", "%")
    for undeclared in (None, "a"):
        schema = dpc.Schema(
            treatment=dpc.Treatment("cell", arms=arms, compare="a", undeclared=undeclared), outcome=dpc.Real("y", 0, 10)
        )
        table = pa.table({"y": [5.0] * len(hostile), "cell": as_bytes(hostile)})
        one = open_table(connect().from_arrow(table), schema).collect(("arm",), 10**6, whole=True)["arm"]
        with settings(spark, CHANGED):
            other = SparkEngine(hostile_frame, schema).collect(("arm",), 10**6, whole=True)["arm"]
        counts = [np.bincount(each, minlength=4).tolist() for each in (one, other)]
        assert counts[0] == counts[1]
        assert (counts[0][3] == 0) == (undeclared is not None)
        assert min(counts[0][:3]) > 0


def test_times_without_a_time_zone_become_days(spark: "SparkSession") -> None:
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("clock", -1e6, 1e6, since="2020-02-29"))
    stamps = ", ".join(f"(TIMESTAMP_NTZ '{each}')" for each in STAMPS if each) + ", (NULL)"
    frame = spark.sql(f"SELECT true AS t, clock FROM VALUES {stamps} AS v(clock)")
    table = pa.table({"t": [True] * len(STAMPS), "clock": pa.array(STAMPS, pa.timestamp("us"))})
    with settings(spark, CHANGED):
        assert rows(SparkEngine(frame, schema), schema) == rows(open_table(table, schema), schema)
    zoned = spark.sql("SELECT true AS t, TIMESTAMP '2020-01-01 00:00:00' AS clock")
    with pytest.raises(TableError, match="without time zone"):
        SparkEngine(zoned, schema)


def test_texts_are_told_apart_whatever_their_collation(spark: "SparkSession") -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 10),
        covariates=[dpc.Category("c", ["a", "A", "other"], strict=True)],
        unit=dpc.Unit("who", "c"),
    )
    values = "VALUES ('a', 'u'), ('A', 'U'), ('a ', 'u '), ('á', 'ü') AS v(c, who)"
    for kind in ("UTF8_LCASE", "UNICODE_CI_AI", "UTF8_BINARY_RTRIM", "DE"):
        columns = f"0 AS t, 5.0D AS y, c COLLATE {kind} AS c, who COLLATE {kind} AS who"
        engine = SparkEngine(spark.sql(f"SELECT {columns} FROM {values}"), schema)
        assert engine.aggregate({"covariate_0": 3}, ["1"]).ravel().tolist() == [1, 1, 2]


def test_text_that_is_not_unicode_counts_as_missing_and_names_units_apart(spark: "SparkSession") -> None:
    broken = spark.sql(
        "SELECT t, y, CAST(b AS STRING) AS c, CAST(b AS STRING) AS who FROM VALUES "
        "(0, 1.0D, X'FF'), (0, 2.0D, X'FE'), (0, 3.0D, X'31FF'), (0, 4.0D, X'31') AS v(t, y, b)"
    )
    unit = dpc.Unit("who", by="c")
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 10), [dpc.Category("c", [0, 1, 2])], unit)
    assert SparkEngine(broken, schema).aggregate({"covariate_0": 3}, ["1"]).ravel().tolist() == [0, 1, 3]


NAMES = [
    "a.b",
    "`tick`",
    "{source}",
    "${spark.app.name}",
    'say "hi"',
    "it's",
    "back\\slash",
    "select",
    "Größe ☃",
    "x y ",
]


def test_columns_may_be_called_anything(spark: "SparkSession") -> None:
    for one, other in zip(NAMES[::2], NAMES[1::2], strict=True):
        frame = spark.createDataFrame(
            [(0, 150.0, "junk", "junk"), (1, 150.0, "junk", "junk")], "a INT, b DOUBLE, c STRING, d STRING"
        )
        schema = dpc.Schema(treatment=dpc.Treatment(one, undeclared=0), outcome=dpc.Real(other, 100, 200))
        engine = SparkEngine(frame.toDF(one, other, "twice", "twice"), schema)
        assert engine.aggregate({"treatment": 2}, ["outcome", "1"]).tolist() == [[0, 1], [0, 1]]
        for wrong in ((one, other, other, "d"), (one, "c", "d", "e")):
            with pytest.raises(TableError, match="in the table"):
                SparkEngine(frame.toDF(*wrong), schema)
    assert spark.catalog.listTables() == []


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "BINARY", "DATE", "INTERVAL DAY", "STRUCT<a: INT>", "VOID", "VARIANT"])
def test_types_that_cannot_be_read_are_refused_by_type(spark: "SparkSession", kind: str) -> None:
    with pytest.raises(TableError, match="column 'y'"):
        SparkEngine(spark.sql(f"SELECT 0 AS t, CAST(NULL AS {kind}) AS y"), SMALL)
