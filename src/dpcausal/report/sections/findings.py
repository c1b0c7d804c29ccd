"""The sections on the result: estimate, diagnostics, and sensitivity to unmeasured confounding."""

from collections.abc import Iterator

from dpcausal.diagnostics import BalanceTable
from dpcausal.page.numbers import number, percent
from dpcausal.report.figures.effects import variance_shares
from dpcausal.report.section import Item, ReportInputs, Section, Table
from dpcausal.report.sections.arms import arm_tables
from dpcausal.report.sections.privacy import loss_words

_UNSEEN = (
    "No private number shows persons with several records where no unit is declared, codes such as 999 within the "
    "bounds, or cells that were not declared. Where the table is, run: dpcausal check."
)


def result(report: ReportInputs) -> Section:
    """Report the estimate, its interval, and the sources of its uncertainty."""
    effect = report.effect
    items = [("estimand", effect.estimand), ("method", effect.method), ("units", report.units)]
    if not effect.rehearsed:
        estimate = report.scale.size(effect.estimate)
        items.append(("estimate", f"{estimate} (as released, with noise; the JSON has all digits)"))
        items += _nearest_possible(report)
    items += [*_interval(report), *_planned(report), *_errors(report)]
    if report.smallest_worthwhile_effect:
        size = report.scale.given(report.smallest_worthwhile_effect)
        items.append(("smallest worthwhile effect", size))
    items += [("remedy", remedy) for remedy in report.verdict.remedies]
    notes = tuple(f"Assumes: {text}." for text in effect.assumptions)
    notes += tuple(f"Note: {text}." for text in effect.notes)
    if not effect.rehearsed:
        notes = (*notes, _UNSEEN)
    tables = (*arm_tables(report), *_sites(report))
    return Section("result", "Result", items=tuple(items), tables=tables, notes=notes)


def _interval(report: ReportInputs) -> list[Item]:
    label = "95 % interval"
    if report.interval is None:
        return [(label, f"none: {report.effect.no_interval}")]
    low, high = report.interval
    if report.effect.rehearsed:
        return [(label, f"expect the estimate ± {report.scale.size((high - low) / 2)}")]
    limits = report.scale.limits(report.interval)
    p_value = report.effect.p_value()
    p_words = "below 0.001" if p_value < 0.001 else number(p_value, 3)
    sources = "sampling error, differences between sites" if report.effect.between_sd else "sampling error"
    null = "0" if report.scale.described else "no effect"
    return [
        (label, f"{limits} (for {sources} and privacy noise)"),
        *_bias(report),
        ("p-value", f"{p_words} (two-sided, for {null})"),
    ]


def _bias(report: ReportInputs) -> list[Item]:
    """Return the bias that the interval allows for, and how much of it is for confounding."""
    effect = report.effect
    if not effect.bias_bound:
        return []
    left = report.scale.size(effect.left_in)
    more = f"; {left} of it for confounding that may be left in" if effect.left_in else ""
    return [("bias bound", f"{report.scale.size(effect.bias_bound)} in either direction, in the interval{more}")]


def _nearest_possible(report: ReportInputs) -> list[Item]:
    """Return the nearest possible difference of two means, where noise moved the estimate out of range."""
    if report.study is None:
        return []
    low, high = report.study.schema.outcome_bounds
    nearest = min(max(report.effect.estimate, low - high), high - low)
    if nearest == report.effect.estimate:
        return []
    return [("nearest possible value", report.scale.size(nearest))]


def _planned(report: ReportInputs) -> list[Item]:
    if report.planned is None or report.interval is None:
        return []
    low, high = report.interval
    planned, actual = report.scale.number(report.planned), report.scale.size((high - low) / 2)
    return [("precision", f"planned ± {planned}, from public inputs alone; actual ± {actual}")]


def _errors(report: ReportInputs) -> list[Item]:
    effect = report.effect
    sds = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    sds |= {"between sites": effect.between_sd} if effect.between_sd else {}
    shares = variance_shares(effect)
    items = []
    for name, sd in sds.items():
        if sd is None:
            text = "not estimated"
        elif name in shares:
            text = f"{report.scale.size(sd)} ({percent(shares[name])} of the variance)"
        else:
            text = report.scale.size(sd)
        items.append((f"standard error, {name}", text))
    return items


def _sites(report: ReportInputs) -> tuple[Table, ...]:
    scale = report.scale
    if not report.effect.sites:
        return ()
    lines = tuple(
        (
            share.site,
            share.status,
            "" if share.n is None else number(share.n, 0),
            "" if share.estimate is None else scale.number(share.estimate),
            "" if share.standard_error is None else scale.number(share.standard_error),
            "" if share.weight is None else percent(share.weight, 1),
        )
        for share in report.effect.sites
    )
    head = ("site", "status", "units", "estimate", "standard error", "weight")
    return (Table("Sites", head, lines),)


def diagnostics(report: ReportInputs) -> Section:
    """Report the results of private diagnostics."""
    title = "Diagnostics"
    if not report.diagnoses:
        none = "This report has no private diagnostics: it does not show whether the arms overlap and are balanced."
        return Section("diagnostics", title, paragraphs=(none,))
    lines = tuple((each.name, each.found, each.verdict, loss_words(each.guarantee)) for each in report.diagnoses)
    paragraphs = ("Each diagnostic has its own price, and its result contains privacy noise.",)
    head = ("check", "result", "verdict", "price")
    table = Table("Private diagnostics", head, lines)
    return Section("diagnostics", title, paragraphs=paragraphs, tables=(table, *_table_one(report)))


def _table_one(report: ReportInputs) -> Iterator[Table]:
    """Yield Table 1 of each balance that has the sums for it."""
    for each in report.diagnoses:
        if isinstance(each, BalanceTable) and each.characteristics:
            made = each.table_one
            yield Table(made.title, ("", *made.arms), made.lines)


def confounding(report: ReportInputs) -> Section:
    """Report how strong an unmeasured confounder would have to be."""
    values = report.confounding
    title = "Sensitivity to unmeasured confounding"
    if report.study is not None and report.study.design == "trial":
        return Section("confounding", title, paragraphs=("Not computed: treatment was randomised.",))
    if values is None:
        lacking = "the study file" if report.study is None else "an interval, and a sampling error above 0"
        needs = "an effect on a mean or a risk" if report.effect.quantity else lacking
        return Section("confounding", title, paragraphs=(f"Not computed: it needs {needs}.",))
    items = [
        ("robustness value, estimate", percent(values.robustness, 1)),
        ("robustness value, interval limit nearer to 0", percent(values.robustness_limit, 1)),
        ("scale of the E-value", values.scale),
    ]
    confounder, outcome = "To explain the estimate away, an unmeasured confounder would", report.effect.outcome
    share = percent(values.robustness, 1)
    if values.e_value is None or values.e_value_limit is None:
        both = f"both treatment and {outcome}"
        reading = f"{confounder} have to explain {share} of the residual variance of {both}, beyond the adjustment."
    else:
        items = [
            ("E-value, estimate", number(values.e_value, 2)),
            ("E-value, interval limit nearer to 0", number(values.e_value_limit, 2)),
            *items,
        ]
        reading = (
            f"{confounder} need a risk ratio of at least {number(values.e_value, 2)} with both treatment and "
            f"{outcome}, beyond the adjustment; or it would have to explain {share} of the residual variance of both."
        )
    notes = (
        "E-value: VanderWeele and Ding 2017. Robustness value: Cinelli and Hazlett 2020.",
        "The robustness value treats the effect as a coefficient of a linear regression with this sampling error.",
        "The limit is that of the interval with privacy noise. The sampling error itself is noisy.",
        "These values say how strong a confounder would have to be, not whether there is one.",
    )
    return Section("confounding", title, paragraphs=(reading,), items=tuple(items), notes=notes)
