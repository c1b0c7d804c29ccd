"""How cells of text are read: the rules that a person may declare. Cells themselves are read in `vault`.

Each rule looks at one cell and at nothing else, so that declaring it costs no privacy.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

from dpcausal.errors import SchemaError
from dpcausal.utils.plain_text import check_plain_text

Value = str | int | float | bool
"""A value that a person can declare and a table can hold."""

Aliases = Mapping[Value, Sequence[str]] | tuple[tuple[Value, tuple[str, ...]], ...]
"""Other spellings of declared values: given as a mapping, held as pairs."""

BLANKS = tuple(sign.encode() for sign in "\t\n\v\f\r\u00a0\u2007\u2009\u202f\ufeff")
"""What counts as a space: tabs, ends of lines, and the spaces that spreadsheets put into numbers."""

DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'", "\u2019")
ISO = "%Y-%m-%d"
_WORDS = {0: ("false", "no", "f", "n"), 1: ("true", "yes", "t", "y")}
"""Texts that are read as 0 and 1 in a column of these two."""


def spaced(text: str) -> bytes:
    """Return a text as bytes, with one kind of blank."""
    data = text.encode("utf-8", "surrogatepass")
    for blank in BLANKS:
        data = data.replace(blank, b" ")
    return data


def folded(text: str) -> bytes:
    r"""Return a text as bytes, with small letters for A to Z, one kind of blank, and none around it.

    Example:
        >>> folded("\u00a0Yes\t")
        b'yes'
    """
    return spaced(text).lower().strip(b" ")


@cache
def _cases(text: str) -> frozenset[bytes]:
    """Return a text, folded, in capitals and in small letters: what folding leaves apart beyond A to Z."""
    return frozenset(map(folded, (text, text.lower(), text.upper(), text.title(), text.capitalize())))


def _exact(text: str) -> frozenset[bytes]:
    return frozenset([text.encode("utf-8", "surrogatepass")])


def checked_aliases(name: str, values: Sequence[Value], aliases: object) -> tuple[tuple[Value, tuple[str, ...]], ...]:
    """Return other spellings of declared values, value by value.

    Args:
        aliases: A mapping from values to lists of texts. A value that is a number may be written as text, as in TOML.
    """
    wrong = SchemaError(
        expected=f"aliases of column {name!r} as lists of texts by declared value",
        got=repr(aliases),
        hint='write for instance aliases={"yes": ["y", "ja"]}; each key must be one of the values.',
    )
    pairs = aliases.items() if isinstance(aliases, Mapping) else aliases
    found: dict[Value, tuple[str, ...]] = {}
    try:
        for key, texts in pairs:  # type: ignore[attr-defined]
            value = next(value for value in values if _names(key, value))
            if isinstance(texts, str) or not all(isinstance(text, str) and "\0" not in text for text in texts):
                raise wrong
            check_plain_text(f"aliases of column {name!r}", texts)
            found[value] = tuple(texts)
    except (StopIteration, TypeError, ValueError):
        raise wrong from None
    for text in (text for value, texts in found.items() if not isinstance(value, str) for text in texts):
        if _is_number(text):
            raise SchemaError(
                expected=f"aliases of column {name!r} that are not numbers, as its values are numbers",
                got=repr(text),
                hint="a number is read as itself in a column of any type: declare it as a value.",
            )
    return tuple((value, found[value]) for value in values if value in found)


def _names(key: object, value: Value) -> bool:
    if isinstance(key, str) and not isinstance(value, str):
        return folded(key) == folded(str(value))
    return isinstance(key, str) == isinstance(value, str) and key == value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def spellings(
    name: str,
    values: Sequence[Value],
    aliases: Aliases,
    *,
    strict: bool,
    words: bool = False,
) -> tuple[tuple[bytes, ...], ...]:
    """Return the texts that are read as each value, folded unless `strict`; of a number only those that are no number.

    Args:
        strict: Whether texts that differ in capitals or blanks are different values.
        words: Whether yes and no, true and false stand for 1 and 0.
    """
    others: dict[Value, Sequence[str]] = dict(aliases)
    owners: dict[bytes, Value] = {}
    listed = []
    for value in values:
        texts = [*([value] if isinstance(value, str) else []), *others.get(value, ())]
        texts += _WORDS[int(value)] if words and not strict and set(values) == {0, 1} else ()
        ways = [(_exact if strict else _cases)(text) for text in texts]
        for way in sorted(frozenset().union(*ways)):
            if owners.setdefault(way, value) != value:
                raise SchemaError(
                    problem=f"Values and aliases of the column {name!r} differ only in capitals and blanks: "
                    f"{way.decode('utf-8', 'replace')!r} stands for both {owners[way]!r} and {value!r}",
                    hint="set strict=True if capitals and blanks tell them apart, or remove one.",
                )
        listed.append(tuple(sorted(way for way, owner in owners.items() if owner == value)))
    return tuple(listed)


def check_number_format(name: str, decimal: object, thousands: object, strip: Sequence[str]) -> None:
    """Raise unless the signs of a number's text are distinct."""
    if decimal not in DECIMALS or thousands not in (None, *THOUSANDS) or decimal == thousands:
        raise SchemaError(
            expected=f'for column {name!r} a decimal sign "." or ",", and another sign, or none, between thousands',
            got=f"decimal={decimal!r}, thousands={thousands!r}",
            hint='for 1.234,5 write decimal="," and thousands="."; for 1,234.5 write thousands=",".',
        )
    for text in strip:
        if not folded(text) or "\0" in text or re.match(rb"[-+.,'0-9]|inf|nan", folded(text)):
            raise SchemaError(
                expected=f"texts to strip from column {name!r} that begin with no digit or sign of a number",
                got=repr(text),
                hint='write units as they stand beside the number: strip=["mg", "€"].',
            )


def checked_day(name: str, since: object) -> str:
    """Return a declared day as text, year first."""
    try:
        day = since if isinstance(since, date) else date.fromisoformat(since)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SchemaError(
            expected=f"a day to count from in column {name!r}",
            got=repr(since),
            hint='write it year first: since="2020-01-31".',
        ) from None
    return day.isoformat()[:10]


def checked_formats(name: str, formats: object) -> tuple[str, ...]:
    """Return declared formats of dates, of which at most one can read a text."""
    listed = (formats,) if isinstance(formats, str) else tuple(formats) if isinstance(formats, list | tuple) else ()
    shapes = [_shape(each) for each in listed]
    if not listed or None in shapes or len(set(shapes)) != len(shapes):
        raise SchemaError(
            expected=f"formats of dates for column {name!r}, each with %Y, %m and %d once, that cannot be mixed up",
            got=repr(formats),
            hint='write for instance date_format="%d.%m.%Y"; of %d/%m/%Y and %m/%d/%Y choose one.',
        )
    return listed


def _shape(form: object) -> str | None:
    """Return a format with digits for its parts, the same for formats that read the same texts; None if it is none."""
    if not isinstance(form, str) or sorted(re.findall("%.?", form)) != ["%Y", "%d", "%m"]:
        return None
    between = re.split("%[Ymd]", form)[1:3]
    parts = {"%Y": "0000", "%m": "00" if "" in between else "0", "%d": "00" if "" in between else "0"}
    literal = re.sub("%[Ymd]", "", form)
    if not re.fullmatch(r"[-./ ,]*", literal):
        return None
    return re.sub("%[Ymd]", lambda found: parts[found[0]], form)
