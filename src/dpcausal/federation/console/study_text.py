"""The text of a study, line by line, and what changed since its earlier version."""

import difflib
from dataclasses import dataclass
from typing import Literal

from dpcausal.utils.plain_text import lines_in, visible


@dataclass(frozen=True)
class TextLine:
    """One line of a text.

    Attributes:
        text: The line; characters that would not be seen are spelled out.
    """

    text: str
    kind: Literal["", "comment", "added", "removed", "place"] = ""


def lines_of(text: str) -> tuple[TextLine, ...]:
    """Return the lines of a study's text, with comments marked."""
    return tuple(TextLine(visible(line), "comment" if line.lstrip().startswith("#") else "") for line in lines_in(text))


def changes(earlier: str, text: str) -> tuple[TextLine, ...]:
    """Return what changed between two versions of a text; empty where nothing did."""
    kinds: dict[str, Literal["", "added", "removed", "place"]] = {"+": "added", "-": "removed", "@": "place"}
    compared = difflib.unified_diff(lines_in(earlier), lines_in(text), lineterm="", n=2)
    return tuple(TextLine(visible(line), kinds.get(line[:1], "")) for line in list(compared)[2:])
