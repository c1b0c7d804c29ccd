"""The sections on the result: estimate, diagnostics, and sensitivity to unmeasured confounding."""

from collections.abc import Iterator

from dpcausal.diagnostics import BalanceTable
from dpcausal.report.figures.effects import variance_shares
from dpcausal.report.section import Item, ReportInputs, Section, Table
from dpcausal.report.sections.arms import arm_tables
from dpcausal.report.sections.privacy import loss_words
from dpcausal.utils.text import message

_SOURCES = {
    "sampling": message("standard error, sampling"),
    "privacy noise": message("standard error, privacy noise"),
    "between sites": message("standard error, between sites"),
}
_VERDICTS = {True: message("passes"), False: message("fails"), None: message("inconclusive")}
_NAMES = {"overlap": message("overlap"), "balance": message("balance")}


def result(report: ReportInputs) -> Section:
    """Report the estimate, its interval, and the sources of its uncertainty."""
    effect, say = report.effect, report.say
    items = [
        (say("estimand"), say.recorded(effect.estimand)),
        (say("method"), say.recorded(effect.method)),
        (say("units"), report.units),
    ]
    if not effect.rehearsed:
        estimate = report.scale.size(effect.estimate)
        items.append(
            (say("estimate"), say("{estimate} (as released, with noise; the JSON has all digits)", estimate=estimate))
        )
        items += _nearest_possible(report)
    items += [*_interval(report), *_planned(report), *_errors(report)]
    if report.smallest_worthwhile_effect:
        size = report.scale.given(report.smallest_worthwhile_effect)
        items.append((say("smallest worthwhile effect"), size))
    items += [(say("remedy"), remedy) for remedy in report.verdict.remedies]
    notes = tuple(say("Assumes: {text}.", text=say.recorded(text)) for text in effect.assumptions)
    notes += tuple(say("Note: {text}.", text=say.recorded(text)) for text in effect.notes)
    if not effect.rehearsed:
        notes += (
            say(
                "No private number shows persons with several records where no unit is declared, codes such as 999 "
                "within the bounds, or cells that were not declared. Where the table is, run: dpcausal check."
            ),
        )
    tables = (*arm_tables(report), *_sites(report))
    return Section("result", say("Result"), items=tuple(items), tables=tables, notes=notes)


def _interval(report: ReportInputs) -> list[Item]:
    say = report.say
    label = say("95 % interval")
    if report.interval is None:
        return [(label, say("none: {why}", why=say.recorded(report.effect.no_interval)))]
    low, high = report.interval
    if report.effect.rehearsed:
        return [(label, say("expect the estimate ± {half}", half=report.scale.size((high - low) / 2)))]
    limits = report.scale.limits(report.interval)
    p_value = report.effect.p_value()
    smallest = 0.001
    p_words = (
        say("below {smallest}", smallest=say.number(smallest, 3)) if p_value < smallest else say.number(p_value, 3)
    )
    covered = say("{limits} (for sampling error and privacy noise)", limits=limits)
    if report.effect.between_sd:
        covered = say("{limits} (for sampling error, differences between sites and privacy noise)", limits=limits)
    hypothesis = say("{p} (two-sided, for no effect)", p=p_words)
    if report.scale.described:
        hypothesis = say("{p} (two-sided, for 0)", p=p_words)
    return [(label, covered), *_bias(report), (say("p-value"), hypothesis)]


def _bias(report: ReportInputs) -> list[Item]:
    """Return the bias that the interval allows for, and how much of it is for confounding."""
    say, effect = report.say, report.effect
    if not effect.bias_bound:
        return []
    words = {"size": report.scale.size(effect.bias_bound), "left": report.scale.size(effect.left_in)}
    if not effect.left_in:
        return [(say("bias bound"), say("{size} in either direction, in the interval", **words))]
    text = say("{size} in either direction, in the interval; {left} of it for confounding that may be left in", **words)
    return [(say("bias bound"), text)]


def _nearest_possible(report: ReportInputs) -> list[Item]:
    """Return the nearest possible difference of two means, where noise moved the estimate out of range."""
    if report.study is None:
        return []
    low, high = report.study.schema.outcome_bounds
    nearest = min(max(report.effect.estimate, low - high), high - low)
    if nearest == report.effect.estimate:
        return []
    return [(report.say("nearest possible value"), report.scale.size(nearest))]


def _planned(report: ReportInputs) -> list[Item]:
    if report.planned is None or report.interval is None:
        return []
    low, high = report.interval
    words = {"planned": report.scale.number(report.planned), "actual": report.scale.size((high - low) / 2)}
    text = report.say("planned ± {planned}, from public inputs alone; actual ± {actual}", **words)
    return [(report.say("precision"), text)]


def _errors(report: ReportInputs) -> list[Item]:
    effect, say = report.effect, report.say
    sds = {"sampling": effect.sampling_sd, "privacy noise": effect.privacy_sd}
    sds |= {"between sites": effect.between_sd} if effect.between_sd else {}
    shares = variance_shares(effect)
    items = []
    for name, sd in sds.items():
        if sd is None:
            text = say("not estimated")
        elif name in shares:
            words = {"sd": report.scale.size(sd), "share": say.percent(shares[name])}
            text = say("{sd} ({share} of the variance)", **words)
        else:
            text = report.scale.size(sd)
        items.append((say(_SOURCES[name]), text))
    return items


def _sites(report: ReportInputs) -> tuple[Table, ...]:
    say, scale = report.say, report.scale
    if not report.effect.sites:
        return ()
    lines = tuple(
        (
            share.site,
            say.recorded(share.status),
            "" if share.n is None else say.number(share.n, 0),
            "" if share.estimate is None else scale.number(share.estimate),
            "" if share.standard_error is None else scale.number(share.standard_error),
            "" if share.weight is None else say.percent(share.weight, 1),
        )
        for share in report.effect.sites
    )
    head = (say("site"), say("status"), say("units"), say("estimate"), say("standard error"), say("weight"))
    return (Table(say("Sites"), head, lines),)


def diagnostics(report: ReportInputs) -> Section:
    """Report the results of private diagnostics."""
    say, title = report.say, report.say("Diagnostics")
    if not report.diagnoses:
        none = say(
            "This report has no private diagnostics: it does not show whether the arms overlap and are balanced."
        )
        return Section("diagnostics", title, paragraphs=(none,))
    lines = tuple(
        (say(_NAMES[each.name]), say.recorded(each.found), say(_VERDICTS[each.passes]), loss_words(say, each.guarantee))
        for each in report.diagnoses
    )
    paragraphs = (say("Each diagnostic has its own price, and its result contains privacy noise."),)
    head = (say("check"), say("result"), say("verdict"), say("price"))
    table = Table(say("Private diagnostics"), head, lines)
    return Section("diagnostics", title, paragraphs=paragraphs, tables=(table, *_table_one(report)))


def _table_one(report: ReportInputs) -> Iterator[Table]:
    """Yield Table 1 of each balance that has the sums for it."""
    for each in report.diagnoses:
        if isinstance(each, BalanceTable) and each.characteristics:
            made = each.table_one
            yield Table(made.title, ("", *made.arms), made.lines)


def confounding(report: ReportInputs) -> Section:
    """Report how strong an unmeasured confounder would have to be."""
    say, values = report.say, report.confounding
    title = say("Sensitivity to unmeasured confounding")
    if report.study is not None and report.study.design == "trial":
        return Section("confounding", title, paragraphs=(say("Not computed: treatment was randomised."),))
    if values is None:
        missing = say("Not computed: it needs an interval, and a sampling error above 0.")
        if report.effect.quantity:
            missing = say("Not computed: it needs an effect on a mean or a risk.")
        elif report.study is None:
            missing = say("Not computed: it needs the study file.")
        return Section("confounding", title, paragraphs=(missing,))
    items = [
        (say("robustness value, estimate"), say.percent(values.robustness, 1)),
        (say("robustness value, interval limit nearer to 0"), say.percent(values.robustness_limit, 1)),
        (say("scale of the E-value"), say(values.scale)),
    ]
    if values.e_value is None or values.e_value_limit is None:
        reading = say(
            "To explain the estimate away, an unmeasured confounder would have to explain {share} of the residual "
            "variance of both treatment and {outcome}, beyond the adjustment.",
            outcome=report.effect.outcome,
            share=say.percent(values.robustness, 1),
        )
    else:
        items = [
            (say("E-value, estimate"), say.number(values.e_value, 2)),
            (say("E-value, interval limit nearer to 0"), say.number(values.e_value_limit, 2)),
            *items,
        ]
        reading = say(
            "To explain the estimate away, an unmeasured confounder would need a risk ratio of at least {ratio} with "
            "both treatment and {outcome}, beyond the adjustment; or it would have to explain {share} of the residual "
            "variance of both.",
            ratio=say.number(values.e_value, 2),
            outcome=report.effect.outcome,
            share=say.percent(values.robustness, 1),
        )
    notes = (
        say("E-value: VanderWeele and Ding 2017. Robustness value: Cinelli and Hazlett 2020."),
        say("The robustness value treats the effect as a coefficient of a linear regression with this sampling error."),
        say("The limit is that of the interval with privacy noise. The sampling error itself is noisy."),
        say("These values say how strong a confounder would have to be, not whether there is one."),
    )
    return Section("confounding", title, paragraphs=(reading,), items=tuple(items), notes=notes)
