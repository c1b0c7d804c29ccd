"""The first page of a report: the verdict, and the reasons for it."""

import math
from collections.abc import Iterator

from dpcausal.release import stored_on
from dpcausal.report.remedies import planned_precision, sampling_is_a_bound
from dpcausal.report.section import Item, ReportInputs, Section
from dpcausal.report.sections.privacy import loss_words
from dpcausal.report.verdict import BALANCE
from dpcausal.study.study import Study
from dpcausal.utils.text import capitalised, message

_PROTECTED = {
    "record": message(
        "Replacing any one unit's record changes the probability of this result by at most a factor of {factor} "
        "(epsilon {epsilon})."
    ),
    "record_within_arm": message(
        "Replacing any one unit's covariates and outcome changes the probability of this result by at most a factor of "
        "{factor} (epsilon {epsilon}); arms are public."
    ),
    "outcome": message(
        "Replacing any one unit's outcome changes the probability of this result by at most a factor of {factor} "
        "(epsilon {epsilon}); covariates and arms are public."
    ),
}


def summary(report: ReportInputs) -> Section:
    """Return the verdict and the reasons for it, for a reader with one minute."""
    say = report.say
    items = [
        *((say("Warning"), say.recorded(text)) for text in report.effect.warnings),
        *_failed_checks(report),
        *_stored(report),
        *([(say("Question"), report.study.question)] if report.study else []),
        *_help(report),
        *_compared(report),
        *_missing(report),
        *_design(report),
        *_confounding(report),
        *_sites(report),
        *_precision(report),
        (say("Privacy"), _guarantee(report)),
    ]
    return Section("summary", say("Reasons"), paragraphs=(report.verdict.text,), items=tuple(items))


def _failed_checks(report: ReportInputs) -> Iterator[Item]:
    failed = ", ".join(report.say(each.name) for each in report.diagnoses if each.passes is False)
    if failed:
        text = report.say("The arms may not be comparable: a private check failed ({checks}).", checks=failed)
        yield report.say("Warning"), text


def _stored(report: ReportInputs) -> Iterator[Item]:
    receipts = [receipt for each in (report.effect, *report.diagnoses) for receipt in each.receipts]
    if days := stored_on(receipts):
        text = report.say(
            "Made on {days} and stored in the ledger: the table was not read again. If it changed since, ask as a new "
            "version (as_of), which is paid for again.",
            days=days,
        )
        yield report.say("Stored answer"), text


def _help(report: ReportInputs) -> Iterator[Item]:
    remedies = report.verdict.remedies[:2]
    if len(remedies) > 1:
        numbered = " ".join(f"({place})\N{NO-BREAK SPACE}{remedy}" for place, remedy in enumerate(remedies, start=1))
        text = report.say("One of these: {remedies}", remedies=numbered)
        if report.verdict.kind == "inconclusive":
            text = report.say("If the estimate stayed the same, one of these: {remedies}", remedies=numbered)
        yield report.say("What would help"), text
    elif remedies:
        yield report.say("What would help"), remedies[0]


def _compared(report: ReportInputs) -> Iterator[Item]:
    effect, say, scale = report.effect, report.say, report.scale
    control, treated = effect.arms
    units = report.units
    if effect.rehearsed:
        text = say(
            "Among {n} units, {treated} would be compared with {control}.", treated=treated, control=control, n=units
        )
    elif effect.control_mean is None or effect.treated_mean is None or effect.quantity:
        text = say("Among {n} units, {treated} is compared with {control}.", treated=treated, control=control, n=units)
    else:
        text = say(
            "{outcome}: {treated_mean} with {treated}, {control_mean} with {control}, among {n} units.",
            outcome=scale.outcome(effect),
            treated=treated,
            control=control,
            n=units,
            treated_mean=scale.level(effect.treated_mean),
            control_mean=scale.level(effect.control_mean),
        )
        adjusted = report.study and report.study.adjusts_for and not effect.unadjusted
        text += say(" Both are adjusted.") if adjusted else ""
    yield say("Comparison"), text


def _missing(report: ReportInputs) -> Iterator[Item]:
    shares, say = report.effect.missing_outcomes, report.say
    if shares is None or report.effect.rehearsed:
        return
    (control, treated), errors = shares.values, (shares.noise_sd([1.0, 0.0]), shares.noise_sd([0.0, 1.0]))
    text = say(
        "{control_share} of outcomes with {control} and {treated_share} with {treated} (noise: standard deviation of "
        "about {noise}).",
        control=shares.names[0],
        treated=shares.names[1],
        control_share=say.percent(min(max(control, 0.0), 1.0)),
        treated_share=say.percent(min(max(treated, 0.0), 1.0)),
        noise=say.percent(max(errors), 1),
    )
    if report.effect.includes_missing:
        text += say(" The effect is that in all units, with an outcome or without.")
    else:
        text += say(" The effect is that in units with an outcome.")
    yield say("Missing outcomes"), text


def _design(report: ReportInputs) -> Iterator[Item]:
    study, say = report.study, report.say
    if study is None:
        yield say("Design"), say("Unknown: no study file was given with this report.")
    elif study.design == "trial":
        yield say("Design"), say("Randomised trial: treatment was randomised, so the arms are comparable.")
    elif study.identification == "unadjusted":
        text = say("Observational study, adjusted for nothing: the arms may differ in more than treatment.")
        yield say("Design"), text
    elif study.identification == "by design":
        yield (
            say("Design"),
            say("Observational study. The estimate is causal only if the assumptions of its design hold."),
        )
    else:
        yield (
            say("Design"),
            say(
                "Observational study, adjusted for {covariates}. The estimate is causal only if no other confounder of "
                "treatment and outcome is missing.",
                covariates=report.adjusted,
            )
            + _doubts(report, study),
        )


def _doubts(report: ReportInputs, study: Study) -> str:
    """Return what the adjustment does not use, show or remove, as further sentences."""
    say, texts = report.say, []
    if study.unused_covariates:
        unused = ", ".join(study.unused_covariates)
        texts.append(say(" Declared, but not adjusted for: {covariates}.", covariates=unused))
    if report.effect.unadjusted:
        unsure = ", ".join(report.effect.unadjusted)
        texts.append(say(" Perhaps not adjusted for: {covariates}.", covariates=unsure))
    if report.balance != "seen":
        texts.append(f" {capitalised(say(BALANCE[report.balance]))}.")
    if report.effect.left_in:
        left = report.scale.size(report.effect.left_in)
        texts.append(
            say(
                " Confounding of up to {size} in either direction may be left in; the interval allows for it.",
                size=left,
            )
        )
    return "".join(texts)


def _confounding(report: ReportInputs) -> Iterator[Item]:
    values, say = report.confounding, report.say
    if values is None:
        return
    if values.e_value is None or values.e_value_limit is None:
        yield (
            say("Confounding"),
            say(
                "To explain the estimate away, an unmeasured confounder would have to explain at least {share} of the "
                "residual variance of both treatment and outcome.",
                share=say.percent(values.robustness, 1),
            ),
        )
    elif values.e_value_limit == 1:
        yield (
            say("Confounding"),
            say(
                "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least {estimate} "
                "with both treatment and outcome. The interval includes 0 already.",
                estimate=_approximate(report, values.e_value),
            ),
        )
    else:
        yield (
            say("Confounding"),
            say(
                "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least {estimate} "
                "with both treatment and outcome; to make the interval include 0, one of at least {limit}.",
                estimate=_approximate(report, values.e_value),
                limit=_approximate(report, values.e_value_limit),
            ),
        )


def _approximate(report: ReportInputs, value: float) -> str:
    number = report.say.number(value, 2)
    converted = report.confounding is not None and report.confounding.converted
    return report.say("about {number}", number=number) if converted else number


def _sites(report: ReportInputs) -> Iterator[Item]:
    sites, say = report.effect.sites, report.say
    if sites:
        absent = [each.site for each in sites if each.n is None]
        text = say("{count} of {all} sites answered.", count=len(sites) - len(absent), all=len(sites))
        text += say(" Without an answer: {sites}.", sites=", ".join(absent)) if absent else ""
        yield say("Sites"), text


def _precision(report: ReportInputs) -> Iterator[Item]:
    effect, say, scale = report.effect, report.say, report.scale
    if report.interval is None or report.asymmetric:
        return
    half = (report.interval[1] - report.interval[0]) / 2
    _, without, _ = effect.width_by_source
    words = {"half": scale.size(half), "without": scale.number(without)}
    if effect.sampling_sd and sampling_is_a_bound(effect):
        text = say("Privacy noise widens the interval from at most ± {without} to ± {half}.", **words)
    elif effect.sampling_sd:
        text = say("Privacy noise widens the interval from ± {without} to ± {half}.", **words)
    else:
        text = say("± {half}, all of it privacy noise: the sampling error is below the noise floor.", **words)
    if report.planned is not None:
        text += say(" Planned: ± {planned}.", planned=scale.size(report.planned))
        needed = planned_precision(effect, report.interval, report.planned, scale)
        text += f" {needed}" if needed else ""
    yield say("Precision"), text


def _guarantee(report: ReportInputs) -> str:
    guarantee, say = report.effect.guarantee, report.say
    factor = say.short(float(f"{math.exp(guarantee.epsilon):.3g}"))
    text = say(
        _PROTECTED[guarantee.protects],
        factor=factor + (say(", plus {delta}", delta=say.short(guarantee.delta)) if guarantee.delta else ""),
        epsilon=say.short(guarantee.epsilon),
    )
    if guarantee.proof_status != "proved":
        text += say(" This guarantee is NOT PROVED.")
    if report.diagnoses:
        total = say.short(report.price.epsilon)
        text += say(" Together with the diagnostics: epsilon {epsilon}.", epsilon=total)
    return text + _spent(report)


def _spent(report: ReportInputs) -> str:
    """Return what was spent beyond this effect, as far as it is known."""
    ledger, say = report.ledger_summary, report.say
    if ledger is not None:
        return say(
            " Spent on the data set so far: {total}; budget {budget}.",
            total=loss_words(say, ledger.total),
            budget=loss_words(say, ledger.budget),
        )
    if report.effect.rehearsed:
        return ""
    if report.effect.sites:
        return say(" This holds at each site, which has its own budget; for a person at several sites, losses add up.")
    return say(" What else was spent on the data set is not known here: no ledger was given.")
