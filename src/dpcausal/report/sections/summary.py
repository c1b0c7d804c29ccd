"""The first page of a report: the verdict, and the reasons for it."""

import math

from dpcausal.page.numbers import number, percent, short
from dpcausal.release import stored_on
from dpcausal.report.remedies import planned_precision
from dpcausal.report.section import ReportInputs, Section
from dpcausal.report.sections.privacy import loss_words
from dpcausal.report.verdict import BALANCE
from dpcausal.study.study import Study
from dpcausal.utils.text import capitalised

_MOST_NAMES = 10
"""The first page names so many sites without an answer; the appendix names all."""

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
    items = (
        *(("Warning", text) for text in report.effect.warnings),
        ("Warning", _failed_checks(report)),
        ("Stored answer", _stored(report)),
        ("Question", report.study.question if report.study else ""),
        ("What would help", _help(report)),
        ("Comparison", _compared(report)),
        ("Missing outcomes", _missing(report)),
        ("Design", _design(report)),
        ("Confounding", _confounding(report)),
        ("Sites", _sites(report)),
        ("Precision", _precision(report)),
        ("Privacy", _guarantee(report)),
    )
    said = tuple((label, text) for label, text in items if text)
    return Section("summary", "Reasons", paragraphs=(report.verdict.text,), items=said)


# Each of these returns what its line says; nothing where the line is left out.


def _failed_checks(report: ReportInputs) -> str:
    failed = ", ".join(each.name for each in report.diagnoses if each.passes is False)
    return f"The arms may not be comparable: a private check failed ({failed})." if failed else ""


def _stored(report: ReportInputs) -> str:
    days = stored_on([receipt for each in (report.effect, *report.diagnoses) for receipt in each.receipts])
    if not days:
        return ""
    return (
        f"Made on {days} and stored in the ledger: the table was not read again. If it changed since, ask as a new "
        "version (as_of), which is paid for again."
    )


def _help(report: ReportInputs) -> str:
    remedies = report.verdict.remedies[:2]
    if len(remedies) < 2:
        return "".join(remedies)
    numbered = " ".join(f"({place})\N{NO-BREAK SPACE}{remedy}" for place, remedy in enumerate(remedies, start=1))
    if report.verdict.kind == "inconclusive":
        return f"If the estimate stayed the same, one of these: {numbered}"
    return f"One of these: {numbered}"


def _compared(report: ReportInputs) -> str:
    effect, scale = report.effect, report.scale
    control, treated = effect.arms
    if effect.rehearsed:
        return f"Among {report.units} units, {treated} would be compared with {control}."
    if effect.control_mean is None or effect.treated_mean is None or effect.quantity:
        return f"Among {report.units} units, {treated} is compared with {control}."
    adjusted = report.study and report.study.adjusts_for and not effect.unadjusted
    return (
        f"{scale.outcome(effect)}: {scale.level(effect.treated_mean)} with {treated}, "
        f"{scale.level(effect.control_mean)} with {control}, among {report.units} units."
    ) + (" Both are adjusted." if adjusted else "")


def _missing(report: ReportInputs) -> str:
    shares = report.effect.missing_outcomes
    if shares is None or report.effect.rehearsed:
        return ""
    (control, treated), errors = shares.values, (shares.noise_sd([1.0, 0.0]), shares.noise_sd([0.0, 1.0]))
    counted = (
        f"{percent(min(max(control, 0.0), 1.0))} of outcomes with {shares.names[0]} and "
        f"{percent(min(max(treated, 0.0), 1.0))} with {shares.names[1]} (noise: standard deviation of "
        f"about {percent(max(errors), 1)})."
    )
    if report.effect.includes_missing:
        return f"{counted} The effect is that in all units, with an outcome or without."
    return (
        f"{counted} The effect is that in units with an outcome. If effects vary with what decides on having one, it "
        "differs from that in all units."
    )


def _design(report: ReportInputs) -> str:
    study = report.study
    if study is None:
        return "Unknown: no study file was given with this report."
    if study.design == "trial":
        return "Randomised trial: treatment was randomised, so the arms are comparable."
    if study.identification == "unadjusted":
        return "Observational study, adjusted for nothing: the arms may differ in more than treatment."
    if study.identification == "by design":
        return "Observational study. The estimate is causal only if the assumptions of its design hold."
    return (
        f"Observational study, adjusted for {report.adjusted}. The estimate is causal only if no other confounder of "
        f"treatment and outcome is missing.{_doubts(report, study)}"
    )


def _doubts(report: ReportInputs, study: Study) -> str:
    """Return what the adjustment does not use, show or remove, as further sentences."""
    texts = []
    if study.unused_covariates:
        texts.append(f" Declared, but not adjusted for: {', '.join(study.unused_covariates)}.")
    if report.effect.unadjusted:
        texts.append(f" Perhaps not adjusted for: {', '.join(report.effect.unadjusted)}.")
    if report.balance != "seen":
        texts.append(f" {capitalised(BALANCE[report.balance])}.")
    if report.effect.left_in:
        left = report.scale.size(report.effect.left_in)
        texts.append(f" Confounding of up to {left} in either direction may be left in; the interval allows for it.")
    return "".join(texts)


def _confounding(report: ReportInputs) -> str:
    values, explain = report.confounding, "To explain the estimate away, an unmeasured confounder would"
    if values is None:
        return ""
    if values.e_value is None or values.e_value_limit is None:
        share = percent(values.robustness, 1)
        return f"{explain} have to explain at least {share} of the residual variance of both treatment and outcome."
    about = "about " if values.converted else ""
    needed = (
        f"{explain} need a risk ratio of at least {about}{number(values.e_value, 2)} with both treatment and outcome"
    )
    if values.e_value_limit == 1:
        return f"{needed}. The interval includes 0 already."
    limit = f"{about}{number(values.e_value_limit, 2)}"
    return f"{needed}; to make the interval include 0, one of at least {limit}."


def _sites(report: ReportInputs) -> str:
    sites = report.effect.sites
    if not sites:
        return ""
    absent = [each.site for each in sites if each.n is None]
    without = f" Without an answer: {', '.join(absent)}." if 0 < len(absent) <= _MOST_NAMES else ""
    return f"{len(sites) - len(absent)} of {len(sites)} sites answered.{without}"


def _precision(report: ReportInputs) -> str:
    effect, scale = report.effect, report.scale
    if report.interval is None or effect.ratio:  # that of a ratio is not the estimate ± a half width
        return ""
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
    return text


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
