"""A paragraph on the methods, to paste into a manuscript."""

from importlib.metadata import version

from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.verdict import BALANCE
from dpcausal.utils.text import capitalised


def methods(report: ReportInputs) -> Section:
    """Return the methods paragraph."""
    say, effect, study = report.say, report.effect, report.study
    texts = [_estimate(report)]
    if study is not None and study.design == "observational":
        adjusted = say("The analysis adjusted for {covariates}.", covariates=report.adjusted)
        own = say("The appendix has the formula, its sums and its assumptions.")
        texts.append(own if report.scale.described else adjusted)
        if study.adjusts_for and effect.unadjusted:
            unsure = ", ".join(effect.unadjusted)
            texts.append(say("It may not have adjusted for {covariates}.", covariates=unsure))
        if study.adjusts_for and study.unused_covariates:
            unused = ", ".join(study.unused_covariates)
            texts.append(say("Covariates that were declared and not used: {covariates}.", covariates=unused))
        if study.identification == "adjusted":
            texts.append(f"{capitalised(say(BALANCE[report.balance]))}.")
    if effect.sites:
        answered = sum(each.n is not None for each in effect.sites)
        texts.append(
            say("Effects of {count} sites were pooled; each site added noise before anything left it.", count=answered)
        )
    delta = say(" and delta {delta}", delta=say.short(effect.guarantee.delta)) if effect.guarantee.delta else ""
    texts.append(
        say(
            "Results are differentially private with epsilon {epsilon}{delta}; neighbouring tables: {neighbours}.",
            epsilon=say.short(effect.guarantee.epsilon),
            delta=delta,
            neighbours=say.recorded(effect.guarantee.neighbours),
        )
    )
    if report.diagnoses:
        total = say.short(report.price.epsilon)
        texts.append(say("Together with private diagnostics, epsilon is {epsilon}.", epsilon=total))
    if report.interval is None:
        texts.append(say("Exact discrete noise was added to bounded sums; there is no valid confidence interval."))
    else:
        texts.append(
            say(
                "Exact discrete noise was added to bounded sums; the 95 % confidence interval accounts for sampling "
                "error and noise."
            )
        )
        if effect.left_in:
            left = report.scale.size(effect.left_in)
            texts.append(say("It allows for confounding of up to {size} that may be left in.", size=left))
    if study is not None and study.bounds.get("source"):
        texts.append(say("Bounds of the variables come from {source}.", source=study.bounds["source"]))
    texts += _thresholds(report)
    texts.append(say("The analysis used dpcausal {version}.", version=version("dpcausal")))
    return Section("methods", say("Methods paragraph, to paste"), paragraphs=(" ".join(texts),))


def _estimate(report: ReportInputs) -> str:
    say, effect = report.say, report.effect
    words = {
        "treated": effect.arms[1],
        "control": effect.arms[0],
        "outcome": effect.outcome,
        "n": report.units,
        "method": say.recorded(effect.method),
        "estimand": say.recorded(effect.estimand),
    }
    if report.study is None:
        return say(
            "We estimated the effect of {treated} compared with {control} on {outcome} among {n} units (estimand: "
            "{estimand}; method: {method}).",
            **words,
        )
    if report.study.design == "trial":
        return say(
            "In this randomised trial with {n} units we estimated the effect of {treated} compared with {control} on "
            "{outcome} (estimand: {estimand}; method: {method}).",
            **words,
        )
    return say(
        "In this observational study of {n} units we estimated the effect of {treated} compared with {control} on "
        "{outcome} (estimand: {estimand}; method: {method}).",
        **words,
    )


def _thresholds(report: ReportInputs) -> list[str]:
    say, texts = report.say, []
    if report.smallest_worthwhile_effect:
        size = report.scale.given(report.smallest_worthwhile_effect)
        texts.append(say("The smallest worthwhile effect was taken to be {size}.", size=size))
    if report.confounding is not None and report.confounding.e_value is None:
        texts.append(say("Sensitivity to unmeasured confounding was assessed by the robustness value."))
    elif report.confounding is not None:
        texts.append(say("Sensitivity to unmeasured confounding was assessed by the E-value and the robustness value."))
    return texts
