"""The sections of a report, their order and their numbers."""

from dataclasses import replace

from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.sections import declared, findings, privacy
from dpcausal.report.sections.guidelines import guidelines
from dpcausal.report.sections.methods import methods
from dpcausal.report.sections.summary import summary


def sections_of(report: ReportInputs) -> tuple[Section, ...]:
    """Return the sections in order; those of the appendix with their numbers. Only here do sections have numbers."""
    first_page = (summary(report), methods(report))
    appendix = [
        declared.question(report),
        findings.result(report),
        findings.diagnostics(report),
        findings.confounding(report),
        privacy.privacy(report),
        declared.inputs(report),
        privacy.limitations(report),
        privacy.provenance(report),
        privacy.audit_trail(report),
    ]
    numbers = {section.key: 0 for section in first_page}
    numbers |= {section.key: number for number, section in enumerate(appendix, start=1)}
    appendix.append(guidelines(report, numbers))
    return (*first_page, *(replace(section, number=number) for number, section in enumerate(appendix, start=1)))
