"""Cells read as the documentation says, in plain Python: what engines are compared with.

Nothing here is shared with the SQL text that engines run. Floating point is that of IEEE 754, as it is there.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa

from dpcausal.queries import GRID
from dpcausal.schema.cells import folded
from dpcausal.schema.columns import Binary, Category, Column, Indicator, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import EveryArm, TableColumn, Treatment, table_column
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import OUTSIDE

Coerced = Sequence[Mapping[str, int]]
"""Units as the integers that they are coerced to."""

_EPOCH = date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((day - _EPOCH).days for day in (date.min, date.max))
_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EVENT_BITS, _TOTAL_BITS = 40, 52


def coerced_units(table: pa.Table, schema: Schema) -> Coerced:
    """Return a table forced into its schema: the integers of each unit, by the names of coerced columns."""
    columns = dict(zip(column_names(schema), (*schema.columns, schema.treatment.every_arm), strict=True))
    cells = {name: _cells(table[table_column(column)]) for name, column in columns.items()}
    unit = schema.unit
    if unit is None:
        return [_record(columns, cells, place, schema.required_columns) for place in range(len(table))]
    who, when = _cells(table[unit.name]), _cells(table[unit.by])
    groups: dict[Any, list[int]] = {}
    for place, key in enumerate(who):  # records without a key are those of one unit
        groups.setdefault(key, []).append(place)
    added = {name: column for name, column in columns.items() if column.name in unit.added}
    single = {name: column for name, column in columns.items() if name not in added}
    units = []
    for places in groups.values():
        totals = {
            name: _total(name, column, [cells[name][place] for place in places], counted=column.name in unit.count)
            for name, column in added.items()
        }
        records = [(when[place], _record(single, cells, place, schema.required_columns)) for place in places]
        units.append(_kept(records, unit) | totals)
    return units


def _record(
    columns: Mapping[str, TableColumn], cells: Mapping[str, Sequence[Any]], place: int, required: Sequence[Column]
) -> dict[str, int]:
    """Return the integers of one record; without a required value it is in no arm."""
    record = {name: _integer(name, column, cells[name][place]) for name, column in columns.items()}
    lacks = any(column in required and _is_missing(column, cells[name][place]) for name, column in columns.items())
    none = {"treatment": OUTSIDE, "arm": len(columns["arm"].values)}  # type: ignore[union-attr]
    return record | none if lacks else record


def _is_missing(column: TableColumn, cell: Any) -> bool:
    """Return whether a cell does not read as declared. Infinity does: it is a number beyond a bound."""
    if not isinstance(column, Real):
        return _place(column, cell) is None
    number = _number(column, cell)
    return number is None or math.isnan(number)


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """Return cells as objects of Python; a date, or a time without zone, as days since 1970-01-01."""
    kind = column.type
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return column.to_pylist()  # type: ignore[no-any-return]
    numbers = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
    a_day = 1 if pa.types.is_date32(kind) else _A_DAY[kind.unit]
    return [None if number is None else min(max(number // a_day, _FIRST_DAY), _LAST_DAY) for number in numbers]


def _integer(name: str, column: TableColumn, cell: Any) -> int:
    """Return what one cell becomes."""
    if isinstance(column, Real):
        return _ticks(column, _number(column, cell))
    if isinstance(column, Indicator):
        code = int(_is_missing(column.of, cell))
    else:
        place = _place(column, cell)
        if isinstance(column, Treatment):
            return _arm(column, place)
        code = list(column.values).index(column.missing_value) if place is None else place
    return 2 * GRID * code - GRID if name == "outcome" else code


def _ticks(column: Real, number: float | None) -> int:
    """Return ticks from the middle of the range: clipped, then rounded to the nearest tick, halves up."""
    if column.scale is not None:
        return _score(column, column.scale, number)
    value = column.missing_value if number is None or math.isnan(number) else number
    within = min(max(value, column.low), column.high)
    middle, to_one = column.low + (column.high - column.low) / 2, 2 * GRID / (column.high - column.low)
    return min(max(math.floor((within - middle) * to_one + 0.5), -GRID), GRID)


def _score(column: Real, scale: Scale, number: float | None) -> int:
    """Return the score in ticks: that of an end beyond it, 0 of a missing value, and linear between two knots."""
    if number is None or math.isnan(number):
        if column.missing is None:
            return 0
        number = float(column.missing)
    ticks = [math.floor(score * GRID + 0.5) for _, score in scale.knots]
    values = [value for value, _ in scale.knots]
    if number <= values[0]:
        return ticks[0]
    above = next((place for place, value in enumerate(values) if number <= value), None)
    if above is None:
        return ticks[-1]
    low, first, last = values[above - 1], ticks[above - 1], ticks[above]
    slope = (last - first) / (values[above] - low)
    return min(max(math.floor((number - low) * slope + (first + 0.5)), first), last)


def _arm(column: Treatment, place: int | None) -> int:
    """Return which of the compared arms it is, or among all declared arms its place."""
    arms = list(column.arms)
    if place is None and column.undeclared is not None:
        place = arms.index(column.undeclared)
    if isinstance(column, EveryArm):
        return len(arms) if place is None else place
    compared = [arms.index(arm) for arm in column.compared]
    return compared.index(place) if place in compared else OUTSIDE


def _place(column: Binary | Category | Treatment, cell: Any) -> int | None:
    """Return the place of a cell among the declared values; None where it is none of them."""
    number: float | None
    if isinstance(cell, str):
        data = cell.encode() if column.strict else folded(cell)
        for place, ways in enumerate(column.spellings):
            if data in ways:
                return place
        number = None if isinstance(column.values[0], str) else _plain_number(data)
    else:
        number = None if cell is None else float(cell)
    declared = [value for value in column.values if not isinstance(value, str)]
    return next((place for place, value in enumerate(declared) if float(value) == number), None)


def _number(column: Real, cell: Any) -> float | None:
    """Return a cell as a number; None where it is absent, a declared code or does not read as declared."""
    number: float | None
    if cell is None:
        return None
    if column.since:
        days = _day_in_text(column.formats, folded(cell)) if isinstance(cell, str) else cell
        return None if days is None else float(days - (date.fromisoformat(str(column.since)) - _EPOCH).days)
    number = _number_in_text(column, folded(cell)) if isinstance(cell, str) else float(cell)
    return None if number in column.missing_codes else number


_BLANK = rb"[ \t\n\x0b\f\r]*"
_PLAIN = re.compile(
    _BLANK
    + rb"\+?(-?(?:inf(?:inity)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)|-?nan(?:\([a-z0-9]*\))?)"
    + _BLANK,
    re.IGNORECASE,
)


def _plain_number(data: bytes) -> float | None:
    """Return a number as programs write it."""
    found = _PLAIN.fullmatch(data)
    if found is None:
        return None
    return math.nan if b"nan" in data.lower() else float(found[1])


def _number_in_text(column: Real, data: bytes) -> float | None:
    """Return a folded text read as a number, with the signs and units that the column declares."""
    if not column.reads_either_comma:
        return _written_number(column, data)
    if not (column.units or column.percent or b"," in data):
        return _plain_number(data)
    for decimal, thousands in ((".", ","), (",", ".")):
        number = _written_number(replace(column, decimal=decimal, thousands=thousands), data)
        if number is not None:
            return number
    return None


def _written_number(column: Real, data: bytes) -> float | None:
    """Return a number with a decimal sign, groups of three digits, units before or after it, and percent signs."""
    point, between = re.escape(column.decimal.encode()), re.escape(column.grouping.encode())
    whole = rb"(?:[1-9][0-9]{0,2}(?:" + between + rb"[0-9]{3})+|[0-9]+)" if between else rb"[0-9]+"
    exponent = b"" if column.percent else rb"(?:e[+-]?[0-9]+)?"
    number = b"(?:(?:" + whole + b"(?:" + point + b"[0-9]*)?|" + point + b"[0-9]+)" + exponent + b"|inf(?:inity)?|nan)"
    before = _any_of([unit for unit in column.units if not unit[-1:].isdigit()])
    after = (rb" *%" if column.percent else b"") + _any_of(column.units)
    found = re.fullmatch(rb"([+-]?)" + before + rb" *([+-]?" + number + b")" + after, data)
    if found is None:
        return None
    digits = found[2].replace(column.grouping.encode(), b"") if between else found[2]
    text = found[1] + digits.replace(column.decimal.encode(), b".")
    return _plain_number(text + (b"e-2" if column.percent else b""))


def _any_of(units: Sequence[bytes]) -> bytes:
    return b"(?: *(?:" + b"|".join(map(re.escape, units)) + b"))?" if units else b""


_TIME = rb"(?:[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: ?z| ?[+-][0-9]{2}:?[0-9]{2})?)?"


def _day_in_text(formats: Sequence[str], data: bytes) -> int | None:
    """Return a folded text read as a date, in days since 1970-01-01; a time of day is dropped."""
    for form in formats:
        parts = re.split("(%[Ymd])", form)
        digits = "{2}" if "" in parts[2:-1:2] else "{1,2}"
        groups = {"%Y": "(?P<y>[0-9]{4})", "%m": f"(?P<m>[0-9]{digits})", "%d": f"(?P<d>[0-9]{digits})"}
        pattern = "".join(groups.get(part) or re.escape(part) for part in parts).encode() + _TIME
        if found := re.fullmatch(pattern, data):
            try:
                return (date(int(found["y"]), int(found["m"]), int(found["d"])) - _EPOCH).days
            except ValueError:
                continue
    return None


def _total(name: str, column: TableColumn, cells: Sequence[Any], *, counted: bool) -> int:
    """Return what the records of one unit come to together."""
    if not isinstance(column, Real):
        code = int(any(_place(column, cell) == 1 for cell in cells))
        return 2 * GRID * code - GRID if name == "outcome" else code
    if counted:
        numbers = [0.0 if cell is None or cell != cell else 1.0 for cell in cells]  # noqa: PLR0124 (NaN)
    else:
        numbers = [number for number in (_number(column, cell) for cell in cells) if number is not None]
    # Each is rounded to a multiple of a power of two, so that no order of records makes a difference.
    size = math.frexp(max(abs(column.low), abs(column.high)))[1]
    to_one, most = 2.0 ** (_EVENT_BITS - size), 2.0 ** (_TOTAL_BITS - _EVENT_BITS + size)
    events = (math.floor(min(max(number, -most), most) * to_one + 0.5) for number in numbers if number == number)  # noqa: PLR0124
    total = min(max(sum(events), -(2**_TOTAL_BITS)), 2**_TOTAL_BITS)
    return _ticks(column, total / to_one)


def _kept(records: list[tuple[Any, dict[str, int]]], unit: Unit) -> dict[str, int]:
    """Return the one record of a unit that counts: the first or last, of equals the one with the least integers."""
    records = sorted(records, key=lambda record: _tie(record[1]))
    orders: tuple[Callable[[Any, Unit], Any], ...] = (_as_it_stands, _as_number)
    for order in orders:
        keyed = [(order(when, unit), (when, record)) for when, record in records]
        present = [each for each in keyed if each[0] is not None]
        present.sort(key=lambda each: each[0], reverse=unit.keep == "last")
        records = [record for _, record in (*present, *(each for each in keyed if each[0] is None))]
    return records[0][1]


def _tie(record: Mapping[str, int]) -> list[int]:
    """Return what decides between records of one time: arms first, the outcome last."""
    covariates = sorted((name for name in record if name.startswith("covariate_")), key=lambda name: (len(name), name))
    return [record[name] for name in ("treatment", "arm", *covariates, "outcome") if name in record]


def _as_it_stands(when: Any, _: Unit) -> Any:
    return when.encode() if isinstance(when, str) else when


def _as_number(when: Any, unit: Unit) -> tuple[bool, float] | None:
    """Return the number or day that a text is; NaN is above all."""
    if not isinstance(when, str):
        return None
    number = _day_in_text(unit.formats, folded(when)) if unit.formats else _plain_number(when.encode())
    return None if number is None else (math.isnan(number), 0.0 if math.isnan(number) else number)
