"""The sections of a report, their order and their numbers."""

from dataclasses import replace

from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.sections import declared, findings, privacy
from dpcausal.report.sections.guidelines import guidelines


def sections_of(report: ReportInputs) -> tuple[Section, ...]:
    """Return the sections in order, with their numbers. Only here do sections have numbers."""
    sections = [
        findings.summary(report),
        declared.question(report),
        findings.result(report),
        findings.diagnostics(report),
        findings.confounding(report),
        privacy.privacy(report),
        declared.inputs(report),
        privacy.limitations(report),
        privacy.provenance(),
        privacy.audit_trail(report),
    ]
    sections.append(guidelines({section.key: number for number, section in enumerate(sections, start=1)}))
    return tuple(replace(section, number=number) for number, section in enumerate(sections, start=1))
