"""Hostile tables: some that are listed, and more made by hypothesis, of any type, any cell, any way in.

Tables come in twos that agree in everything public: their size, types, way in and, where units have several records,
whose records these are.
"""

import datetime as dt
import importlib.util
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import pyarrow as pa
from hypothesis import strategies as st

from dpcausal.schema import columns
from dpcausal.schema.schema import PROTECTS, Schema
from dpcausal.testing import standard_schema

nan, inf = math.nan, math.inf
_NUMBERS = [0.0, 1.0, 10.0, 54.0, -0.0, nan, inf, -inf, 1e308, -1e308, 5e-324, 1e16, None]
_TEXTS = [
    "a", "b", "c", "no", "yes", "0", "1", "A", " a", "", "nan", "NaN", "inf", "1e400", "0x1", "1_0", "\u0661", "½",
    "true", "NULL", "'; DROP TABLE t; --", "a\x00b",
    "\uff41", "a\u0301", "\u202eba", "🏥", "\ufeffa", "\n", "x" * 3_000, None,
    "1.234,5", "1,5 years", "€ 5", "5 %", "31.12.2020", "YES\u00a0", "No", "\\xff", "1" + ".234" * 99
]  # fmt: skip
_OBJECTS = [
    1, 0.5, nan, None, "a", "yes", b"\xff", [1], {"a": 1}, True, Decimal("1e40"), 10**50, dt.date(1, 1, 1), object,
    "\ud800"
]  # fmt: skip


def _floats(width: Literal[32, 64]) -> st.SearchStrategy[Any]:
    fits = [each for each in _NUMBERS if each is None or width == 64 or not math.isfinite(each) or abs(each) < 1e30]
    return st.sampled_from(fits) | st.sampled_from([nan, None, 7.0]) | st.floats(width=width)


def _integers(low: int, high: int) -> st.SearchStrategy[Any]:
    return st.sampled_from([0, 1, 10, 54, low, high, None]) | st.integers(low, high)


_TEXT = st.sampled_from(_TEXTS) | st.text(max_size=5)
_DAYS = st.none() | st.dates()
CELLS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): _floats(64),
    pa.float32(): _floats(32),
    pa.int64(): _integers(-(2**63), 2**63 - 1),
    pa.int8(): _integers(-128, 127),
    pa.uint64(): _integers(0, 2**64 - 1),
    pa.bool_(): st.sampled_from([True, False, None]),
    pa.string(): _TEXT,
    pa.large_string(): _TEXT,
    pa.dictionary(pa.int32(), pa.string()): _TEXT,
    pa.decimal128(38, 3): st.none() | st.decimals(-(10**30), 10**30, places=3),
    pa.date32(): _DAYS,
    pa.timestamp("us"): st.none() | st.datetimes(),
    pa.null(): st.none(),
}
"""What may stand in a column of each type."""

_PANDAS: dict[pa.DataType, Any] = {
    pa.float64(): "float64",
    pa.float32(): "float32",
    pa.int64(): "Int64",
    pa.int8(): "Int8",
    pa.uint64(): "UInt64",
    pa.bool_(): "boolean",
    pa.string(): "object",
    pa.large_string(): "str",
    pa.dictionary(pa.int32(), pa.string()): "category",
    pa.decimal128(38, 3): "object",
    pa.date32(): "object",
    pa.timestamp("us"): "datetime64[us]",
    pa.null(): "object",
}
"""What each type is in pandas."""

_USUAL: dict[str, list[pa.DataType]] = {
    "treat": [pa.int64(), pa.float64(), pa.bool_(), pa.int8(), pa.string()],
    "score": [pa.float64(), pa.float32(), pa.int64(), pa.uint64(), pa.string(), pa.decimal128(38, 3)],
    "ward": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "age": [pa.float64(), pa.int64(), pa.int8(), pa.string()],
    "smoker": [pa.string(), pa.dictionary(pa.int32(), pa.string())],
    "when": [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us")],
}


Cells = dict[str, list[Any]]
"""A table's cells by column; `age` may hold cells of any Python type where the way in allows that."""


@dataclass(frozen=True)
class Layout:
    """What is public about a hostile table.

    Attributes:
        way: How it comes in: `arrow`, `file` (parquet), `pandas`, `polars`, or `objects` (pandas, ages of any type).
        who: To whom each record belongs.
        turn: Whose turn it is to ask: every third estimator, from the first, the second or the third on.
    """

    schema: Schema
    kinds: dict[str, pa.DataType]
    way: str
    who: list[int]
    turn: int

    def frame(self, cells: Cells) -> object:
        """Return the table of these cells; for `file` still to be written."""
        arrays = {name: pa.array(cells[name], kind) for name, kind in self.kinds.items() if name in cells}
        table = pa.table(arrays | {"who": self.who})
        if self.way == "polars":
            return nw.from_native(table, eager_only=True).to_polars()
        return table if self.way in ("arrow", "file") else self._pandas(cells)

    def _pandas(self, cells: Cells) -> object:
        """Return a pandas frame whose types do not depend on its cells, as they do when pandas is left to guess."""
        import pandas as pd  # noqa: PLC0415 (looked for first)

        series = {name: pd.Series(cells[name], dtype=_PANDAS[kind]) for name, kind in self.kinds.items()}
        if self.way == "objects":
            series["age"] = pd.Series(cells["objects"], dtype="object")
        return pd.DataFrame(series | {"who": pd.Series(self.who)})


@dataclass(frozen=True)
class Two:
    """Two tables of one layout."""

    layout: Layout
    one: Cells
    other: Cells


UNITS: dict[str, dict[str, Any]] = {
    "lowest": {"treat": 0, "score": 0.0, "ward": "a", "age": 18.0, "smoker": "no"},
    "highest": {"treat": 1, "score": 10.0, "ward": "c", "age": 90.0, "smoker": "yes"},
    "beyond": {"treat": 2, "score": inf, "ward": "d", "age": -inf, "smoker": ""},
    "no number": {"treat": 1, "score": nan, "ward": "nan", "age": nan, "smoker": "nan"},
    "empty": dict.fromkeys(("treat", "score", "ward", "age", "smoker")),
}
"""Units at the ends of every column, and outside of them."""


def listed_neighbours() -> Iterator[Two]:
    """Yield tables of units that are all alike, of which in the other table one is different.

    What is taken from all units, such as a maximum or whether a cell is empty, then differs between the two.
    """
    for way in ("arrow", "file"):
        for unit, other in itertools.pairwise([*UNITS.values(), UNITS["lowest"]]):
            yield Two(_plain(way, 4), _stacked([unit] * 4), _stacked([unit] * 3 + [other]))


def listed_strangers() -> Iterator[Two]:
    """Yield pairs of a table as the schema expects it and one of units that are all alike, so that an arm is empty."""
    for turn, unit in enumerate((UNITS["lowest"], UNITS["lowest"] | {"score": 4.0}, UNITS["empty"])):
        layout = replace(_plain("arrow", 8), turn=turn)
        yield Two(layout, _tame(layout), _stacked([unit] * 8))


def _plain(way: str, n: int) -> Layout:
    """Return a layout of the types that the schema expects."""
    schema = standard_schema()
    return Layout(schema, {column.name: _USUAL[column.name][0] for column in schema.columns}, way, [*range(n)], 0)


def _stacked(units: list[dict[str, Any]]) -> Cells:
    return {name: [unit[name] for unit in units] for name in units[0]}


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Return types that the schema can read, but for one column in some tables."""
    schema = standard_schema(draw(st.sampled_from(PROTECTS)), draw(st.sampled_from([None, 0])))
    schema = _with_rules(schema) if draw(st.booleans()) else schema
    names = [column.name for column in schema.columns]
    if draw(st.integers(0, 3)) == 0:
        added, dates = draw(st.sampled_from([(), ("score",)])), draw(st.sampled_from([None, "%d.%m.%Y"]))
        schema = replace(schema, unit=columns.Unit("who", by="when", sum=added, date_format=dates))
        names.append("when")
    n = draw(st.sampled_from([2, 3, 5, 8]))
    kinds = {name: draw(st.sampled_from(_USUAL[name])) for name in names}
    if draw(st.integers(0, 7)) == 0:
        kinds[draw(st.sampled_from(names))] = draw(st.sampled_from(list(CELLS)))  # which is mostly refused
    ways = ["arrow", "file", "file"]  # engines believe what files say of themselves
    ways += ["polars"] if importlib.util.find_spec("polars") else []
    ways += ["pandas", "objects"] if importlib.util.find_spec("pandas") else []
    who = draw(st.lists(st.integers(0, n), min_size=n, max_size=n))
    return Layout(schema, kinds, draw(st.sampled_from(ways)), who, draw(st.sampled_from([0, 1, 2])))


def _with_rules(schema: Schema) -> Schema:
    """Return a schema that says how cells of text are written, too."""
    rules: dict[type, dict[str, Any]] = {
        columns.Real: {"decimal": ",", "thousands": ".", "strip": ("years", "€"), "missing_codes": (1.0,)},
        columns.Category: {"aliases": {"a": ["1.234,5"]}},
        columns.Binary: {"strict": True},
    }
    return replace(schema, covariates=[replace(column, **rules[type(column)]) for column in schema.covariates])


@st.composite
def strangers(draw: st.DrawFn) -> Two:
    """Return two tables with cells of any sort; the one is sometimes as the schema expects it."""
    layout = draw(layouts())
    return Two(layout, _tame(layout) if draw(st.booleans()) else _hostile(draw, layout), _hostile(draw, layout))


@st.composite
def neighbours(draw: st.DrawFn) -> Two:
    """Return two tables with cells of any sort, alike but for one record, which in the other is often empty."""
    layout = draw(layouts())
    one, fresh = _hostile(draw, layout), _hostile(draw, layout)
    place, empty = draw(st.integers(0, len(layout.who) - 1)), draw(st.booleans())
    record = {name: None if empty else cells[place] for name, cells in fresh.items()}
    other = {name: [*cells[:place], record[name], *cells[place + 1 :]] for name, cells in one.items()}
    return Two(layout, one, other)


def _hostile(draw: st.DrawFn, layout: Layout) -> Cells:
    n = len(layout.who)
    cells = {name: draw(_column(CELLS[kind], n)) for name, kind in layout.kinds.items()}
    return cells | ({"objects": draw(_column(st.sampled_from(_OBJECTS), n))} if layout.way == "objects" else {})


def _column(cell: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[list[Any]]:
    """Return cells of one column: all sorts, or a few sorts only, so that units are duplicates of each other."""

    def of(sorts: list[Any]) -> st.SearchStrategy[list[Any]]:
        return st.lists(st.sampled_from(sorts), min_size=n, max_size=n)

    return st.lists(cell, min_size=n, max_size=n) | st.lists(cell, min_size=1, max_size=3).flatmap(of)


def _tame(layout: Layout) -> Cells:
    """Return cells as the schema expects them, or nothing where the type does not allow that."""
    cells: Cells = {"objects": [50] * len(layout.who)}
    for name, kind in layout.kinds.items():
        usual = {"treat": "01", "ward": "abc", "smoker": ["no", "yes"]}.get(name, "579")
        texts = [usual[place % len(usual)] for place in range(len(layout.who))]
        try:
            cells[name] = pa.array(texts).cast(kind).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            cells[name] = [None] * len(texts)
    return cells
