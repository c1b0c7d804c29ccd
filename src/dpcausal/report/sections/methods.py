"""A paragraph on the methods, to paste into a manuscript."""

from collections.abc import Iterator
from importlib.metadata import version

from dpcausal.page.numbers import short
from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.verdict import BALANCE
from dpcausal.study.study import Study
from dpcausal.utils.text import capitalised


def methods(report: ReportInputs) -> Section:
    """Return the methods paragraph."""
    return Section("methods", "Methods paragraph, to paste", paragraphs=(" ".join(_sentences(report)),))


def _sentences(report: ReportInputs) -> Iterator[str]:
    yield _estimate(report)
    if report.study is not None and report.study.design == "observational":
        yield from _adjustment(report, report.study)
    if report.effect.sites:
        answered = sum(each.n is not None for each in report.effect.sites)
        yield f"Effects of {answered} sites were pooled; each site added noise before anything left it."
    yield from _privacy(report)
    if report.interval is None:
        yield "Exact discrete noise was added to bounded sums; there is no valid confidence interval."
    else:
        noise = "Exact discrete noise was added to bounded sums"
        yield f"{noise}; the 95 % confidence interval accounts for sampling error and noise."
    if report.interval is not None and (left_in := report.effect.left_in):
        yield f"It allows for confounding of up to {report.scale.size(left_in)} that may be left in."
    if report.study is not None and (source := report.study.bounds.get("source")):
        yield f"Bounds of the variables come from {source}."
    if report.smallest_worthwhile_effect:
        yield f"The smallest worthwhile effect was taken to be {report.scale.given(report.smallest_worthwhile_effect)}."
    if report.confounding is not None:
        by = "the robustness value" if report.confounding.e_value is None else "the E-value and the robustness value"
        yield f"Sensitivity to unmeasured confounding was assessed by {by}."
    yield f"The analysis used dpcausal {version('dpcausal')}."


def _estimate(report: ReportInputs) -> str:
    effect, study = report.effect, report.study
    compared = f"the effect of {effect.arms[1]} compared with {effect.arms[0]} on {effect.outcome}"
    how = f"(estimand: {effect.estimand}; method: {effect.method})."
    if study is None:
        return f"We estimated {compared} among {report.units} units {how}"
    if study.design == "trial":
        return f"In this randomised trial with {report.units} units we estimated {compared} {how}"
    return f"In this observational study of {report.units} units we estimated {compared} {how}"


def _adjustment(report: ReportInputs, study: Study) -> Iterator[str]:
    """Yield what an observational study adjusted for, what it may not have, and whether balance was checked."""
    unsure = report.effect.unadjusted
    if report.scale.described:
        yield "The appendix has the formula, its sums and its assumptions."
    else:
        yield f"The analysis adjusted for {report.adjusted}."
    if study.adjusts_for and unsure:
        yield f"It may not have adjusted for {', '.join(unsure)}."
    if study.adjusts_for and study.unused_covariates:
        yield f"Covariates that were declared and not used: {', '.join(study.unused_covariates)}."
    if study.identification == "adjusted":
        yield f"{capitalised(BALANCE[report.balance])}."


def _privacy(report: ReportInputs) -> Iterator[str]:
    guarantee = report.effect.guarantee
    delta = f" and delta {short(guarantee.delta)}" if guarantee.delta else ""
    yield (
        f"Results are differentially private with epsilon {short(guarantee.epsilon)}{delta}; "
        f"neighbouring tables: {guarantee.neighbours}."
    )
    if report.diagnoses:
        yield f"Together with private diagnostics, epsilon is {short(report.price.epsilon)}."
