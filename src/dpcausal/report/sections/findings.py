"""The sections on the result: summary, estimate, diagnostics, and sensitivity to unmeasured confounding."""

import math
from collections.abc import Iterator

from dpcausal.diagnostics import BalanceTable
from dpcausal.report.figures.effects import privacy_share, variance_shares
from dpcausal.report.section import Item, ReportInputs, Section, Table
from dpcausal.report.sections.arms import arm_tables
from dpcausal.text import format_number


def summary(report: ReportInputs) -> Section:
    """Summarise the result for a clinician."""
    question = [f"Question: {report.study.question}"] if report.study else []
    paragraphs = (
        report.verdict.text,
        *(f"Warning: {text}" for text in report.effect.warnings),
        *_failed_checks(report),
        *question,
        _finding(report),
        *(f"Cheapest remedy: {remedy}" for remedy in report.verdict.remedies[:1]),
        *_causal_claim(report),
        *_noise(report),
        _guarantee(report),
    )
    return Section("summary", "Summary", paragraphs=paragraphs)


def _finding(report: ReportInputs) -> str:
    effect = report.effect
    control, treated = effect.arms
    if effect.rehearsed:
        return (
            f"This is a rehearsal of the effect of {treated} against {control} on {effect.outcome}. No data was read."
        )
    direction = "higher" if effect.estimate >= 0 else "lower"
    size = f"{format_number(abs(effect.estimate))} {direction} with {treated} than with {control}"
    interval = ""
    if report.interval is not None:
        low, high = map(format_number, report.interval)
        interval = f" (95 % interval {low} to {high})"
    quantity = effect.quantity or f"mean of {effect.outcome}"
    return f"The estimated {quantity} is {size}{interval}, among {effect.n:,} units."


def _failed_checks(report: ReportInputs) -> tuple[str, ...]:
    failed = ", ".join(each.name for each in report.diagnoses if each.passes is False)
    return (f"The arms may not be comparable: a private check failed ({failed}).",) if failed else ()


def _causal_claim(report: ReportInputs) -> tuple[str, ...]:
    if report.study is None or report.effect.rehearsed:
        return ()
    if report.study.design == "trial":
        return ("Treatment was randomised, so the arms are comparable.",)
    missing = "above all, that no confounder of treatment and outcome is missing"
    return (f"Treatment was not randomised. The estimate is causal only if the assumptions below hold; {missing}.",)


def _noise(report: ReportInputs) -> tuple[str, ...]:
    if report.effect.rehearsed:
        return ()
    if report.interval is None or not report.effect.sampling_sd:
        floor = " The sampling error is below the noise floor." if report.effect.sampling_sd == 0 else ""
        return (f"Noise was added to protect every unit.{floor}",)
    share, (low, high) = privacy_share(report.effect, report.interval), report.interval
    half = (high - low) / 2
    # Where the sampling error is below the noise floor, estimators report an upper bound of it.
    without = f"the interval would be at most ± {format_number((1 - share) * half)}, not ± {format_number(half)}"
    due = f"It accounts for {share:.0%} of the interval's width: without it, {without}."
    return (f"Noise was added to protect every unit. {due}",)


def _guarantee(report: ReportInputs) -> str:
    guarantee = report.effect.guarantee
    what = {"record": "record", "record_within_arm": "covariates and outcome", "outcome": "outcome"}
    delta = f", plus {guarantee.delta:g}" if guarantee.delta else ""
    unproved = "" if guarantee.proof_status == "proved" else " This guarantee is NOT PROVED."
    return (
        f"Privacy: replacing any one unit's {what[guarantee.protects]} changes the probability of this result by at "
        f"most a factor of {math.exp(guarantee.epsilon):.3g}{delta}.{unproved}"
    )


def result(report: ReportInputs) -> Section:
    """Report the estimate, its interval, and the sources of its uncertainty."""
    effect = report.effect
    items = [
        ("estimand", effect.estimand),
        ("arms", f"{effect.arms[1]} against {effect.arms[0]}"),
        ("outcome", effect.outcome),
        ("method", effect.method),
        ("units", f"{effect.n:,}"),
    ]
    if not effect.rehearsed:
        items.append(
            ("estimate", f"{format_number(effect.estimate)} (as released, with noise; the JSON has all digits)")
        )
        items += _nearest_possible(report)
    items += [*_interval(report), *_planned(report), *_errors(report)]
    if report.smallest_worthwhile_effect:
        items.append(("smallest worthwhile effect", format_number(report.smallest_worthwhile_effect)))
    items.append(("verdict", report.verdict.text))
    items += [("remedy", remedy) for remedy in report.verdict.remedies]
    notes = tuple(f"Assumes: {text}." for text in effect.assumptions) + tuple(f"Note: {text}." for text in effect.notes)
    return Section("result", "Result", items=tuple(items), tables=(*arm_tables(report), *_sites(report)), notes=notes)


def _interval(report: ReportInputs) -> list[Item]:
    if report.interval is None:
        return [("95 % interval", f"none: {report.effect.no_interval}")]
    low, high = report.interval
    if report.effect.rehearsed:
        return [("95 % interval", f"expect the estimate ± {format_number((high - low) / 2)}")]
    both = f"{format_number(low)} to {format_number(high)} (for sampling error and privacy noise)"
    return [("95 % interval", both), ("p-value", f"{report.effect.p_value():.3g} (two-sided, for no effect)")]


def _nearest_possible(report: ReportInputs) -> list[Item]:
    """Return the nearest possible difference of two means, where noise moved the estimate out of range."""
    if report.study is None:
        return []
    low, high = report.study.schema.outcome_bounds
    nearest = min(max(report.effect.estimate, low - high), high - low)
    return [] if nearest == report.effect.estimate else [("nearest possible value", format_number(nearest))]


def _planned(report: ReportInputs) -> list[Item]:
    if report.planned is None or report.interval is None:
        return []
    low, high = report.interval
    planned, actual = format_number(report.planned), format_number((high - low) / 2)
    return [("precision", f"planned ± {planned}, from public inputs alone; actual ± {actual}")]


def _errors(report: ReportInputs) -> list[Item]:
    effect = report.effect
    sds = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    sds |= {"between sites": effect.between_sd} if effect.between_sd else {}
    shares = {name: f" ({share:.0%} of the variance)" for name, share in variance_shares(effect).items()}
    return [
        (f"standard error, {name}", "not estimated" if sd is None else format_number(sd) + shares.get(name, ""))
        for name, sd in sds.items()
    ]


def _sites(report: ReportInputs) -> tuple[Table, ...]:
    if not report.effect.sites:
        return ()
    lines = tuple(
        (
            share.site,
            share.status,
            "" if share.n is None else f"{share.n:,}",
            "" if share.estimate is None else format_number(share.estimate),
            "" if share.standard_error is None else format_number(share.standard_error),
            "" if share.weight is None else f"{share.weight:.1%}",
        )
        for share in report.effect.sites
    )
    return (Table("Sites", ("site", "status", "units", "estimate", "standard error", "weight"), lines),)


def diagnostics(report: ReportInputs) -> Section:
    """Report the results of private diagnostics."""
    if not report.diagnoses:
        none = "This report has no private diagnostics: it does not show whether the arms overlap and are balanced."
        return Section("diagnostics", "Diagnostics", paragraphs=(none,))
    lines = tuple(
        (each.name, each.found, each.verdict, f"epsilon {each.guarantee.epsilon:g}, delta {each.guarantee.delta:g}")
        for each in report.diagnoses
    )
    paragraphs = ("Each diagnostic has its own price, and its result contains privacy noise.",)
    table = Table("Private diagnostics", ("check", "result", "verdict", "price"), lines)
    return Section("diagnostics", "Diagnostics", paragraphs=paragraphs, tables=(table, *_table_one(report)))


def _table_one(report: ReportInputs) -> Iterator[Table]:
    """Yield Table 1 of each balance that has the sums for it."""
    for each in report.diagnoses:
        if isinstance(each, BalanceTable) and each.characteristics:
            made = each.table_one
            yield Table(made.title, ("", *made.arms), made.lines)


def confounding(report: ReportInputs) -> Section:
    """Report how strong an unmeasured confounder would have to be."""
    title = "Sensitivity to unmeasured confounding"
    if report.study is not None and report.study.design == "trial":
        return Section("confounding", title, paragraphs=("Not computed: treatment was randomised.",))
    values = report.confounding
    if values is None:
        missing = "the study file" if report.study is None else "an interval, and a sampling error above 0"
        missing = "an effect on a mean or a risk" if report.effect.quantity else missing
        return Section("confounding", title, paragraphs=(f"Not computed: it needs {missing}.",))
    items = (
        ("E-value, estimate", f"{values.e_value:.2f}"),
        ("E-value, interval limit nearer to 0", f"{values.e_value_limit:.2f}"),
        ("robustness value, estimate", f"{values.robustness:.1%}"),
        ("robustness value, interval limit nearer to 0", f"{values.robustness_limit:.1%}"),
        ("scale of the E-value", values.scale),
    )
    reading = (
        "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least "
        f"{values.e_value:.2f} with both treatment and {report.effect.outcome}, beyond the adjustment; or it would "
        f"have to explain {values.robustness:.1%} of the residual variance of both."
    )
    paragraphs = ("Computed from the published effect at no cost.", reading)
    notes = (
        "E-value: VanderWeele and Ding 2017. Robustness value: Cinelli and Hazlett 2020.",
        "The robustness value treats the effect as a coefficient of a linear regression with this sampling error.",
        "The limit is that of the interval with privacy noise. The sampling error itself is noisy.",
        "These values say how strong a confounder would have to be, not whether there is one.",
    )
    return Section("confounding", title, paragraphs=paragraphs, items=items, notes=notes)
