"""Text that is safe to print: names, labels and values that people declare reach terminals, pages and log files."""

import unicodedata

from dpcausal.errors import DpcausalError, SchemaError

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text after them, and so can make a line read as another."""


def is_plain_text(text: object) -> bool:
    r"""Return whether this is text without control characters.

    Control characters are those of C0 and C1 with DEL (terminals act on them), line and paragraph separators, changes
    of direction, and halves of surrogate pairs, which cannot be printed at all.

    Example:
        >>> is_plain_text("50 mg, täglich"), is_plain_text("drug\x1b[2J")
        (True, False)
    """
    return isinstance(text, str) and not any(
        each in _DIRECTIONS or unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in text
    )


def check_plain_text(what: str, *texts: object, error: type[DpcausalError] = SchemaError) -> None:
    """Raise unless every text is one without control characters; `what` says what it is, for the message."""
    for text in texts:
        if not is_plain_text(text):
            raise error(
                expected=f"{what} without control characters",
                got=ascii(text)[:200],
                hint="leave out line breaks, tabs, escape sequences and marks of direction: it is printed as it is.",
            )
