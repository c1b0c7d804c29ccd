"""The sections of a report about what was declared before anything was read: the question, and every public input."""

from dataclasses import fields, is_dataclass
from typing import Any

from dpcausal.columns import Binary
from dpcausal.real import Real
from dpcausal.report.inputs import ReportInputs
from dpcausal.report.section import Section, Table
from dpcausal.treatment import TableColumn, Treatment

_UNSAID = "not said"


def question(report: ReportInputs) -> Section:
    """What was asked, of whom, by which design."""
    study, effect = report.study, report.effect
    if study is None:
        asked = f"The effect of {effect.arms[1]} against {effect.arms[0]} on {effect.outcome}."
        version = (f"Data as of {effect.as_of}.",) if effect.as_of else ()
        says = (asked, *version, "No study file was given with this report.")
        return Section("question", "Question and design", paragraphs=says)
    items = [
        ("study", study.name),
        *([("data as of", effect.as_of)] if effect.as_of else []),
        ("question", study.question),
        ("design", "trial: chance decided who was treated" if study.design == "trial" else study.design),
        ("eligibility", study.eligibility or _UNSAID),
        ("time zero", study.time_zero or _UNSAID),
        ("treatment strategies", f"{effect.arms[1]}, and {effect.arms[0]} to compare with"),
        ("outcome", effect.outcome),
        ("estimand", effect.estimand),
    ]
    items += [(f"adjusted for {name}", study.confounders.get(name, "no reason given")) for name in study.adjusts_for]
    items += [] if study.adjusts_for else [("adjusted for", "nothing")]
    return Section("question", "Question and design", items=tuple(items))


def inputs(report: ReportInputs) -> Section:
    """Every public input, who supplied it, and what was done with values before anything was added up."""
    title, study = "Public inputs, and how values were read", report.study
    if study is None:
        return Section("inputs", title, paragraphs=("No study file was given with this report; see the assumptions.",))
    schema, bounds = study.schema, study.bounds
    items = [
        ("who chose bounds and values", bounds.get("by", _UNSAID)),
        ("when", bounds.get("on", _UNSAID)),
        ("where they come from", bounds.get("source", _UNSAID)),
        ("epsilon and delta, chosen by the study", f"{study.epsilon:g} and {study.delta:g}"),
        *((f"epsilon of {site}", f"{epsilon:g}") for site, epsilon in study.epsilons.items()),
        ("estimator", _spelled(study.estimator)),
    ]
    if schema.unit is not None:
        rule = f"{schema.unit.keep} record by {schema.unit.by} of each {schema.unit.name}; others were not read"
        items.append(("several records of one unit", rule))
    if report.effect.sites:
        items.append(("several sites", f"pooled by {study.pooling.replace('_', ' ')}"))
    columns: list[tuple[str, TableColumn]] = [("treatment", schema.treatment), ("outcome", schema.outcome)]
    columns += [("covariate", column) for column in schema.covariates]
    lines = tuple((column.name, role, _read(column), str(_missing(column))) for role, column in columns)
    table = Table("Columns as declared", ("column", "as", "values", "a missing value counts as"), lines)
    notes = (
        "Nothing here may come from the table, unless it was asked of it for a price.",
        "Values outside bounds were moved to the bound, and unknown ones count as missing.",
        "dpcausal tuned nothing on the data, and looked at nothing that is not paid for.",
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


def _read(column: TableColumn) -> str:
    return f"{_declared(column)}; {column.rules}" if column.rules else _declared(column)


def _declared(column: TableColumn) -> str:
    if isinstance(column, Treatment):
        return column.described
    if isinstance(column, Real):
        return f"{column.low:,g} to {column.high:,g}"
    if isinstance(column, Binary) and column.labels:
        return " or ".join(f"{value} ({label})" for value, label in zip(column.values, column.labels, strict=True))
    return " or ".join(map(str, column.values))


def _spelled(value: Any) -> str:  # noqa: ANN401 (an estimator or one of its parameters)
    """A value as a person would read it: dataclasses by those parts that were chosen, lists by their items."""
    if is_dataclass(value) and not isinstance(value, type):
        chosen = ((part.name, getattr(value, part.name), part.default) for part in fields(value))
        parts = ", ".join(f"{name} {_spelled(part)}" for name, part, usual in chosen if part not in (None, usual))
        return f"{type(value).__name__} ({parts})" if parts else type(value).__name__
    if isinstance(value, tuple | list):
        return "; ".join(map(_spelled, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
