"""Documents that people write or keep in files: the text of one, or the Path of its file."""

import json
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from dpcausal.errors import DocumentError, DpcausalError, StudyError


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


def toml_of(what: str, text: str, error: type[DpcausalError] = StudyError) -> dict[str, Any]:
    """Return what a text in TOML says."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as found:
        raise error(
            problem=f"This text is not {what} in TOML: {found}", hint=_no_file_name(text) or "check the line it names."
        ) from None


def json_of(what: str, made: type[Any], document: str | Path) -> dict[str, Any]:
    """Return what `to_json` wrote of an object of a dataclass, from its text or from the file at a Path."""
    text = text_of(what, document, DocumentError)
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        found = None
    needed = {part.name for part in fields(made) if part.default is MISSING}
    if not isinstance(found, dict) or not needed <= set(found):
        raise DocumentError(
            problem=f"This text is not {what} as to_json() writes it",
            hint=_no_file_name(text) or "give the text that to_json() returned, unchanged, or the Path of its file.",
        )
    return found


def _no_file_name(text: str) -> str:
    """Return a hint where a text looks like the name of a file."""
    named = "\n" not in text and text.endswith((".toml", ".json"))
    return f"for a file write Path({text!r}), not its name as a string." if named else ""
