"""The parts of a report before it is rendered: its inputs, and sections of text, items, tables and pictures."""

import datetime as dt
from dataclasses import dataclass

from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.page.numbers import number
from dpcausal.price import Price
from dpcausal.report.confounding import Confounding
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.scale import OutcomeScale
from dpcausal.report.verdict import Balance, Verdict, balance_after
from dpcausal.results.effect import Effect
from dpcausal.study.study import Study

Item = tuple[str, str]
"""A label and its text."""


@dataclass(frozen=True)
class Table:
    """A small table."""

    caption: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A rendered figure."""

    title: str
    image: bytes
    alt: str

    @property
    def kind(self) -> str:
        """The media type of the image."""
        return "image/png" if self.image.startswith(b"\x89PNG") else "image/svg+xml"


@dataclass(frozen=True)
class InlineFigure:
    """A figure as a part of the page, in the colours of the page.

    Attributes:
        svg: The figure, with its alt text; all text in it is escaped.
        key: The key below it, as HTML.
    """

    svg: str
    key: str = ""


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        key: Its short name, by which other sections refer to it.
        number: Its number in the appendix; 0 on the first page. `dpcausal.report.sections` assigns it.
    """

    key: str
    title: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """The inputs of a report, from which each section is written.

    Attributes:
        interval: Its 95 % interval, computed once; None where there is none.
        ledger_summary: Everything that was ever spent on the data set.
        confounding: Sensitivity to unmeasured confounding; None for a trial, or where it cannot be computed.
        planned: The half-width that was to be expected from public inputs.
        smallest_worthwhile_effect: The smallest effect that would be worthwhile; 0 if none was given.
    """

    effect: Effect
    interval: tuple[float, float] | None
    date: dt.date
    study: Study | None
    ledger_summary: LedgerSummary | None
    verdict: Verdict
    confounding: Confounding | None
    planned: float | None
    smallest_worthwhile_effect: float
    diagnoses: tuple[BalanceTable | OverlapTable, ...]
    figures: tuple[Picture, ...]

    @property
    def scale(self) -> OutcomeScale:
        """How numbers on the scale of the outcome are written."""
        return OutcomeScale.of(self.effect, self.interval, self.study.schema if self.study else None)

    @property
    def units(self) -> str:
        """The number of units in the comparison, as part of a sentence; noisy where it is private."""
        effect = self.effect
        n = number(effect.n, 0)
        if effect.outside:
            compared = number(effect.n - effect.outside, 0)
            return f"about {compared} (noisy) of {n}" if effect.compared_sd else f"{compared} of {n}"
        if effect.compared is None and self.study and self.study.schema.treatment.outside:
            return f"an unknown number of the {n}"
        return n

    @property
    def balance(self) -> Balance:
        """What private diagnostics show about balance after the adjustment."""
        return balance_after(self.diagnoses, self.effect, self.study)

    @property
    def adjusted(self) -> str:
        """The covariates that the effect is surely adjusted for, as part of a sentence."""
        names = self.study.adjusts_for if self.study else ()
        return ", ".join(name for name in names if name not in self.effect.unadjusted) or "nothing"

    @property
    def price(self) -> Price:
        """The price of the effect and of the diagnostics in this report."""
        return Price.of(each.guarantee for each in (self.effect, *self.diagnoses))

    @property
    def title(self) -> str:
        """The title of the report."""
        effect = self.effect
        rehearsal = "Rehearsal: " if effect.rehearsed else ""
        return f"{rehearsal}Effect of {effect.arms[1]} against {effect.arms[0]} on {effect.outcome}"
