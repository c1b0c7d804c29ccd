"""What a report is made of."""

import datetime
from dataclasses import dataclass

from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.effect import Effect
from dpcausal.report.confounding import Confounding
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.section import Picture
from dpcausal.report.verdict import Verdict
from dpcausal.study import Study


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """What a report is made of: each of its sections reads from these.

    Attributes:
        effect: What was found.
        date: The date of the report.
        study: What was planned.
        ledger_summary: What was spent on the data set, ever.
        verdict: What may be concluded.
        confounding: How strong a confounder would have to be; None for a trial, or where it cannot be told.
        planned: The half width of the interval that was to be expected from public inputs.
        smallest_worthwhile_effect: The smallest effect that would be worthwhile; 0 where nobody said.
        diagnoses: What private checks found.
        figures: More figures to show.
    """

    effect: Effect
    date: datetime.date
    study: Study | None
    ledger_summary: LedgerSummary | None
    verdict: Verdict
    confounding: Confounding | None
    planned: float | None
    smallest_worthwhile_effect: float
    diagnoses: tuple[BalanceTable | OverlapTable, ...]
    figures: tuple[Picture, ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The effect's 95 % interval, where it has one."""
        return interval_of(self.effect)

    @property
    def title(self) -> str:
        """What the report is about."""
        effect = self.effect
        about = f"Effect of {effect.arms[1]} against {effect.arms[0]} on {effect.outcome}"
        return f"Rehearsal: {about}" if effect.rehearsed else about


def interval_of(effect: Effect) -> tuple[float, float] | None:
    """An effect's 95 % interval, where it has one."""
    return None if effect.no_interval else effect.interval()
