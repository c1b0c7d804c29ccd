"""The first line of a .csv file: names of columns, or a record of somebody where the file has no header.

What stands there is never shown. A declared name that is found there is known already; any other may be a value.
"""

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

from dpcausal.errors import TableError
from dpcausal.schema.cells import folded
from dpcausal.utils.plain_text import is_plain_text

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What may stand between columns, in the order in which it is tried."""

IN_UTF_8 = (
    "A .csv file must be in UTF-8: save it in Excel as 'CSV UTF-8', or convert it with: "
    "iconv -f WINDOWS-1252 -t UTF-8 TABLE.csv > NEW.csv"
)
"""What to do about a file whose letters are bytes of another encoding."""

_LONGEST = 200
_LONGEST_HEADER, _CHUNK = 100_000, 1_000_000
_NUMBER = rb"[^0-9a-z]*[0-9]+(?:[., '_:/-][0-9]+)*[^0-9a-z]*[a-z%]{0,3}"
_DATE = rb"[0-9]{1,4}[-./ ](?:[0-9]{1,2}|[a-z]{3,9})[-./ ,]+[0-9]{1,4}(?:[t ].*)?"
_WORD = rb"true|false|yes|n/?a|n\.a\.|nan|null|none|unknown|male|female"
_VALUE = re.compile(rb"%b|%b|%b|[^@ ]+@[^@ ]+" % (_NUMBER, _DATE, _WORD))
"""What is hardly a column's name: a number, perhaps with a unit, a date or a time, a word for a value, an address."""


def header_of(file: str, separator: str = ",") -> list[str]:
    """Return the cells of the first line, without blanks around them; none where they cannot be separated."""
    with (gzip.open if file.endswith(".gz") else open)(
        file, "rt", encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        try:
            return [name.strip() for name in next(csv.reader(lines, delimiter=separator), [])]
        except csv.Error:
            return []  # too long to be names


def has_bare_returns(file: str) -> bool:
    """Return whether carriage returns alone, outside of quotation marks, end records of a file whose header ends else.

    Some programs write a cell with such a line break without quotation marks: it becomes two records. Only for whoever
    may see the file.
    """
    with (gzip.open if file.endswith(".gz") else open)(file, "rb") as content:
        if re.match(rb'(?:[^"\r\n]|"[^"]*")*\r(?!\n)', content.read(_LONGEST_HEADER)):
            return False
        content.seek(0)
        inside = False
        while chunk := content.read(_CHUNK):
            chunk += content.read(1) if chunk.endswith(b"\r") else b""  # the line feed that may follow
            for place, part in enumerate(chunk.split(b'"')):
                inside = inside if place == 0 else not inside
                if not inside and re.search(rb"\r(?!\n)", part):
                    return True
    return False


def separator_of(file: str, declared: Sequence[str] = ()) -> str:
    """Return the sign between the columns of a file, by its first line alone.

    It is the one that gives most of the declared names, or, where none are declared, that which makes the most cells.
    Only declared names decide for a vault: what else stands in the first line may be a record.
    """
    if declared:  # a comma where several give as many
        return max(SEPARATORS, key=lambda sign: len(set(declared) & set(header_of(file, sign))))
    return max(SEPARATORS, key=lambda sign: len(header_of(file, sign)))  # a comma where several make as many


def header_mistakes(names: Sequence[str]) -> list[str]:
    """Return why the cells of a first line are not the names of different columns. Only for whoever may see the file.

    The first cell may be empty: so R and pandas write the column of a frame's own index. A record of words alone cannot
    be distinguished from names.
    """
    cells = [folded(name) for name in names]
    found = [
        ("cells that look like values", any(_VALUE.fullmatch(cell) or len(cell) > _LONGEST for cell in cells)),
        ("control characters", not all(map(is_plain_text, names))),
        ("letters that are not in UTF-8", any("\ufffd" in name for name in names)),
        ("cells without a name", b"" in cells[1:] or not any(cells)),
        ("names that stand twice", len(set(cells)) != len(cells)),
    ]
    return [words for words, holds in found if holds]


def check_names(file: str, names: Sequence[str]) -> None:
    """Raise where the cells of a first line are not the names of different columns.

    The message is the same whatever is wrong: the first line may be somebody's record, and that would tell of it.
    """
    if header_mistakes(names):
        raise TableError(
            problem=f"The first line of {Path(file).name!r} does not hold the names of different columns; it is not "
            "shown because it may be somebody's record",
            hint="the first line of a .csv file holds the names: add one, with a name of its own for each column. No "
            f"name may stand twice, be empty, or look like a number, a date or another value. {IN_UTF_8}",
        )
