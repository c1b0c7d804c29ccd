"""Codebooks: types, values and bounds of columns that somebody wrote down, from csv files in common layouts."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpcausal.errors import StudyError
from dpcausal.utils.plain_text import check_plain_text

Line = Mapping[str, str]


@dataclass(frozen=True)
class CodebookColumn:
    """What a codebook says about a column.

    Attributes:
        label: What it means, in words; empty if the codebook does not say.
        kind: `real`, `binary` or `category`; empty if the codebook does not say, and `date` for dates.
        low: The least value, as written; empty if the codebook does not say.
    """

    label: str = ""
    kind: str = ""
    low: str = ""
    high: str = ""
    values: tuple[str, ...] = ()


def read_codebook(file: Path) -> dict[str, CodebookColumn]:
    """Return what a codebook says about each column, by the column's name.

    The layout follows from the header: a data dictionary of REDCap, the field-level file of an OMOP common data model,
    or a csv file with a column `name` and any of `label`, `type`, `low`, `high` and `values`, where values are
    separated by `|`.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            lines = [
                {
                    str(key).strip().casefold(): (cell or "").strip()
                    for key, cell in line.items()
                    if isinstance(cell, str)
                }
                for line in csv.DictReader(opened)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unusable(file, type(error).__name__) from None
    for key, read in _LAYOUTS.items():
        if lines and key in lines[0]:
            found = {name: column for line in lines for name, column in read(line) if name}
            check_plain_text(
                "codebook",
                [text for each in found.values() for text in (each.label, each.low, each.high, *each.values)],
                StudyError,
            )
            return found
    raise _unusable(file, "no such header")


def _unusable(file: Path, got: str) -> StudyError:
    return StudyError(
        problem=f"{file} is not a csv file in UTF-8 whose header has a column name, nor a data dictionary of REDCap or "
        f"OMOP ({got})",
        hint="write the header name,label,type,low,high,values, and one line for each column of the table.",
    )


def _plain(line: Line) -> Iterator[tuple[str, CodebookColumn]]:
    values = tuple(value.strip() for value in line.get("values", "").split("|") if value.strip())
    low, high = line.get("low") or line.get("min", ""), line.get("high") or line.get("max", "")
    kind = _KINDS.get(line.get("type", "").casefold(), "")
    if values:
        kind = "binary" if len(values) == 2 else "category"
    yield (
        line["name"],
        CodebookColumn(line.get("label", ""), kind or ("real" if low or high else ""), low, high, values),
    )


def _redcap(line: Line) -> Iterator[tuple[str, CodebookColumn]]:
    name, field, label = line[_REDCAP], line.get("field type", ""), line.get("field label", "")
    choices = [part.partition(",") for part in line.get(_CHOICES, "").split("|")]
    codes = tuple(code.strip() for code, _, _ in choices if code.strip())
    low, high = line.get("text validation min", ""), line.get("text validation max", "")
    validation = line.get(_VALIDATION, "")
    if field == "checkbox":  # exported as one column of 0 and 1 for each choice
        for code, _, words in choices:
            spelled = re.sub(r"[^a-z0-9_]", "_", code.strip().casefold())
            yield f"{name}___{spelled}", CodebookColumn(f"{label}: {words.strip()}", "binary", values=("0", "1"))
    elif field in {"yesno", "truefalse"}:
        yield name, CodebookColumn(label, "binary", values=("0", "1"))
    elif field in {"radio", "dropdown"}:
        yield name, CodebookColumn(label, "binary" if len(codes) == 2 else "category", values=codes)
    elif field == "slider":
        yield name, CodebookColumn(label, "real", low or "0", high or "100")
    elif validation.startswith("date"):
        yield name, CodebookColumn(label, "date")
    elif field == "calc" or validation.startswith(("integer", "number")):
        yield name, CodebookColumn(label, "real", low, high)
    else:
        yield name, CodebookColumn(label)


def _omop(line: Line) -> Iterator[tuple[str, CodebookColumn]]:
    label = line.get("userguidance", "") or line.get("user guidance", "")
    kind = _KINDS.get(line.get("cdmdatatype", "").partition("(")[0].casefold(), "")
    yield line[_OMOP], CodebookColumn(label.partition(".")[0], kind)


_REDCAP = "variable / field name"
_CHOICES = "choices, calculations, or slider labels"
_VALIDATION = "text validation type or show slider number"
_OMOP = "cdmfieldname"
_LAYOUTS: dict[str, Callable[[Line], Iterator[tuple[str, CodebookColumn]]]] = {
    _REDCAP: _redcap,
    _OMOP: _omop,
    "name": _plain,
}
"""The layouts, each by a column that only its header has."""

_KINDS = {
    **dict.fromkeys(("real", "number", "numeric", "float", "integer", "int", "continuous", "bigint"), "real"),
    **dict.fromkeys(("binary", "boolean", "bool", "yesno"), "binary"),
    **dict.fromkeys(("category", "categorical", "factor", "nominal", "ordinal"), "category"),
    **dict.fromkeys(("date", "datetime", "timestamp"), "date"),
}
"""The words of codebooks for types."""
