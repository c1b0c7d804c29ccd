"""The first line of a .csv file: names of columns, or a record of somebody where the file has no header.

What stands there is never shown. A declared name that is found there is known already; any other may be a value.
"""

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

from dpcausal.cells import folded
from dpcausal.errors import TableError

_OTHER_SIGNS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_LONGEST = 200
_NUMBER = rb"[^0-9a-z]*[0-9]+(?:[., '_:/-][0-9]+)*[^0-9a-z]*[a-z%]{0,3}"
_DATE = rb"[0-9]{1,4}[-./ ](?:[0-9]{1,2}|[a-z]{3,9})[-./ ,]+[0-9]{1,4}(?:[t ].*)?"
_WORD = rb"true|false|yes|n/?a|n\.a\.|nan|null|none|unknown|male|female"
_VALUE = re.compile(rb"%b|%b|%b|[^@ ]+@[^@ ]+" % (_NUMBER, _DATE, _WORD))
"""What is hardly a column's name: a number, perhaps with a unit, a date or a time, a word for a value, an address."""


def header_of(file: str) -> list[str]:
    """Return the cells of the first line; none where they cannot be told apart."""
    with (gzip.open if file.endswith(".gz") else open)(
        file, "rt", encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        try:
            names = next(csv.reader(lines), [])
        except csv.Error:
            names = [""]  # too long to be names
    between = next((word for sign, word in _OTHER_SIGNS.items() if len(names) == 1 and sign in names[0]), "")
    if between or not names:
        raise TableError(
            expected=f"names of columns, with commas between them, in the first line of {Path(file).name!r}",
            got=f"one name with {between} in it" if between else "nothing there",
            hint=f"this file seems to be separated by {between}; save it with commas."
            if between
            else "check that this is the file you meant: it is empty, or begins with an empty line.",
        )
    return names


def check_names(file: str, names: Sequence[str]) -> None:
    """Raise where the cells of a first line look like values, or are not the names of different columns.

    The first cell may be empty: so R and pandas write the column of a frame's own index. A record of words alone cannot
    be told from names.
    """
    cells = [folded(name) for name in names]
    found = [
        ("cells that look like values", any(_VALUE.fullmatch(cell) or len(cell) > _LONGEST for cell in cells)),
        ("cells without a name", b"" in cells[1:] or not any(cells)),
        ("names that stand twice", len(set(cells)) != len(cells)),
    ]
    mistakes = [words for words, holds in found if holds]
    if mistakes:
        raise TableError(
            expected=f"the names of different columns in the first line of {Path(file).name!r}",
            got=f"{' and '.join(mistakes)}, which are not shown because they may be somebody's record",
            hint="the first line of a .csv file holds the names: add one, with a name of its own for each column.",
        )
