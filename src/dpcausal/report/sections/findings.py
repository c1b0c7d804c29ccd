"""The sections of a report about what was found: in plain words, in numbers, and how far to trust them."""

import math

from dpcausal.report.figures.uncertainty import privacy_share, variance_shares
from dpcausal.report.inputs import ReportInputs
from dpcausal.report.section import Section, Table
from dpcausal.text import format_number


def summary(report: ReportInputs) -> Section:
    """What a clinician needs, in a few sentences."""
    asked = [f"The question: {report.study.question}"] if report.study else []
    says = (
        report.verdict.text,
        *(f"Warning: {text}" for text in report.effect.warnings),
        *_failed(report),
        *asked,
        _finding(report),
        *_cheapest(report),
        *_trust(report),
        *_noise(report),
    )
    return Section("summary", "In plain words", paragraphs=(*says, _promise(report)))


def _finding(report: ReportInputs) -> str:
    effect = report.effect
    control, treated = effect.arms
    if effect.rehearsed:
        return (
            f"This is a rehearsal of the effect of {treated} against {control} on {effect.outcome}. No data were read."
        )
    direction = "higher" if effect.estimate >= 0 else "lower"
    size = f"{format_number(abs(effect.estimate))} {direction} with {treated} than with {control}"
    if report.interval is None:
        return f"Mean {effect.outcome} was estimated to be {size}, among {effect.n:,} units."
    low, high = report.interval
    fits = f"the data fit a difference from {format_number(low)} to {format_number(high)} (95 % interval)"
    return f"Mean {effect.outcome} was estimated to be {size}, among {effect.n:,} units; {fits}."


def _failed(report: ReportInputs) -> tuple[str, ...]:
    failed = ", ".join(each.name for each in report.diagnoses if each.passes is False)
    return (f"But the arms may not be comparable: a private check failed ({failed}).",) if failed else ()


def _cheapest(report: ReportInputs) -> tuple[str, ...]:
    return tuple(f"The cheapest remedy: {remedy}" for remedy in report.verdict.remedies[:1])


def _trust(report: ReportInputs) -> tuple[str, ...]:
    if report.study is None or report.effect.rehearsed:
        return ()
    if report.study.design == "trial":
        return ("Chance decided who was treated, so that the arms can be compared.",)
    left_out = "nothing was left out that matters for both treatment and outcome"
    holds = "the assumptions that are listed with the result hold"
    return (f"Nobody drew lots about who was treated. This is an effect if {holds}: {left_out}.",)


def _noise(report: ReportInputs) -> tuple[str, ...]:
    if report.effect.rehearsed:
        return ()
    if report.interval is None or not report.effect.sampling_sd:
        hidden = " It hides the sampling error." if report.effect.sampling_sd == 0 else ""
        return (f"Noise was added to protect every unit.{hidden}",)
    share, (low, high) = privacy_share(report.effect), report.interval
    half = (1 - share) * (high - low) / 2
    # Where noise hides the sampling error, estimators report the most that it may be.
    without = f"the estimate would be known to within {format_number(half)} or better, in place of {format_number((high - low) / 2)}"
    due = f"Of the interval's width, {share:.0%} is due to privacy noise: without it, {without}."
    return (f"Noise was added to protect every unit. {due}",)


def _promise(report: ReportInputs) -> str:
    guarantee = report.effect.guarantee
    factor = math.exp(guarantee.epsilon)
    but = f", but for a probability of {guarantee.delta:g}" if guarantee.delta else ""
    proved = "" if guarantee.proof_status == "proved" else " This promise is NOT PROVED for what was done here."
    what = {"record": "its record", "record_within_arm": "its record but for its arm", "outcome": "its outcome"}
    would = "would be" if report.effect.rehearsed else "would have been"
    return (
        f"What is promised to each unit: had {what[guarantee.protects]} been any other, what is published for this "
        f"effect {would} as likely to within a factor of {factor:.3g}{but}.{proved}"
    )


def result(report: ReportInputs) -> Section:
    """The estimate, its interval, and where the width comes from."""
    effect = report.effect
    items = [("estimand", effect.estimand), ("arms", f"{effect.arms[1]} against {effect.arms[0]}")]
    items += [("outcome", effect.outcome), ("method", effect.method), ("units", f"{effect.n:,}")]
    if not effect.rehearsed:
        items.append(
            (
                "estimate",
                f"{format_number(effect.estimate)} (as it was released, noise included; all digits are in the JSON)",
            )
        )
        items += [("nearest possible value", format_number(nearest)) for nearest in _possible(report)]
    items += [*_interval(report), *_planned(report), *_errors(report)]
    if report.smallest_worthwhile_effect:
        items.append(("smallest worthwhile effect", format_number(report.smallest_worthwhile_effect)))
    items.append(("verdict", report.verdict.text))
    items += [("remedy", remedy) for remedy in report.verdict.remedies]
    notes = tuple(f"Assumes: {text}." for text in effect.assumptions) + tuple(f"Note: {text}." for text in effect.notes)
    return Section("result", "Result", items=tuple(items), tables=_sites(report), notes=notes)


def _interval(report: ReportInputs) -> list[tuple[str, str]]:
    if report.interval is None:
        return [("95 % interval", f"none: {report.effect.no_interval}")]
    low, high = report.interval
    if report.effect.rehearsed:
        return [("95 % interval", f"expect the estimate ± {format_number((high - low) / 2)}")]
    return [("95 % interval", f"{format_number(low)} to {format_number(high)} (sampling and privacy noise together)")]


def _possible(report: ReportInputs) -> tuple[float, ...]:
    """The estimate moved to what a difference of two means can be, where noise has carried it beyond."""
    if report.study is None:
        return ()
    low, high = report.study.schema.outcome_bounds
    nearest = min(max(report.effect.estimate, low - high), high - low)
    return () if nearest == report.effect.estimate else (nearest,)


def _planned(report: ReportInputs) -> list[tuple[str, str]]:
    if report.planned is None or report.interval is None:
        return []
    low, high = report.interval
    return [
        (
            "planned precision",
            f"± {format_number(report.planned)}, from public inputs alone; ± {format_number((high - low) / 2)} now",
        )
    ]


def _errors(report: ReportInputs) -> list[tuple[str, str]]:
    effect = report.effect
    sds = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    sds |= {"differences between sites": effect.between_sd} if effect.between_sd else {}
    said = {name: f" ({share:.0%} of the variance)" for name, share in variance_shares(effect).items()}
    return [
        (f"standard error, {name}", "not asked for" if sd is None else format_number(sd) + said.get(name, ""))
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
    return (Table("Sites", ("site", "status", "units", "own effect", "standard error", "weight"), lines),)


def diagnostics(report: ReportInputs) -> Section:
    """What private checks of the data found."""
    if not report.diagnoses:
        none = "No private diagnostics came with this report: it does not tell how well the arms overlap and balance."
        return Section("diagnostics", "Diagnostics", paragraphs=(none,))
    lines = tuple(
        (each.name, each.found, each.verdict, f"epsilon {each.guarantee.epsilon:g}, delta {each.guarantee.delta:g}")
        for each in report.diagnoses
    )
    says = ("Each of these was a question with a price of its own. What they found holds privacy noise.",)
    table = Table("Private diagnostics", ("check", "found", "verdict", "price"), lines)
    return Section("diagnostics", "Diagnostics", paragraphs=says, tables=(table,))


def confounding(report: ReportInputs) -> Section:
    """How strong a confounder would have to be that nobody measured."""
    title = "Sensitivity to unmeasured confounding"
    if report.study is not None and report.study.design == "trial":
        return Section(
            "confounding", title, paragraphs=("A trial: chance decided who was treated, so none is computed.",)
        )
    found = report.confounding
    if found is None:
        missing = "the study file" if report.study is None else "an interval, and a sampling error above 0"
        return Section("confounding", title, paragraphs=(f"Not computed: it needs {missing}.",))
    items = (
        ("E-value of the estimate", f"{found.e_value:.2f}"),
        ("E-value of the limit nearer to 0", f"{found.e_value_limit:.2f}"),
        ("robustness value of the estimate", f"{found.robustness:.1%}"),
        ("robustness value of the limit nearer to 0", f"{found.robustness_limit:.1%}"),
        ("scale of the E-value", found.scale),
    )
    reading = (
        "How to read it: to explain the estimate away, something not measured would have to go with treatment and with "
        f"{report.effect.outcome} by a risk ratio of {found.e_value:.2f} each, beyond what was adjusted for; or to "
        f"explain {found.robustness:.1%} of what is left of the variance of both."
    )
    says = ("Made of the published effect only; it cost no budget.", reading)
    notes = (
        "E-value: VanderWeele and Ding 2017. Robustness value: Cinelli and Hazlett 2020.",
        "The robustness value reads the effect as a coefficient of a linear regression with this sampling error.",
        "The limit is that of the interval with privacy noise. The sampling error was released with noise of its own.",
        "They say how strong a confounder would have to be, not whether there is one.",
    )
    return Section("confounding", title, paragraphs=says, items=items, notes=notes)
