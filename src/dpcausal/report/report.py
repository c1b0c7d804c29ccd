"""An effect with all that is needed to judge it, for people and for registers."""

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from dpcausal.columns import Binary
from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.effect import Effect
from dpcausal.ledger import Ledger
from dpcausal.report.confounding import Confounding, sensitivity_to_confounding
from dpcausal.report.consistency import check_diagnoses, check_ledger, check_study
from dpcausal.report.figures.gallery import figures_of
from dpcausal.report.html import page
from dpcausal.report.inputs import ReportInputs, interval_of
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.registry import registry_record
from dpcausal.report.section import Picture, Section
from dpcausal.report.sections import declared, findings, privacy
from dpcausal.report.sections.guidelines import guidelines
from dpcausal.report.verdict import verdict_on
from dpcausal.report.yaml import to_yaml
from dpcausal.study import Study


@dataclass(frozen=True, kw_only=True)
class Report(ReportInputs):
    """An effect with all that is needed to judge it. Public, as the effect is; making one costs no budget."""

    @classmethod
    def of(  # noqa: PLR0913
        cls,
        effect: Effect,
        study: Study | None = None,
        ledger: Ledger | None = None,
        *,
        date: datetime.date,
        diagnoses: Sequence[BalanceTable | OverlapTable] = (),
        figures: Sequence[Picture] = (),
        smallest_worthwhile_effect: float = 0.0,
    ) -> Self:
        """A report on an effect.

        Args:
            effect: The effect.
            study: The study that asked for it, without which a report says little about its design.
            ledger: The ledger that paid for it, without which a report cannot tell what was spent in all.
            date: The date of the report.
            diagnoses: What private checks found: results of `Overlap` and `Balance`.
            figures: More figures to show beside them.
            smallest_worthwhile_effect: The smallest effect that would be worthwhile, if one was chosen before anything was released.

        Raises:
            StudyError: If diagnoses, study or ledger are not those of the effect, as far as public things tell.

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
        check_diagnoses(effect, diagnoses)
        if study:
            check_study(effect, study)
            effect = study.warned(effect)
        receipts = [receipt for each in (effect, *diagnoses) for receipt in each.receipts]
        spent = LedgerSummary.of(ledger, receipts) if ledger else None
        if spent:
            check_ledger(effect, len(receipts), spent)
        observed = study is not None and study.design == "observational"
        return cls(
            effect=effect,
            date=date,
            study=study,
            ledger_summary=spent,
            verdict=verdict_on(
                effect,
                smallest=smallest_worthwhile_effect,
                schema=study.schema if study else None,
                left=spent.left.epsilon if spent else None,
            ),
            confounding=_confounding(effect, study) if study and observed else None,
            planned=_planned(effect, study),
            smallest_worthwhile_effect=smallest_worthwhile_effect,
            diagnoses=tuple(diagnoses),
            figures=tuple(figures),
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """What the report says, in order: the page and the JSON document hold the same."""
        sections = (
            findings.summary(self),
            declared.question(self),
            findings.result(self),
            findings.diagnostics(self),
            findings.confounding(self),
            privacy.privacy(self),
            declared.inputs(self),
            privacy.limitations(self),
            privacy.provenance(),
            privacy.record(self),
        )
        numbers = {section.key: place for place, section in enumerate(sections, start=1)}
        return (*sections, guidelines(numbers))

    def to_html(self) -> str:
        """The report as one page that needs nothing else: no script, no other file, no network."""
        subtitle = f"{self.study.name}. {self.date.isoformat()}" if self.study else self.date.isoformat()
        return page(self.title, subtitle, self.sections, figures_of(self))

    def to_json(self) -> str:
        """The report as JSON: what the page says, and the numbers behind it."""
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

    def to_registry(self) -> str:
        """The report as a record for a register of deployments of differential privacy, in YAML; a draft."""
        return to_yaml(registry_record(self))


def _confounding(effect: Effect, study: Study) -> Confounding | None:
    return sensitivity_to_confounding(effect, len(study.adjusts_for), binary=isinstance(study.schema.outcome, Binary))


def _planned(effect: Effect, study: Study | None) -> float | None:
    """What the study would have expected of one table with as many units."""
    if study is None or effect.sites or effect.rehearsed or effect.n < 2:
        return None
    interval = interval_of(study.rehearsed(effect.n))
    return None if interval is None else (interval[1] - interval[0]) / 2
