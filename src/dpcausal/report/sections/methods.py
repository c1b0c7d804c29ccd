"""A paragraph on the methods, to paste into a manuscript."""

from collections.abc import Iterator
from importlib.metadata import version

from dpcausal.page.numbers import short
from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.verdict import BALANCE
from dpcausal.utils.text import capitalised


def methods(report: ReportInputs) -> Section:
    """Return the methods paragraph."""
    texts = (
        _estimate(report),
        *_adjustment(report),
        *_pooling(report),
        *_privacy(report),
        *_interval(report),
        *_bounds(report),
        *_thresholds(report),
        f"The analysis used dpcausal {version('dpcausal')}.",
    )
    return Section("methods", "Methods paragraph, to paste", paragraphs=(" ".join(texts),))


def _estimate(report: ReportInputs) -> str:
    effect, study = report.effect, report.study
    compared = f"the effect of {effect.arms[1]} compared with {effect.arms[0]} on {effect.outcome}"
    how = f"(estimand: {effect.estimand}; method: {effect.method})."
    if study is None:
        return f"We estimated {compared} among {report.units} units {how}"
    if study.design == "trial":
        return f"In this randomised trial with {report.units} units we estimated {compared} {how}"
    return f"In this observational study of {report.units} units we estimated {compared} {how}"


def _adjustment(report: ReportInputs) -> Iterator[str]:
    """Yield what an observational study adjusted for, what it may not have, and whether balance was checked."""
    study, unsure = report.study, report.effect.unadjusted
    if study is None or study.design != "observational":
        return
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


def _pooling(report: ReportInputs) -> Iterator[str]:
    if report.effect.sites:
        answered = sum(each.n is not None for each in report.effect.sites)
        yield f"Effects of {answered} sites were pooled; each site added noise before anything left it."


def _privacy(report: ReportInputs) -> Iterator[str]:
    guarantee = report.effect.guarantee
    delta = f" and delta {short(guarantee.delta)}" if guarantee.delta else ""
    yield (
        f"Results are differentially private with epsilon {short(guarantee.epsilon)}{delta}; "
        f"neighbouring tables: {guarantee.neighbours}."
    )
    if report.diagnoses:
        yield f"Together with private diagnostics, epsilon is {short(report.price.epsilon)}."


def _interval(report: ReportInputs) -> Iterator[str]:
    if report.interval is None:
        yield "Exact discrete noise was added to bounded sums; there is no valid confidence interval."
        return
    yield (
        "Exact discrete noise was added to bounded sums; the 95 % confidence interval accounts for sampling "
        "error and noise."
    )
    if left_in := report.effect.left_in:
        yield f"It allows for confounding of up to {report.scale.size(left_in)} that may be left in."


def _bounds(report: ReportInputs) -> Iterator[str]:
    if report.study is not None and (source := report.study.bounds.get("source")):
        yield f"Bounds of the variables come from {source}."


def _thresholds(report: ReportInputs) -> list[str]:
    texts = []
    if report.smallest_worthwhile_effect:
        size = report.scale.given(report.smallest_worthwhile_effect)
        texts.append(f"The smallest worthwhile effect was taken to be {size}.")
    if report.confounding is not None and report.confounding.e_value is None:
        texts.append("Sensitivity to unmeasured confounding was assessed by the robustness value.")
    elif report.confounding is not None:
        texts.append("Sensitivity to unmeasured confounding was assessed by the E-value and the robustness value.")
    return texts
