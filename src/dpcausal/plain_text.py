"""Text that is safe to print: names, labels and values that people declare reach terminals, pages and log files."""

import unicodedata
from collections.abc import Iterable

from dpcausal.errors import DpcausalError, SchemaError


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
    return text.isprintable() or all(each.isprintable() or unicodedata.category(each) == "Zs" for each in text)


def check_plain_text(what: str, texts: Iterable[object], error: type[DpcausalError] = SchemaError) -> None:
    """Raise unless every text is plain; `what` says what they are, for the message."""
    for text in texts:
        if not is_plain_text(text):
            raise error(
                expected=f"{what}: text without control characters",
                got=ascii(text)[:200],
                hint="leave out line breaks, tabs, escape sequences and invisible characters: it is printed as it is.",
            )
