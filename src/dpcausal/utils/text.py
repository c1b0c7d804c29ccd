"""Numbers and tables as text and as HTML."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, fields
from html import escape
from typing import Any

_WIDTH = 100


def format_number(value: float) -> str:
    """Format a number with four significant digits.

    Example:
        >>> format_number(1794.34), format_number(-0.0123456), format_number(0), format_number(-math.inf)
        ('1,794', '-0.01235', '0', '-∞')
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return f"{value}".replace("inf", "\N{INFINITY}")
    digits = 3 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(digits, 0)}f}" if -9 <= digits <= 9 else f"{value:.3e}"


def text_table(title: str, table: Sequence[tuple[str, str]]) -> str:
    """Format a result as text: a title, and below it labels with their texts."""
    return "\n".join([title, "─" * min(_WIDTH, len(title)), *text_lines(table)])


def text_lines(table: Sequence[tuple[str, str]]) -> list[str]:
    """Format labels with their texts, line by line, without a title."""
    lines = []
    for label, text in table:
        wrapped = textwrap.wrap(text, _WIDTH - 18) or [""]
        lines.append(f"{label:<16}  {wrapped[0]}".rstrip())
        lines.extend(" " * 18 + more for more in wrapped[1:])
    return lines


def short_repr(self: Any) -> str:  # noqa: ANN401 (any dataclass)
    """Return an object of a dataclass as it is written, without what has its default.

    Example:
        >>> from dpcausal import Real
        >>> Real("age", 18, 100, unit="years")
        Real(name='age', low=18.0, high=100.0, unit='years')
    """
    shown = (
        f"{part.name}={getattr(self, part.name)!r}"
        for part in fields(self)
        if part.default is MISSING or part.name in ("low", "high") or getattr(self, part.name) != part.default
    )
    return f"{type(self).__name__}({', '.join(shown)})"


def html_table(title: str, table: Sequence[tuple[str, str]], figure: str = "") -> str:
    """Format a result as an HTML table for a notebook, with a figure, as HTML, below its title."""
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;white-space:nowrap">{escape(label)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for label, text in table
    )
    below = f'<div style="font-weight:normal;padding:.4em 0">{figure}</div>' if figure else ""
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}{below}</caption>'
    return f"<table>{caption}<tbody>{cells}</tbody></table>"


def html_bar(share: float) -> str:
    """Return a share as a bar for a notebook, with its percentage for those who do not see it.

    Example:
        >>> html_bar(0.25)
        '<svg ... role="img" aria-label="25 % spent">...</svg>'
    """
    width = 240 * min(max(share, 0.0), 1.0)
    return (
        f'<svg width="240" height="10" role="img" aria-label="{100 * share:.0f} % spent">'
        '<rect width="240" height="10" rx="3" fill="#8884"/>'
        f'<rect width="{width:.0f}" height="10" rx="3" fill="#00897b"/></svg>'
    )


def table_rows(label: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return texts as lines of a table, the label before the first."""
    return [(label if first == 0 else "", text) for first, text in enumerate(texts)]


def capitalised(text: str) -> str:
    """Return a text as the beginning of a sentence.

    Example:
        >>> capitalised("balance was not checked")
        'Balance was not checked'
    """
    return text[:1].upper() + text[1:]
