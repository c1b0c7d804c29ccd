"""Documents that people write or keep in files: the text of one, or the Path of its file."""

import json
import re
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dpcausal.errors import DocumentError, DpcausalError, StudyError

_SLIPS = (
    (
        "[\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019]",
        "line",
        'write straight quotation marks, as in name = "trial"; a word processor makes them curly.',
    ),
    (
        r"[^\x00-\x7f]",
        "line",
        'what has letters beyond A to Z needs quotation marks, also as a name: "männlich" = ["m"].',
    ),
    (r"\s", "name", 'a name with a blank needs quotation marks, as in "blood pressure" = "mmHg".'),
    (r"^-?\d+,\d+$", "value", "in a number, write a point before the decimals, as in 1.5."),
    (r"^-?[\d.]+\s*%$", "value", "write a share as a number, as in 0.5 for 50 %."),
    (r"^[A-Za-z]", "value", 'write texts between quotation marks, as in name = "trial"; true and false without.'),
)
"""What people write who are new to TOML, in which part of a line, with what to do. Texts in quotation marks are left
out of the line first."""


def text_of(what: str, document: str | Path, error: type[DpcausalError] = StudyError) -> str:
    """Return a document's text: itself, or what is in the file at a Path. A name of a file alone is not opened."""
    if isinstance(document, Path):
        try:
            return document.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as found:
            raise error(
                problem=f"{document} cannot be read as {what} ({type(found).__name__})",
                hint="check its name and the working folder.",
            ) from None
    if not isinstance(document, str):
        raise error(
            problem=f"A {type(document).__name__} cannot be read as {what}",
            hint="give the text of the file, or its Path.",
        )
    return document


def write_text(file: Path, text: str) -> None:
    """Write a text to a file, in UTF-8; raise with what to do where that is impossible, as in a folder not there."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as found:
        raise StudyError(
            problem=f"{file} cannot be written ({type(found).__name__})",
            hint="check that its folder exists and may be written to, and that no other program has the file open.",
        ) from None


def toml_of(what: str, text: str, error: type[DpcausalError] = StudyError) -> dict[str, Any]:
    """Return what a text in TOML says."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as found:
        raise error(
            problem=f"This text is not {what} in TOML: {found}",
            hint=_no_file_name(text) or _slip(text, str(found)) or "check the line it names.",
        ) from None


def json_of(what: str, made: type[Any], document: str | Path) -> dict[str, Any]:
    """Return what `to_json` wrote of an object of a dataclass, from its text or from the file at a Path."""
    text = text_of(what, document, DocumentError)
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        found = None
    needed = {part.name for part in fields(made) if part.default is MISSING and part.default_factory is MISSING}
    if not isinstance(found, dict) or not needed <= set(found):
        raise DocumentError(
            problem=f"This text is not {what} as to_json() writes it",
            hint=_no_file_name(text) or "give the text that to_json() returned, unchanged, or the Path of its file.",
        )
    return found


def read_as(kind: Any, value: Any) -> Any:  # noqa: ANN401 (an object of that type)
    """Return a value out of JSON as its type has it: documents as dataclasses, and lists as tuples.

    Example:
        >>> read_as(tuple[float, ...] | None, [0.5, 1.0])
        (0.5, 1.0)
    """
    inner = get_args(kind)
    if value is None or is_dataclass(value):
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        types = _types_of(kind)
        return kind(**{name: read_as(types.get(name), each) for name, each in value.items()})
    if get_origin(kind) is tuple:
        return tuple(map(read_as, repeat(inner[0]) if inner[-1] is Ellipsis else inner, value))
    if get_origin(kind) in (Union, UnionType):
        return read_as(inner[0], value)
    return value


@cache
def _types_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _slip(text: str, message: str) -> str:
    """Return a hint for the usual slips of people who write TOML for the first time; empty if none is seen.

    Example:
        >>> _slip("epsilon = 1,0", "Expected newline or end of document after a statement (at line 1, column 12)")
        'in a number, write a point before the decimals, as in 1.5.'
    """
    place = re.search(r"at line (\d+)", message)
    lines = text.splitlines()
    if place is None or not 0 < int(place[1]) <= len(lines):
        return ""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", '""', lines[int(place[1]) - 1].partition("#")[0])
    key, _, value = bare.partition("=")
    for slip, part, hint in _SLIPS:
        if re.search(slip, {"line": bare, "name": key.strip(" \t[]{"), "value": value.strip()}[part]):
            return hint
    return ""


def _no_file_name(text: str) -> str:
    """Return a hint where a text looks like the name of a file."""
    named = "\n" not in text and text.endswith((".toml", ".json"))
    return f"for a file write Path({text!r}), not its name as a string." if named else ""
