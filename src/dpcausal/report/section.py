"""What a report is made of, before it is a page: sections of text, items, tables and pictures."""

from dataclasses import dataclass

Fact = tuple[str, str]
"""A label and what stands beside it."""


@dataclass(frozen=True)
class Table:
    """A small table.

    Attributes:
        caption: What it shows.
        head: What each column holds.
        lines: The texts, line by line, as many in each as columns.
    """

    caption: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure, ready to be shown.

    Attributes:
        title: What it shows.
        image: The image itself: a PNG, or an SVG.
        alt: What a person sees in it, in words.
    """

    title: str
    image: bytes
    alt: str

    @property
    def kind(self) -> str:
        """What kind of image it is, as browsers call it."""
        return "image/png" if self.image.startswith(b"\x89PNG") else "image/svg+xml"


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        key: Its short name, by which other parts refer to it.
        title: Its heading.
        paragraphs: Paragraphs.
        items: Labels with their texts.
        tables: Tables.
        notes: What to keep in mind when reading it.
    """

    key: str
    title: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
