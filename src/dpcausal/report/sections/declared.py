"""The sections on what was declared before any data was read: the question, the design, and the public inputs."""

from dataclasses import fields, is_dataclass
from typing import Any

from dpcausal.page.numbers import short
from dpcausal.report.section import ReportInputs, Section, Table
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn, Treatment

_UNSPECIFIED = "not specified"
_NO_STUDY = "No study file was given with this report."
_SHAPES = {"linear": "in models by its value", "log": "in models by its logarithm"}
_ROLES = ("treatment", "outcome", "covariate")


def question(report: ReportInputs) -> Section:
    """State the question and the design."""
    study, effect = report.study, report.effect
    title = "Question and design"
    if study is None:
        asked = f"The effect of {effect.arms[1]} against {effect.arms[0]} on {effect.outcome}."
        version = (f"Data as of {effect.as_of}.",) if effect.as_of else ()
        return Section("question", title, paragraphs=(asked, *version, _NO_STUDY))
    items = [
        ("study", study.name),
        *([("data as of", effect.as_of)] if effect.as_of else []),
        ("question", study.question),
        ("design", "randomised trial" if study.design == "trial" else "observational"),
        ("eligibility", study.eligibility or _UNSPECIFIED),
        ("time zero", study.time_zero or _UNSPECIFIED),
        ("treatment strategies", f"{effect.arms[1]}, compared with {effect.arms[0]}"),
        ("outcome", effect.outcome),
        ("estimand", effect.estimand),
    ]
    for name in study.adjusts_for:
        reason = study.confounders.get(name) or "no reason given"
        items.append((f"adjusted for {name}", reason))
    nothing = "as its formula does" if report.scale.described else "nothing"
    items += [] if study.adjusts_for else [("adjusted for", nothing)]
    return Section("question", title, items=tuple(items))


def inputs(report: ReportInputs) -> Section:
    """List every public input, its source, and how values were handled before anything was summed."""
    study = report.study
    title = "Public inputs and data handling"
    if study is None:
        return Section("inputs", title, paragraphs=(_NO_STUDY, "See the assumptions."))
    schema, bounds = study.schema, study.bounds
    items = [
        ("bounds and values chosen by", bounds.get("by") or _UNSPECIFIED),
        ("chosen on", bounds.get("on") or _UNSPECIFIED),
        ("source of the bounds", bounds.get("source") or _UNSPECIFIED),
        ("epsilon and delta of the study", f"{short(study.epsilon)} and {short(study.delta)}"),
        *((f"epsilon at {site}", short(epsilon)) for site, epsilon in study.epsilons.items()),
        ("estimator", _describe(study.estimator)),
    ]
    if schema.unit is not None:
        rule = f"the {schema.unit.keep} record by {schema.unit.by} of each {schema.unit.name}; others are not used"
        if schema.unit.added:
            rule += f", except for totals over all records: {', '.join(schema.unit.added)}"
        items.append(("several records of one unit", rule))
    if report.effect.sites:
        items.append(("several sites", f"pooled by: {study.pooling_in_words}"))
    columns: list[tuple[str, TableColumn]] = [(_ROLES[0], schema.treatment), (_ROLES[1], schema.outcome)]
    columns += [(_ROLES[2], column) for column in schema.covariates]
    lines = tuple((column.name, role, _handling(column), _missing(column, schema)) for role, column in columns)
    head = ("column", "role", "values", "a missing value counts as")
    table = Table("Declared columns", head, lines)
    notes = (
        "These inputs must not be derived from the table, except by a query that was paid for.",
        "Values outside the bounds were clipped to them; undeclared values count as missing.",
        "dpcausal tuned nothing on the data and read nothing that was not paid for.",
    )
    return Section("inputs", title, items=tuple(items), tables=(table,), notes=notes)


def _missing(column: TableColumn, schema: Schema) -> str:
    if column in schema.required_columns:
        return "outside the comparison"
    if isinstance(column, Treatment):
        return "outside the comparison" if column.undeclared is None else column.label(column.undeclared)
    if isinstance(column, Real):
        return short(column.missing_value)
    if isinstance(column, Binary):
        return str(dict(zip(column.values, column.labels_or_values, strict=True))[column.missing_value])
    return str(column.missing_value)


def _handling(column: TableColumn) -> str:
    return f"{_values(column)}; {column.rules}" if column.rules else _values(column)


def _values(column: TableColumn) -> str:
    if isinstance(column, Treatment):
        return column.described
    if isinstance(column, Real):
        words = [f"{short(column.low)} to {short(column.high)}"]
        if column.typical:
            low, high = map(short, column.typical)
            words.append(f"typically {low} to {high}")
        if column.transform:
            words.append(_SHAPES[column.transform])
        return ", ".join(words)
    either = " or "
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
