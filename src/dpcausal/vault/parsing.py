"""What a cell of text says, as SQL: numbers, dates and listed values, written as their column declares.

A text that does not read as declared gives NULL. Each pattern is read alike by RE2 and by Java, because it meets folded
text only, which has no letters beyond ASCII or Latin-1, and no text takes long, because nothing is tried twice.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import Treatment
from dpcausal.vault.engines.dialects import Dialect

_TIME = r"(?:[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]++)?+)?+(?: ?+z| ?+[+-][0-9]{2}:?+[0-9]{2})?+)?+"
"""A time of day after a date; it is dropped."""


def number_in_text(column: Real, folded: str, dialect: Dialect) -> str:
    """Return a folded text read as a number, a DOUBLE."""
    if not column.reads_either_comma:
        return _written_number(column, folded, dialect)
    either = f"COALESCE({', '.join(_written_number(each, folded, dialect) for each in either_comma(column))})"
    if column.units or column.percent:
        return either
    # Few texts have a comma, and a pattern takes longer than a cast.
    return f"CASE WHEN contains({folded}, {dialect.quoted(',')}) THEN {either} ELSE {dialect.number(folded)} END"


def either_comma(column: Real) -> tuple[Real, Real]:
    """Return a column with the comma between thousands, and with the comma before decimals, in the order to try them.

    So 1,234 is 1234, 1,5 is 1.5, and a point alone stands before decimals.
    """
    return replace(column, decimal=".", thousands=","), replace(column, decimal=",", thousands=".")


def _written_number(column: Real, folded: str, dialect: Dialect) -> str:
    """Return a folded text read by a pattern. Groups do not begin with 0: 0,125 is never 125."""
    decimal, thousands = (dialect.written(sign.encode()) for sign in (column.decimal, column.grouping))
    point, between = re.escape(decimal), re.escape(thousands)
    whole = rf"[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})++|[0-9]++" if thousands else "[0-9]++"
    exponent = "" if column.percent else "(?:e[+-]?+[0-9]++)?+"
    number = rf"(?:(?:{whole})(?:{point}[0-9]*+)?+|{point}[0-9]++){exponent}|inf(?:inity)?+|nan"
    units = [dialect.written(unit) for unit in column.units]
    before = _any([unit for unit in units if not unit[-1].isdigit()])
    after = rf" *+%{_any(units)}" if column.percent else _any(units)
    pattern = dialect.pattern(rf"^([+-]?+){before} *+([+-]?+(?:{number})){after}\z")
    sign, digits = (f"regexp_extract({folded}, {pattern}, {group})" for group in (1, 2))
    if thousands:
        digits = f"replace({digits}, {dialect.quoted(thousands)}, '')"
    if column.decimal != ".":
        digits = f"replace({digits}, {dialect.quoted(decimal)}, '.')"
    hundredth = ", 'e-2'" if column.percent else ""  # so that 12.3 % is the number nearest to 0.123
    return dialect.number(f"concat({sign}, {digits}{hundredth})")


def _any(units: Sequence[str]) -> str:
    """Return a pattern for one of some units, or none, with blanks before it."""
    return f"(?: *+(?:{'|'.join(map(re.escape, units))}))?+" if units else ""


def days_in_text(column: Real | Unit, folded: str, dialect: Dialect) -> str:
    """Return a folded text read as a date: days since 1970-01-01, a DOUBLE."""
    read = [_days(form, folded, dialect) for form in column.formats]
    return read[0] if len(read) == 1 else f"COALESCE({', '.join(read)})"


def since(column: Real, days: str) -> str:
    """Return days since 1970-01-01 as days since the column's day 0."""
    first = (date.fromisoformat(str(column.since)) - date(1970, 1, 1)).days
    return f"({days} - CAST('{float(first)!r}' AS DOUBLE))"


def _days(form: str, folded: str, dialect: Dialect) -> str:
    parts = re.split("(%[Ymd])", form)
    digits = "{2}" if "" in parts[2:-1:2] else "{1,2}"
    patterns = {"%Y": "([0-9]{4})", "%m": f"([0-9]{digits})", "%d": f"([0-9]{digits})"}
    spelled = "".join(patterns.get(part) or re.escape(part) for part in parts)
    pattern = dialect.pattern(rf"^{spelled}{_TIME}\z")
    places = {part: place for place, part in enumerate((part for part in parts if part in patterns), start=1)}
    year, month, day = (f"regexp_extract({folded}, {pattern}, {places[part]})" for part in ("%Y", "%m", "%d"))
    return dialect.days(f"TRY_CAST(concat({year}, '-', lpad({month}, 2, '0'), '-', lpad({day}, 2, '0')) AS DATE)")


def value_in_text(column: Binary | Category | Treatment, cell: str, dialect: Dialect) -> str:
    """Return a text read as a number, a DOUBLE: the value that it is another spelling of, or the number that it is."""
    words = "".join(
        f" WHEN {dialect.text(cell)} IN ({', '.join(text_literals(column, place, dialect))}) THEN {literal(value)}"
        for place, value in enumerate(column.values)
        if column.spellings[place]
    )
    return f"CASE{words} ELSE {dialect.number(cell)} END" if words else dialect.number(cell)


def text_literals(column: Binary | Category | Treatment, place: int, dialect: Dialect) -> list[str]:
    """Return the spellings of the value at a place of the list, as constants to compare with."""
    spelled = column.spellings[place]
    return [literal(text if column.strict else dialect.written(text).encode()) for text in spelled]


def literal(value: Value | bytes) -> str:
    """Return a number or bytes as a constant that every engine reads alike."""
    return f"unhex('{value.hex()}')" if isinstance(value, bytes) else f"CAST('{float(value)!r}' AS DOUBLE)"
