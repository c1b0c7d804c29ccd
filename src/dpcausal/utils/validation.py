"""Checks of values and documents, and suggestions for misspelled names."""

import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from ipaddress import ip_address
from typing import TypeVar

from dpcausal.errors import SchemaError, StudyError
from dpcausal.utils.other_names import same_argument


def is_number(value: object) -> bool:
    """Return whether a value is a finite number of Python or numpy; True and False are not."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


LONGEST_VERSION = 64


def is_version(text: object) -> bool:
    """Return whether a text may name a version of a data set: one short line without control characters."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_VERSION and text.isprintable() and text == text.strip()


def is_public_key(text: object) -> bool:
    """Return whether this is a public key as `Key.public` writes it."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def is_name(text: object) -> bool:
    """Return whether this can be a site's name: it names files and processes, and NVFlare reserves `server`."""
    named = isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", text) is not None
    return named and text != "server"


Declared = TypeVar("Declared")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the closest of some public names as a question for a hint; empty where none is close.

    Example:
        >>> did_you_mean("DoublyRobust", ["difference_in_means", "doubly_robust"])
        "did you mean 'doubly_robust'? "
    """
    known = {str(each).casefold(): str(each) for each in names}
    near = get_close_matches(str(name).casefold(), known, n=1)
    return f"did you mean {known[near[0]]!r}? " if near else ""


def check_format(what: str, document: Mapping[str, object], version: int, renamed: Mapping[str, str]) -> None:
    """Raise unless a document is in this version of its format, without the names of earlier versions.

    Args:
        version: The version that this release of dpcausal reads.
        renamed: The names of earlier versions, with those that replace them.
    """
    found = document.get("version")
    old = [name for name in renamed if name in document]
    if type(found) is not int or found != version or old:
        written = "no version" if found is None else f"version = {found!r}"[:100]
        changes = ", ".join(f"{name} is now {new}" for name, new in renamed.items())
        changes = f" Renamed: {changes}." if changes else ""
        raise StudyError(
            expected=f"{what} with version = {version}",
            got=", ".join([written, *old]),
            hint=f"bring the file up to date and write version = {version} at its top.{changes}",
        )


def check_keys(what: str, document: object, needed: tuple[str, ...], optional: tuple[str, ...]) -> None:
    """Raise unless a document has every required key and no unknown one."""
    keys = set(document) if isinstance(document, Mapping) else set()
    if not set(needed) <= keys <= {*needed, *optional}:
        strange = sorted(map(str, keys - {*needed, *optional}))
        free = {*needed, *optional} - keys
        same = same_argument(strange[0], {*needed, *optional}) if strange else None
        near = f"here that is {same!r}. " if same else did_you_mean(strange[0], free) if strange else ""
        absent = [name for name in needed if name not in keys]
        parts = ", ".join(dict.fromkeys((*needed, *optional)))
        problem = (
            f"The {what} is not a table of names and values"
            if not isinstance(document, Mapping)
            else f"The {what} has no part named {strange[0]!r}; its parts are {parts}"
            if strange
            else f"The {what} lacks {', '.join(absent)}"
        )
        raise SchemaError(problem=problem, hint=f"{near}correct the names in the document.")


def build(what: str, made: Callable[..., Declared], document: object) -> Declared:
    """Build a declaration from a document that must have its attributes and nothing else."""
    parts = fields(made)  # type: ignore[arg-type]
    needed = tuple(part.name for part in parts if part.default is MISSING and part.default_factory is MISSING)
    check_keys(what, document, needed, tuple(part.name for part in parts if part.name not in needed))
    return made(**document)  # type: ignore[arg-type]
