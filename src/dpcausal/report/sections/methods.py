"""A paragraph on the methods, to paste into a manuscript."""

from importlib.metadata import version

from dpcausal.page.numbers import short
from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.verdict import BALANCE
from dpcausal.utils.text import capitalised


def methods(report: ReportInputs) -> Section:
    """Return the methods paragraph."""
    effect, study = report.effect, report.study
    texts = [_estimate(report)]
    if study is not None and study.design == "observational":
        adjusted = f"The analysis adjusted for {report.adjusted}."
        own = "The appendix has the formula, its sums and its assumptions."
        texts.append(own if report.scale.described else adjusted)
        if study.adjusts_for and effect.unadjusted:
            unsure = ", ".join(effect.unadjusted)
            texts.append(f"It may not have adjusted for {unsure}.")
        if study.adjusts_for and study.unused_covariates:
            unused = ", ".join(study.unused_covariates)
            texts.append(f"Covariates that were declared and not used: {unused}.")
        if study.identification == "adjusted":
            texts.append(f"{capitalised(BALANCE[report.balance])}.")
    if effect.sites:
        answered = sum(each.n is not None for each in effect.sites)
        texts.append(f"Effects of {answered} sites were pooled; each site added noise before anything left it.")
    delta = f" and delta {short(effect.guarantee.delta)}" if effect.guarantee.delta else ""
    texts.append(
        f"Results are differentially private with epsilon {short(effect.guarantee.epsilon)}{delta}; "
        f"neighbouring tables: {effect.guarantee.neighbours}."
    )
    if report.diagnoses:
        total = short(report.price.epsilon)
        texts.append(f"Together with private diagnostics, epsilon is {total}.")
    if report.interval is None:
        texts.append("Exact discrete noise was added to bounded sums; there is no valid confidence interval.")
    else:
        texts.append(
            "Exact discrete noise was added to bounded sums; the 95 % confidence interval accounts for sampling "
            "error and noise."
        )
        if effect.left_in:
            left = report.scale.size(effect.left_in)
            texts.append(f"It allows for confounding of up to {left} that may be left in.")
    if study is not None and study.bounds.get("source"):
        texts.append("Bounds of the variables come from {source}.".format(source=study.bounds["source"]))
    texts += _thresholds(report)
    texts.append("The analysis used dpcausal {version}.".format(version=version("dpcausal")))
    return Section("methods", "Methods paragraph, to paste", paragraphs=(" ".join(texts),))


def _estimate(report: ReportInputs) -> str:
    effect = report.effect
    words = {
        "treated": effect.arms[1],
        "control": effect.arms[0],
        "outcome": effect.outcome,
        "n": report.units,
        "method": effect.method,
        "estimand": effect.estimand,
    }
    if report.study is None:
        return (
            "We estimated the effect of {treated} compared with {control} on {outcome} among {n} units (estimand: "
            "{estimand}; method: {method})."
        ).format(**words)
    if report.study.design == "trial":
        return (
            "In this randomised trial with {n} units we estimated the effect of {treated} compared with {control} on "
            "{outcome} (estimand: {estimand}; method: {method})."
        ).format(**words)
    return (
        "In this observational study of {n} units we estimated the effect of {treated} compared with {control} on "
        "{outcome} (estimand: {estimand}; method: {method})."
    ).format(**words)


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
