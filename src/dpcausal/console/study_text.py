"""The text of a study, line by line, and what changed since its earlier version."""

import difflib
from dataclasses import dataclass
from typing import Literal

from dpcausal.plain_text import is_plain_text


@dataclass(frozen=True)
class Line:
    """One line of a text.

    Attributes:
        text: The line; characters that would not be seen are spelled out.
        kind: What is particular about it.
    """

    text: str
    kind: Literal["", "comment", "added", "removed", "place"] = ""


def lines_of(text: str) -> tuple[Line, ...]:
    """Return the lines of a study's text, with comments marked."""
    return tuple(Line(visible(line), "comment" if line.lstrip().startswith("#") else "") for line in text.splitlines())


def changes(earlier: str, text: str) -> tuple[Line, ...]:
    """Return what changed between two versions of a text; empty where nothing did."""
    kinds: dict[str, Literal["", "added", "removed", "place"]] = {"+": "added", "-": "removed", "@": "place"}
    compared = difflib.unified_diff(earlier.splitlines(), text.splitlines(), lineterm="", n=2)
    return tuple(Line(visible(line), kinds.get(line[:1], "")) for line in list(compared)[2:])


def visible(line: str) -> str:
    r"""Return a line in which every character can be seen.

    Example:
        >>> visible("a\u202eb")
        'a⟨U+202E⟩b'
    """
    return "".join(each if each == "\t" or is_plain_text(each) else f"⟨U+{ord(each):04X}⟩" for each in line)
