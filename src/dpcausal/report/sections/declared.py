"""The sections on what was declared before any data was read: the question, the design, and the public inputs."""

from dataclasses import fields, is_dataclass
from typing import Any

from dpcausal.page.language import Language
from dpcausal.report.section import ReportInputs, Section, Table
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import TableColumn, Treatment
from dpcausal.utils.text import message

_UNSPECIFIED = message("not specified")
_NO_STUDY = message("No study file was given with this report.")
_SHAPES = {"linear": message("in models by its value"), "log": message("in models by its logarithm")}
_ROLES = (message("treatment"), message("outcome"), message("covariate"))


def question(report: ReportInputs) -> Section:
    """State the question and the design."""
    study, effect, say = report.study, report.effect, report.say
    title = say("Question and design")
    if study is None:
        words = {"treated": effect.arms[1], "control": effect.arms[0], "outcome": effect.outcome}
        asked = say("The effect of {treated} against {control} on {outcome}.", **words)
        version = (say("Data as of {date}.", date=effect.as_of),) if effect.as_of else ()
        return Section("question", title, paragraphs=(asked, *version, say(_NO_STUDY)))
    items = [
        (say("study"), study.name),
        *([(say("data as of"), effect.as_of)] if effect.as_of else []),
        (say("question"), study.question),
        (say("design"), say("randomised trial") if study.design == "trial" else say("observational")),
        (say("eligibility"), study.eligibility or say(_UNSPECIFIED)),
        (say("time zero"), study.time_zero or say(_UNSPECIFIED)),
        (
            say("treatment strategies"),
            say("{treated}, compared with {control}", treated=effect.arms[1], control=effect.arms[0]),
        ),
        (say("outcome"), effect.outcome),
        (say("estimand"), say.recorded(effect.estimand)),
    ]
    for name in study.adjusts_for:
        reason = study.confounders.get(name) or say("no reason given")
        items.append((say("adjusted for {covariate}", covariate=name), reason))
    nothing = say("as its formula does") if report.scale.described else say("nothing")
    items += [] if study.adjusts_for else [(say("adjusted for"), nothing)]
    return Section("question", title, items=tuple(items))


def inputs(report: ReportInputs) -> Section:
    """List every public input, its source, and how values were handled before anything was summed."""
    study, say = report.study, report.say
    title = say("Public inputs and data handling")
    if study is None:
        return Section("inputs", title, paragraphs=(say(_NO_STUDY), say("See the assumptions.")))
    schema, bounds = study.schema, study.bounds
    items = [
        (say("bounds and values chosen by"), bounds.get("by") or say(_UNSPECIFIED)),
        (say("chosen on"), bounds.get("on") or say(_UNSPECIFIED)),
        (say("source of the bounds"), bounds.get("source") or say(_UNSPECIFIED)),
        (
            say("epsilon and delta of the study"),
            say("{epsilon} and {delta}", epsilon=say.short(study.epsilon), delta=say.short(study.delta)),
        ),
        *((say("epsilon at {site}", site=site), say.short(epsilon)) for site, epsilon in study.epsilons.items()),
        (say("estimator"), _describe(study.estimator)),
    ]
    if schema.unit is not None:
        words = {"which": schema.unit.keep, "by": schema.unit.by, "unit": schema.unit.name}
        rule = say("the {which} record by {by} of each {unit}; others are not used", **words)
        if schema.unit.added:
            rule += say(", except for totals over all records: {columns}", columns=", ".join(schema.unit.added))
        items.append((say("several records of one unit"), rule))
    if report.effect.sites:
        items.append((say("several sites"), say("pooled by: {rule}", rule=study.pooling_in_words)))
    columns: list[tuple[str, TableColumn]] = [(_ROLES[0], schema.treatment), (_ROLES[1], schema.outcome)]
    columns += [(_ROLES[2], column) for column in schema.covariates]
    lines = tuple((column.name, say(role), _handling(column, say), _missing(column, say)) for role, column in columns)
    head = (say("column"), say("role"), say("values"), say("a missing value counts as"))
    table = Table(say("Declared columns"), head, lines)
    notes = (
        say("These inputs must not be derived from the table, except by a query that was paid for."),
        say("Values outside the bounds were clipped to them; undeclared values count as missing."),
        say("dpcausal tuned nothing on the data and read nothing that was not paid for."),
    )
    return Section("inputs", title, items=tuple(items), tables=(table,), notes=notes)


def _missing(column: TableColumn, say: Language) -> str:
    if isinstance(column, Treatment):
        return say("outside the comparison") if column.undeclared is None else column.label(column.undeclared)
    if isinstance(column, Real):
        return say.short(column.missing_value)
    if isinstance(column, Binary):
        return str(dict(zip(column.values, column.labels_or_values, strict=True))[column.missing_value])
    return str(column.missing_value)


def _handling(column: TableColumn, say: Language) -> str:
    return f"{_values(column, say)}; {column.rules}" if column.rules else _values(column, say)


def _values(column: TableColumn, say: Language) -> str:
    if isinstance(column, Treatment):
        return column.described
    if isinstance(column, Real):
        words = [say("{low} to {high}", low=say.short(column.low), high=say.short(column.high))]
        if column.typical:
            low, high = map(say.short, column.typical)
            words.append(say("typically {low} to {high}", low=low, high=high))
        if column.transform:
            words.append(say(_SHAPES[column.transform]))
        return ", ".join(words)
    either = say(" or ")
    if isinstance(column, Binary) and column.labels:
        return either.join(f"{value} ({label})" for value, label in zip(column.values, column.labels, strict=True))
    return either.join(map(str, column.values))


def _describe(value: Any) -> str:  # noqa: ANN401 (an estimator or one of its parameters)
    """Return a value in words: a dataclass by the fields that differ from their defaults, a list by its items."""
    if is_dataclass(value) and not isinstance(value, type):
        chosen = ((part.name, getattr(value, part.name), part.default) for part in fields(value))
        parts = ", ".join(f"{name} {_describe(part)}" for name, part, usual in chosen if part not in (None, usual))
        return f"{type(value).__name__} ({parts})" if parts else type(value).__name__
    if isinstance(value, tuple | list):
        return "; ".join(map(_describe, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
