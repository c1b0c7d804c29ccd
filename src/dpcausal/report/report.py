"""A report on an effect: everything needed to judge it, as HTML and JSON."""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.errors import StudyError
from dpcausal.ledger import Ledger
from dpcausal.report.confounding import Confounding, sensitivity_to_confounding
from dpcausal.report.consistency import check_diagnoses, check_kinds, check_ledger, check_smallest, check_study
from dpcausal.report.figures import figures_of
from dpcausal.report.html import render_page
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.remedies import interval_remedies, least_sampling_sd
from dpcausal.report.section import Picture, ReportInputs, Section
from dpcausal.report.sections import sections_of
from dpcausal.report.verdict import balance_after, verdict_on
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.study.study import Study
from dpcausal.utils.other_names import OtherNames, called_as

Interval = tuple[float, float]

_EXAMPLE = "Report.of(effect, study, vault.ledger, date=date.today())"


@dataclass(frozen=True, kw_only=True)
class Report(OtherNames, ReportInputs):
    """An effect with everything needed to judge it. It is public, as the effect is, and costs no budget."""

    _instead: ClassVar[Mapping[str, str]] = {
        "save write to_file export": 'write Path("report.html").write_text(report.to_html(), encoding="utf-8").',
        "show display print": "write report alone as the last line of a cell, or report.to_html().",
    }

    def __new__(cls, *given: object, **parts: object) -> Self:
        """Raise where a report is called for in place of `Report.of`, which makes its parts."""
        if given or (parts and len(parts) < len(fields(cls))):
            raise StudyError(
                expected="a report made by Report.of", got="Report(…)", hint=f"write {_EXAMPLE} to make one."
            )
        return super().__new__(cls)

    @classmethod
    @called_as(_EXAMPLE)
    def of(  # noqa: PLR0913 (each is a separate document, named where it is given)
        cls,
        effect: Effect,
        study: Study | None = None,
        ledger: Ledger | None = None,
        *,
        date: dt.date,
        diagnoses: Sequence[BalanceTable | OverlapTable] = (),
        figures: Sequence[Picture] = (),
        smallest_worthwhile_effect: float = 0.0,
    ) -> Self:
        """Make a report on an effect.

        Args:
            study: The study that asked for it. Without it, a report says little about the design.
            ledger: The ledger that paid for it. Without it, a report cannot say what was spent on the data set.
            diagnoses: Results of `Overlap` and `Balance`.
            figures: More figures to show beside them.
            smallest_worthwhile_effect: The minimal important difference, if one was chosen before the first release.

        Raises:
            StudyError: If diagnoses, study or ledger do not belong to the effect, as far as public data shows.

        Example:
            >>> from datetime import date
            >>> from dpcausal import DifferenceInMeans, Real, Schema, Study, Treatment
            >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 10))
            >>> study = Study(
            ...     name="scores", question="Does it help?", schema=schema, estimator=DifferenceInMeans(), epsilon=1
            ... )
            >>> Report.of(study.rehearsed(n=1_000), study, date=date(2026, 1, 31)).verdict.kind
            'rehearsal'
        """
        check_kinds(effect, study, ledger, date)
        check_smallest(smallest_worthwhile_effect, effect, study)
        check_diagnoses(effect, diagnoses)
        if study:
            effect = study.warned(check_study(effect, study))
        receipts = [receipt for each in (effect, *diagnoses) for receipt in each.receipts]
        ledger_summary = LedgerSummary.of(ledger, receipts) if ledger else None
        if ledger_summary:
            check_ledger(effect, len(receipts), ledger_summary)
        interval = _interval(effect)
        verdict = verdict_on(
            effect,
            interval,
            smallest=smallest_worthwhile_effect,
            schema=study.schema if study else None,
            remaining=ledger_summary.remaining.epsilon if ledger_summary else None,
            least_sampling=least_sampling_sd(effect, study) if interval else 0.0,
            identification=study.identification if study else "unknown",
            balance=balance_after(diagnoses, effect, study),
            unused=study.unused_covariates if study else (),
        )
        if study and verdict.kind == "no interval" and not effect.sites:
            verdict = replace(verdict, remedies=interval_remedies(effect, study))
        return cls(
            effect=effect,
            interval=interval,
            date=date,
            study=study,
            ledger_summary=ledger_summary,
            verdict=verdict,
            confounding=_confounding(effect, interval, study),
            planned=_planned(effect, study),
            smallest_worthwhile_effect=smallest_worthwhile_effect,
            diagnoses=tuple(diagnoses),
            figures=tuple(figures),
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections in order. The page and the JSON document hold the same."""
        return sections_of(self)

    def to_html(self) -> str:
        """Return the report as one self-contained page: no script, no other file, no network."""
        figures, missing = figures_of(self)
        return render_page(self, self.sections, figures, missing=missing)

    def to_json(self) -> str:
        """Return the report as JSON: the text of the page, and the numbers behind it."""
        document: dict[str, Any] = {
            "title": self.title,
            "date": self.date.isoformat(),
            "verdict": asdict(self.verdict),
            "interval": self.interval,
            "planned_half_width": self.planned,
            "smallest_worthwhile_effect": self.smallest_worthwhile_effect or None,
            "confounding": asdict(self.confounding) if self.confounding else None,
            "effect": json.loads(self.effect.to_json()),
            "study": self.study.text if self.study else None,
            "ledger_summary": asdict(self.ledger_summary) if self.ledger_summary else None,
            "diagnoses": [{"kind": each.name} | json.loads(each.to_json()) for each in self.diagnoses],
            "figures": [{"title": each.title, "alt": each.alt} for each in self.figures],
            "sections": [asdict(section) for section in self.sections],
        }
        return json.dumps(document, indent=1, allow_nan=False)


def _interval(effect: Effect) -> Interval | None:
    return None if effect.no_interval else effect.interval()


def _confounding(effect: Effect, interval: Interval | None, study: Study | None) -> Confounding | None:
    if study is None or study.design != "observational":
        return None
    binary = isinstance(study.schema.outcome, Binary)
    return sensitivity_to_confounding(effect, interval, len(study.adjusts_for), binary=binary)


def _planned(effect: Effect, study: Study | None) -> float | None:
    """Return the half-width that the study would have expected of one table with as many units."""
    if study is None or effect.sites or effect.rehearsed or effect.n < 2:
        return None
    interval = _interval(study.rehearsed(effect.n))
    return None if interval is None else (interval[1] - interval[0]) / 2
