"""The first page of a report: the verdict, and the reasons for it."""

import math
from collections.abc import Iterator

from dpcausal.page.numbers import number, percent, short
from dpcausal.release import stored_on
from dpcausal.report.remedies import planned_precision
from dpcausal.report.section import Item, ReportInputs, Section
from dpcausal.report.sections.privacy import loss_words
from dpcausal.report.verdict import BALANCE
from dpcausal.study.study import Study
from dpcausal.utils.text import capitalised

_PROTECTED = {
    "record": (
        "Replacing any one unit's record changes the probability of this result by at most a factor of {factor} "
        "(epsilon {epsilon})."
    ),
    "record_within_arm": (
        "Replacing any one unit's covariates and outcome changes the probability of this result by at most a factor of "
        "{factor} (epsilon {epsilon}); arms are public."
    ),
    "outcome": (
        "Replacing any one unit's outcome changes the probability of this result by at most a factor of {factor} "
        "(epsilon {epsilon}); covariates and arms are public."
    ),
}


def summary(report: ReportInputs) -> Section:
    """Return the verdict and the reasons for it, for a reader with one minute."""
    items = [
        *(("Warning", text) for text in report.effect.warnings),
        *_failed_checks(report),
        *_stored(report),
        *([("Question", report.study.question)] if report.study else []),
        *_help(report),
        *_compared(report),
        *_missing(report),
        *_design(report),
        *_confounding(report),
        *_sites(report),
        *_precision(report),
        ("Privacy", _guarantee(report)),
    ]
    return Section("summary", "Reasons", paragraphs=(report.verdict.text,), items=tuple(items))


def _failed_checks(report: ReportInputs) -> Iterator[Item]:
    failed = ", ".join(each.name for each in report.diagnoses if each.passes is False)
    if failed:
        text = f"The arms may not be comparable: a private check failed ({failed})."
        yield "Warning", text


def _stored(report: ReportInputs) -> Iterator[Item]:
    receipts = [receipt for each in (report.effect, *report.diagnoses) for receipt in each.receipts]
    if days := stored_on(receipts):
        text = (
            f"Made on {days} and stored in the ledger: the table was not read again. If it changed since, ask "
            "as a new version (as_of), which is paid for again."
        )
        yield "Stored answer", text


def _help(report: ReportInputs) -> Iterator[Item]:
    remedies = report.verdict.remedies[:2]
    if len(remedies) > 1:
        numbered = " ".join(f"({place})\N{NO-BREAK SPACE}{remedy}" for place, remedy in enumerate(remedies, start=1))
        text = f"One of these: {numbered}"
        if report.verdict.kind == "inconclusive":
            text = f"If the estimate stayed the same, one of these: {numbered}"
        yield "What would help", text
    elif remedies:
        yield "What would help", remedies[0]


def _compared(report: ReportInputs) -> Iterator[Item]:
    effect, scale = report.effect, report.scale
    control, treated = effect.arms
    units = report.units
    if effect.rehearsed:
        text = f"Among {units} units, {treated} would be compared with {control}."
    elif effect.control_mean is None or effect.treated_mean is None or effect.quantity:
        text = f"Among {units} units, {treated} is compared with {control}."
    else:
        text = (
            f"{scale.outcome(effect)}: {scale.level(effect.treated_mean)} with {treated}, "
            f"{scale.level(effect.control_mean)} with {control}, among {units} units."
        )
        adjusted = report.study and report.study.adjusts_for and not effect.unadjusted
        text += " Both are adjusted." if adjusted else ""
    yield "Comparison", text


def _missing(report: ReportInputs) -> Iterator[Item]:
    shares = report.effect.missing_outcomes
    if shares is None or report.effect.rehearsed:
        return
    (control, treated), errors = shares.values, (shares.noise_sd([1.0, 0.0]), shares.noise_sd([0.0, 1.0]))
    text = (
        f"{percent(min(max(control, 0.0), 1.0))} of outcomes with {shares.names[0]} and "
        f"{percent(min(max(treated, 0.0), 1.0))} with {shares.names[1]} (noise: standard deviation of "
        f"about {percent(max(errors), 1)})."
    )
    if report.effect.includes_missing:
        text += " The effect is that in all units, with an outcome or without."
    else:
        text += " The effect is that in units with an outcome. If effects vary with what decides on having one, it "
        text += "differs from that in all units."
    yield "Missing outcomes", text


def _design(report: ReportInputs) -> Iterator[Item]:
    study = report.study
    if study is None:
        yield "Design", "Unknown: no study file was given with this report."
    elif study.design == "trial":
        yield "Design", "Randomised trial: treatment was randomised, so the arms are comparable."
    elif study.identification == "unadjusted":
        text = "Observational study, adjusted for nothing: the arms may differ in more than treatment."
        yield "Design", text
    elif study.identification == "by design":
        yield ("Design", "Observational study. The estimate is causal only if the assumptions of its design hold.")
    else:
        yield (
            "Design",
            (
                f"Observational study, adjusted for {report.adjusted}. The estimate is causal only if no other "
                "confounder of treatment and outcome is missing."
            )
            + _doubts(report, study),
        )


def _doubts(report: ReportInputs, study: Study) -> str:
    """Return what the adjustment does not use, show or remove, as further sentences."""
    texts = []
    if study.unused_covariates:
        unused = ", ".join(study.unused_covariates)
        texts.append(f" Declared, but not adjusted for: {unused}.")
    if report.effect.unadjusted:
        unsure = ", ".join(report.effect.unadjusted)
        texts.append(f" Perhaps not adjusted for: {unsure}.")
    if report.balance != "seen":
        texts.append(f" {capitalised(BALANCE[report.balance])}.")
    if report.effect.left_in:
        left = report.scale.size(report.effect.left_in)
        texts.append(f" Confounding of up to {left} in either direction may be left in; the interval allows for it.")
    return "".join(texts)


def _confounding(report: ReportInputs) -> Iterator[Item]:
    values = report.confounding
    if values is None:
        return
    if values.e_value is None or values.e_value_limit is None:
        yield (
            "Confounding",
            (
                "To explain the estimate away, an unmeasured confounder would have to explain at least "
                f"{percent(values.robustness, 1)} of the residual variance of both treatment and outcome."
            ),
        )
    elif values.e_value_limit == 1:
        yield (
            "Confounding",
            (
                "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least "
                f"{_approximate(report, values.e_value)} with both treatment and outcome. The interval includes 0 "
                "already."
            ),
        )
    else:
        yield (
            "Confounding",
            (
                "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least "
                f"{_approximate(report, values.e_value)} with both treatment and outcome; to make the interval "
                f"include 0, one of at least {_approximate(report, values.e_value_limit)}."
            ),
        )


def _approximate(report: ReportInputs, value: float) -> str:
    written = number(value, 2)
    converted = report.confounding is not None and report.confounding.converted
    return f"about {written}" if converted else written


def _sites(report: ReportInputs) -> Iterator[Item]:
    sites = report.effect.sites
    if sites:
        absent = [each.site for each in sites if each.n is None]
        text = f"{len(sites) - len(absent)} of {len(sites)} sites answered."
        text += f" Without an answer: {', '.join(absent)}." if absent else ""
        yield "Sites", text


def _precision(report: ReportInputs) -> Iterator[Item]:
    effect, scale = report.effect, report.scale
    if report.interval is None or report.asymmetric:
        return
    half = (report.interval[1] - report.interval[0]) / 2
    _, without, _ = effect.width_by_source
    if effect.sampling_sd:
        most = "at most " if effect.sampling_is_a_bound else ""
        text = f"Privacy noise widens the interval from {most}± {scale.number(without)} to ± {scale.size(half)}."
    else:
        text = f"± {scale.size(half)}, all of it privacy noise: the sampling error is below the noise floor."
    if report.planned is not None:
        text += f" Planned: ± {scale.size(report.planned)}."
        needed = planned_precision(effect, report.interval, report.planned, scale)
        text += f" {needed}" if needed else ""
    yield "Precision", text


def _guarantee(report: ReportInputs) -> str:
    guarantee = report.effect.guarantee
    factor = short(float(f"{math.exp(guarantee.epsilon):.3g}"))
    text = _PROTECTED[guarantee.protects].format(
        factor=factor + (f", plus {short(guarantee.delta)}" if guarantee.delta else ""),
        epsilon=short(guarantee.epsilon),
    )
    if report.diagnoses:
        total = short(report.price.epsilon)
        text += f" Together with the diagnostics: epsilon {total}."
    return text + _spent(report)


def _spent(report: ReportInputs) -> str:
    """Return what was spent beyond this effect, as far as it is known."""
    ledger = report.ledger_summary
    if ledger is not None:
        return f" Spent on the data set so far: {loss_words(ledger.total)}; budget {loss_words(ledger.budget)}."
    if report.effect.rehearsed:
        return ""
    if report.effect.sites:
        return " This holds at each site, which has its own budget; for a person at several sites, losses add up."
    return " What else was spent on the data set is not known here: no ledger was given."
