"""Cells on which careless engines fail, each with what is hostile about it."""

import decimal
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpcausal.queries import GRID
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.schema.treatment import TableColumn, listed_values

Cell = tuple[str, Any]
"""What kind of cell it is, and the cell."""

_NUMBERS: tuple[Cell, ...] = (
    ("not a number", math.nan),
    ("infinity", math.inf),
    ("minus infinity", -math.inf),
    ("zero", 0.0),
    ("minus zero", -0.0),
    ("subnormal", 5e-324),
    ("subnormal below zero", -5e-324),
    ("huge", 1e308),
    ("huge below zero", -1e308),
    ("beyond 53 bits", 2.0**53 + 2),
    ("beyond 64 bits", 2.0**64),
    ("a whole number", 7.0),
    ("one", 1.0),
)
_TEXTS = (
    *(
        "",
        " ",
        "x",
        "nan",
        "-NaN",
        "inf",
        "-Infinity",
        "1e400",
        "-1e400",
        "1e-400",
        "1_0",
        "0x1",
        "0x1p3",
        "1d",
        "2.5f",
    ),
    *("\u0661", "½", "'", '"', "\\n", "a\\b", "${x}", "{x}", "%", "é", "e\u0301", "\ufeff1", "1\u2028", "\U0001f3e5"),
    *("1,234", "1,5", "0,125", "1.234,5", "1,234.5", "12 345", "1,23,4", ",5", "5.", ".5", "+27", "- 5", "--5", "+-5"),
    *(
        "250 mg",
        "€ 5",
        "-$5",
        "45 %",
        "45%",
        "7 mg%",
        "2020-02-30",
        "2020-02-29",
        "31.12.2019",
        "2020-01-31 12:30",
        "nan(7)",
    ),
    *("true", "NO", "T", "1.0", " 1 ", "\u00a01", "01", "1e0", "x" * 300),
)
_TYPE_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_TYPE_BITS |= {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}


def hostile_cells(column: TableColumn, kind: pa.DataType, generator: np.random.Generator) -> list[Cell]:
    """Return cells of one type for a declared column; the first two are its bounds, or first and last value."""
    if isinstance(column, Real) and column.since:
        numbers = _days(column)
    elif isinstance(column, Real):
        numbers = [*_around_bounds(column), *_half_ticks(column, generator), *_NUMBERS]
        numbers += [("a code for missing", code) for code in column.missing_codes]
        numbers += _around_knots(column.scale, generator) if column.scale else []
    elif isinstance(column.values[0], str):
        return [*_listed_texts(column), ("missing", None)]
    else:
        numbers = [*_around_values(column), *_NUMBERS]
    if pa.types.is_string(kind):
        written = [(name, _written(column, number)) for name, number in numbers]
        return [*written, *_listed_texts(column), *(("odd text", text) for text in _TEXTS), ("missing", None)]
    return [*_of_type(numbers, kind), ("missing", None)]


def _around_bounds(column: Real) -> list[Cell]:
    low, high, width = column.low, column.high, column.high - column.low
    return [
        ("at the upper bound", high),
        ("at the lower bound", low),
        ("just above the upper bound", math.nextafter(high, math.inf)),
        ("just below the lower bound", math.nextafter(low, -math.inf)),
        ("just within the upper bound", math.nextafter(high, -math.inf)),
        ("just within the lower bound", math.nextafter(low, math.inf)),
        ("beyond the upper bound", high + width),
        ("below the lower bound", low - width),
        ("far beyond the upper bound", high + 1000 * width),
        ("far below the lower bound", low - 1000 * width),
        ("in the middle", low + width / 2),
        ("in the upper half", low + 0.8 * width),
        ("in the lower half", low + 0.3 * width),
    ]


def _around_knots(scale: Scale, generator: np.random.Generator) -> list[Cell]:
    """Return the values of all knots and those next to them, and values between two ticks of each segment."""
    cells: list[Cell] = []
    for value, _ in scale.knots:
        cells.append((f"at the knot {value}", value))
        cells += [(f"just {side} the knot {value}", math.nextafter(value, end)) for side, end in _SIDES]
    for (low, first), (high, last) in itertools.pairwise(scale.knots):
        slope = (last - first) * GRID / (high - low)
        for at in generator.integers(0, max(int((last - first) * GRID), 1), 2).tolist():
            cells.append((f"between two ticks above the knot {low}", low + (at + 0.5) / slope))
    return cells


def _half_ticks(column: Real, generator: np.random.Generator) -> list[Cell]:
    """Return numbers between two ticks, where rounding decides, on both sides of the middle."""
    middle, tick = column.low + (column.high - column.low) / 2, (column.high - column.low) / 2 / GRID
    cells: list[Cell] = []
    for sign in (1, -1):
        for at in (0, 1, *generator.integers(2, GRID, 2).tolist()):
            half = middle + sign * (at + 0.5) * tick
            name = f"half a tick {'above' if sign > 0 else 'below'} the middle's tick {at}"
            cells.append((name, half))
            if at > 1:
                cells += [(f"just {side} {name}", math.nextafter(half, end)) for side, end in _SIDES]
    return cells


_SIDES = (("above", math.inf), ("below", -math.inf))


def _around_values(column: TableColumn) -> list[Cell]:
    values = [float(value) for value in listed_values(column)]
    cells: list[Cell] = [("the last listed value", values[-1]), ("the first listed value", values[0])]
    cells += [(f"the listed value {value}", value) for value in values[1:-1]]
    for value in values:
        cells += [(f"just {side} the listed value {value}", math.nextafter(value, end)) for side, end in _SIDES]
        cells += [
            ("between listed values", value + 0.5),
            ("no listed value", value + 1),
            ("no listed value", value - 1),
        ]
    return cells


def _listed_texts(column: TableColumn) -> list[Cell]:
    """Return spellings of declared values, in capitals and with blanks of all kinds around them."""
    if isinstance(column, Real):
        return []
    cells: list[Cell] = []
    texts = [str(value) for value in column.values]
    cells += [("the last listed value", texts[-1]), ("the first listed value", texts[0])]
    texts += [way.decode() for ways in column.spellings for way in ways]
    for text in dict.fromkeys(texts):
        cells += [
            (f"the text {text!r}", text),
            (f"the text {text!r} in capitals", text.upper()),
            (f"the text {text!r} with a capital", text.title()),
            (f"the text {text!r} between blanks", f" \t{text}\n"),
            (f"the text {text!r} after a blank of spreadsheets", f"\u00a0{text}\u202f"),
            (f"the text {text!r} and more", f"{text}x"),
        ]
    return [
        *cells,
        *(("odd text", text) for text in ("", "x", "0", "\u212a", "\u0131", "A\u030a", "'", "\\", "x" * 300)),
    ]


def _days(column: Real) -> list[Cell]:
    """Return days since 1970-01-01 around the bounds of a column of dates."""
    first = int(np.datetime64(str(column.since), "D").astype(int))
    days = {
        "at the upper bound": column.high,
        "at the lower bound": column.low,
        "beyond the upper bound": column.high + 1,
        "below the lower bound": column.low - 1,
        "in the middle": (column.low + column.high) // 2,
        "in the lower half": column.low + (column.high - column.low) // 3,
    }
    cells: list[Cell] = [(name, first + math.floor(day)) for name, day in days.items()]
    return [*cells, ("the first day of 1970", 0), ("the year 1", -719_162), ("the year 9999", 2_932_896)]


def _written(column: TableColumn, number: float) -> str:
    """Return a number or a day as a column of text would have it."""
    if isinstance(column, Real) and column.since:
        day = np.datetime64(int(number), "D").item()
        text = column.formats[0].replace("%Y", f"{day.year:04}").replace("%m", f"{day.month:02}")
        return text.replace("%d", f"{day.day:02}")
    if not isinstance(column, Real) or not math.isfinite(number):
        return repr(number)
    if column.percent:
        return f"{number * 100:.6f} %"
    text = repr(number)
    return text.replace(".", column.decimal) if column.decimal != "." else text


def _of_type(cells: Sequence[Cell], kind: pa.DataType) -> list[Cell]:
    """Return those of some numbers that a type can hold, rounded to it, and the ends of the type."""
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return [(name, _as_date(day, kind)) for name, day in cells]
    if pa.types.is_floating(kind):
        with np.errstate(over="ignore"):
            return [(name, float(np.float32(value)) if pa.types.is_float32(kind) else value) for name, value in cells]
    finite = [(name, value) for name, value in cells if math.isfinite(value)]
    if pa.types.is_boolean(kind):
        return [("true", True), ("false", False)]
    if pa.types.is_decimal(kind):
        return _decimals(finite, kind)
    bits, signed = _TYPE_BITS[kind], pa.types.is_signed_integer(kind)
    least, most = -(2**bits) if signed else 0, 2**bits - 1
    held = [(name, math.floor(value)) for name, value in finite]
    held += [("the type's greatest number", most), ("the type's least number", least)]
    held += [("beyond 32 bits", 2**32 + 1), ("beyond 31 bits", 2**31)]
    return [(name, value) for name, value in held if least <= value <= most]


def _as_date(day: int, kind: pa.DataType) -> Any:
    return (
        np.datetime64(day, "D").item()
        if pa.types.is_date32(kind)
        else np.datetime64(day, "D").astype("datetime64[us]").item()
    )


def _decimals(cells: Sequence[Cell], kind: pa.Decimal128Type) -> list[Cell]:
    tick, wide = decimal.Decimal(1).scaleb(-kind.scale), decimal.Context(prec=400)
    most = wide.subtract(decimal.Decimal(1).scaleb(kind.precision - kind.scale), tick)
    held = [(name, decimal.Decimal(value).quantize(tick, context=wide)) for name, value in cells]
    held += [("the type's greatest number", most), ("the type's least number", most.copy_negate())]
    return [(name, value) for name, value in held if abs(value) <= most]
