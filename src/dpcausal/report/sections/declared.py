"""The sections on what was declared before any data was read: the question, the design, and the public inputs."""

from dataclasses import fields, is_dataclass
from typing import Any

from dpcausal.columns import Binary
from dpcausal.real import Real
from dpcausal.report.section import ReportInputs, Section, Table
from dpcausal.treatment import TableColumn, Treatment

_UNSPECIFIED = "not specified"
_NO_STUDY = "No study file was given with this report."


def question(report: ReportInputs) -> Section:
    """State the question and the design."""
    study, effect = report.study, report.effect
    if study is None:
        asked = f"The effect of {effect.arms[1]} against {effect.arms[0]} on {effect.outcome}."
        version = (f"Data as of {effect.as_of}.",) if effect.as_of else ()
        return Section("question", "Question and design", paragraphs=(asked, *version, _NO_STUDY))
    items = [
        ("study", study.name),
        *([("data as of", effect.as_of)] if effect.as_of else []),
        ("question", study.question),
        ("design", "randomised trial" if study.design == "trial" else study.design),
        ("eligibility", study.eligibility or _UNSPECIFIED),
        ("time zero", study.time_zero or _UNSPECIFIED),
        ("treatment strategies", f"{effect.arms[1]}, compared with {effect.arms[0]}"),
        ("outcome", effect.outcome),
        ("estimand", effect.estimand),
    ]
    items += [(f"adjusted for {name}", study.confounders.get(name, "no reason given")) for name in study.adjusts_for]
    items += [] if study.adjusts_for else [("adjusted for", "nothing")]
    return Section("question", "Question and design", items=tuple(items))


def inputs(report: ReportInputs) -> Section:
    """List every public input, its source, and how values were handled before anything was summed."""
    title, study = "Public inputs and data handling", report.study
    if study is None:
        return Section("inputs", title, paragraphs=(f"{_NO_STUDY} See the assumptions.",))
    schema, bounds = study.schema, study.bounds
    items = [
        ("bounds and values chosen by", bounds.get("by", _UNSPECIFIED)),
        ("chosen on", bounds.get("on", _UNSPECIFIED)),
        ("source of the bounds", bounds.get("source", _UNSPECIFIED)),
        ("epsilon and delta of the study", f"{study.epsilon:g} and {study.delta:g}"),
        *((f"epsilon at {site}", f"{epsilon:g}") for site, epsilon in study.epsilons.items()),
        ("estimator", _describe(study.estimator)),
    ]
    if schema.unit is not None:
        rule = f"the {schema.unit.keep} record by {schema.unit.by} of each {schema.unit.name}; others are not used"
        if schema.unit.added:
            rule += f", except for totals over all records: {', '.join(schema.unit.added)}"
        items.append(("several records of one unit", rule))
    if report.effect.sites:
        items.append(("several sites", f"pooled by: {study.pooling_in_words}"))
    columns: list[tuple[str, TableColumn]] = [("treatment", schema.treatment), ("outcome", schema.outcome)]
    columns += [("covariate", column) for column in schema.covariates]
    lines = tuple((column.name, role, _handling(column), str(_missing(column))) for role, column in columns)
    table = Table("Declared columns", ("column", "role", "values", "a missing value counts as"), lines)
    notes = (
        "These inputs must not be derived from the table, except by a query that was paid for.",
        "Values outside the bounds were clipped to them; undeclared values count as missing.",
        "dpcausal tuned nothing on the data and read nothing that was not paid for.",
    )
    return Section("inputs", title, items=tuple(items), tables=(table,), notes=notes)


def _missing(column: TableColumn) -> object:
    if isinstance(column, Treatment):
        return "outside the comparison" if column.undeclared is None else column.label(column.undeclared)
    if isinstance(column, Real):
        return f"{column.missing_value:g}"
    if isinstance(column, Binary):
        return dict(zip(column.values, column.labels_or_values, strict=True))[column.missing_value]
    return column.missing_value


def _handling(column: TableColumn) -> str:
    return f"{_values(column)}; {column.rules}" if column.rules else _values(column)


def _values(column: TableColumn) -> str:
    if isinstance(column, Treatment):
        return column.described
    if isinstance(column, Real):
        return f"{column.low:,g} to {column.high:,g}"
    if isinstance(column, Binary) and column.labels:
        return " or ".join(f"{value} ({label})" for value, label in zip(column.values, column.labels, strict=True))
    return " or ".join(map(str, column.values))


def _describe(value: Any) -> str:  # noqa: ANN401 (an estimator or one of its parameters)
    """Return a value in words: a dataclass by the fields that differ from their defaults, a list by its items."""
    if is_dataclass(value) and not isinstance(value, type):
        chosen = ((part.name, getattr(value, part.name), part.default) for part in fields(value))
        parts = ", ".join(f"{name} {_describe(part)}" for name, part, usual in chosen if part not in (None, usual))
        return f"{type(value).__name__} ({parts})" if parts else type(value).__name__
    if isinstance(value, tuple | list):
        return "; ".join(map(_describe, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
