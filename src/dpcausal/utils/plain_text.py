"""Text that is safe to print: names, labels and values that people declare reach terminals, pages and log files."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass

from dpcausal.errors import DpcausalError, SchemaError

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What Python counts as printable though nothing is seen: fillers, joiners and variation selectors, which Unicode calls
default ignorable, and the blank of Braille."""

_MOST_CHANGES = 40


def is_plain_text(text: object) -> bool:
    r"""Return whether this is text in which every character is printed as itself; blanks of any kind count as such.

    Control characters (C0, C1 and DEL, on which terminals act), line and paragraph separators, characters that are
    invisible or change the direction of text, and halves of surrogate pairs are not.

    Example:
        >>> is_plain_text("50 mg, täglich"), is_plain_text("drug\x1b[2J")
        (True, False)
    """
    if not isinstance(text, str):
        return False
    printed = text.isprintable() or all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)
    return printed and not _INVISIBLE.search(text)


def check_plain_text(what: str, texts: Iterable[object], error: type[DpcausalError] = SchemaError) -> None:
    """Raise unless every text is plain; `what` says what they are, for the message."""
    for text in texts:
        if not is_plain_text(text):
            raise error(
                problem=f"{what} must be text without control characters, not {ascii(text)[:200]}",
                hint="leave out line breaks, tabs, escape sequences and invisible characters: it is printed as it is.",
            )


def lines_in(text: str) -> list[str]:
    r"""Return the lines of a text as TOML has them: only a line feed, alone or after a carriage return, ends one.

    Example:
        >>> lines_in("a\r\nb\u2028c")
        ['a', 'b\u2028c']
    """
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def visible(line: str) -> str:
    r"""Return a line in which every character can be seen.

    Example:
        >>> visible("a\u202eb")
        'a⟨U+202E⟩b'
    """
    return "".join(each if each == "\t" or is_plain_text(each) else f"⟨U+{ord(each):04X}⟩" for each in line)


def printed_texts(result: object) -> Iterator[object]:
    """Yield every text of a result that is printed: its own, those in its tuples, of its parts."""
    for value in vars(result).values():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str):
                yield each
            elif is_dataclass(each):
                yield from printed_texts(each)


def changed_lines(before: str, after: str) -> tuple[str, ...]:
    r"""Return the lines that differ between two texts, marked - and +, comments included.

    Example:
        >>> changed_lines("a = 1\nb = 2", "a = 1\nb = 3  # more")
        ('- b = 2', '+ b = 3  # more')
    """
    _, _, *found = [*difflib.unified_diff(lines_in(before), lines_in(after), lineterm="", n=0)] or ["", ""]
    lines = [f"{line[0]} {visible(line[1:])}" for line in found if not line.startswith("@@")]
    more = [f"and {len(lines) - _MOST_CHANGES} more lines"] if len(lines) > _MOST_CHANGES else []
    return (*lines[:_MOST_CHANGES], *more)
