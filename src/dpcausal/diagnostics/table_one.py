"""Table 1 of a trial: each covariate's mean and standard deviation, or shares, in each arm, with noise bars."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from dpcausal.diagnostics.diagnosis import Reading, reading_of
from dpcausal.text import format_number

Readings = tuple[Reading | None, Reading | None]
"""The control arm's number and the treated arm's; None where noise hides it."""


@dataclass(frozen=True)
class Characteristic:
    """One covariate, or one of its values, in both arms.

    Attributes:
        name: Its name.
        kind: `mean` for a number, `share` for one of several values.
        means: The mean, or the share of units, in each arm.
        sds: The standard deviation in each arm; None of a share.
    """

    name: str
    kind: Literal["mean", "share"]
    means: Readings
    sds: Readings = (None, None)

    def text(self, arm: int) -> str:
        """Return one arm's numbers."""
        mean, sd = self.means[arm], self.sds[arm]
        if self.kind == "share":
            return _HIDDEN if mean is None else f"{100 * mean.value:.1f} % ± {100 * mean.bar:.1f}"
        return f"{_text(mean)} (SD {_text(sd)})"

    def bars(self, arm: int) -> str:
        """Return one arm's bars alone, for a rehearsal."""
        mean, sd = self.means[arm], self.sds[arm]
        if self.kind == "share":
            return _HIDDEN if mean is None else f"± {100 * mean.bar:.1f} %"
        return f"{_bar(mean)} (SD {_bar(sd)})"


def characteristic_of(document: dict[str, Any]) -> Characteristic:
    """Read a characteristic from JSON."""
    means, sds = (tuple(map(reading_of, document[part])) for part in ("means", "sds"))
    return Characteristic(document["name"], document["kind"], means, sds)  # type: ignore[arg-type]


@dataclass(frozen=True)
class TableOne:
    """Baseline characteristics by arm. Public: it reveals no single unit.

    Bars are for privacy noise alone, at 95 %: the table is about the units in the trial, as a Table 1 is.

    Attributes:
        arms: The two arms, control first.
        sizes: The number of units in each arm; bars are 0 where arms are public.
        characteristics: The covariates.
        rehearsed: Whether this came from a rehearsal: bars are expectations, numbers are placeholders.
    """

    arms: tuple[str, str]
    sizes: Readings
    characteristics: tuple[Characteristic, ...]
    rehearsed: bool = False

    @property
    def lines(self) -> tuple[tuple[str, str, str], ...]:
        """The table as texts: the characteristic, the control arm and the treated arm."""
        if self.rehearsed:
            expected = ((each.name, each.bars(0), each.bars(1)) for each in self.characteristics)
            return ("units", _bar(self.sizes[0]), _bar(self.sizes[1])), *expected
        texts = ((each.name, each.text(0), each.text(1)) for each in self.characteristics)
        return ("units", _size(self.sizes[0]), _size(self.sizes[1])), *texts

    @property
    def statistics(self) -> Iterator[tuple[str, str, str, Reading | None]]:
        """Every number: its characteristic, its arm, what it is, and the number."""
        for place, arm in enumerate(self.arms):
            yield "units", arm, "number", self.sizes[place]
            for each in self.characteristics:
                yield each.name, arm, each.kind, each.means[place]
                if each.kind == "mean":
                    yield each.name, arm, "sd", each.sds[place]

    @property
    def title(self) -> str:
        """The caption."""
        title = "Table 1: characteristics by arm, with 95 % noise bars"
        return f"Rehearsal (no data read, nothing spent): {title}" if self.rehearsed else title

    def __str__(self) -> str:
        table = (("", *self.arms), *self.lines)
        widths = [max(len(line[place]) for line in table) for place in range(3)]
        lines = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in table)
        return "\n".join([self.title, "─" * len(self.title), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        """Return the same table as HTML for a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in ("", *self.arms))
        cells = [(escape(name), "".join(f"<td>{escape(text)}</td>" for text in texts)) for name, *texts in self.lines]
        body = "".join(f'<tr><th style="text-align:left">{name}</th>{texts}</tr>' for name, texts in cells)
        caption = f'<caption style="text-align:left;font-weight:bold">{escape(self.title)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HIDDEN = "hidden by noise"


def _size(size: Reading | None) -> str:
    if size is None:
        return _HIDDEN
    return f"{size.value:,.0f} {_bar(size)}" if size.bar else f"{size.value:,.0f}"


def _text(reading: Reading | None) -> str:
    return _HIDDEN if reading is None else f"{format_number(reading.value)} {_bar(reading)}"


def _bar(reading: Reading | None) -> str:
    return _HIDDEN if reading is None else f"± {reading.bar:.2g}"
