"""How cells were read, in words: what a reader of an effect should know of the table behind it."""

from collections.abc import Sequence

from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Column, Indicator, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import Treatment


def data_handling(
    treatment: Treatment, outcome: Real | Binary, unit: Unit | None, required_columns: Sequence[Column]
) -> tuple[str, ...]:
    """Return how the treatment and the outcome were read, the treatment first."""
    arms, may_be_missing = _arms_read(treatment), outcome in required_columns
    rules = (f"outcomes were read as {outcome.rules}",) if outcome.rules else ()
    others = (column.name for column in required_columns if column != outcome)
    required = tuple(f"outside the comparison: units without {name}" for name in others)
    if isinstance(outcome, Binary) and unit and outcome.name in unit.sum:
        yes = outcome.labels_or_values[1]
        return arms, f"the outcome is {yes} where any record of a {unit.name} says so", *rules, *required
    if isinstance(outcome, Binary):
        missing = (
            "outside the comparison: units whose outcome is missing or unknown"
            if may_be_missing
            else f"a missing or unknown outcome counted as {outcome.missing_value}"
        )
        return arms, missing, *rules, *required
    low, high = outcome.low, outcome.high
    if unit and outcome.name in unit.added:
        each = "records" if outcome.name in unit.sum else "records where it is not empty"
        if outcome.name in unit.sum and not rules:
            rules = (f"numbers in text were read as in {outcome.example}",)
        return (
            arms,
            f"the outcome is a total over the {each} of each {unit.name}; what is missing adds nothing",
            f"totals lie within {low:,g} and {high:,g}; totals beyond were moved to the bound",
            *rules,
            *required,
        )
    missing = (
        "outside the comparison: units whose outcome is missing or no number"
        if may_be_missing
        else f"a missing outcome, or one that is no number, counted as {outcome.missing_value:,g}"
    )
    return (
        arms,
        missing if rules else f"{missing}; numbers in text were read as in {outcome.example}",
        f"outcomes lie within {low:,g} and {high:,g}; values beyond were moved to the bound",
        *rules,
        *required,
    )


def covariate_handling(used: Sequence[Column]) -> tuple[str, ...]:
    """Return as what cells of some covariates count that are missing or not declared; nothing without covariates."""
    indicated = {column.of.name for column in used if isinstance(column, Indicator)}
    words = [
        f"{column.name} {_plain(column.missing_value)}{' with an indicator' if column.name in indicated else ''}"
        for column in used
        if not isinstance(column, Indicator)
    ]
    return (f"a covariate that is missing or not declared counted as: {', '.join(words)}",) if words else ()


def _arms_read(treatment: Treatment) -> str:
    """Return where units count that are in neither arm by the table's own word."""
    outside = ", ".join(map(treatment.label, treatment.outside))
    if treatment.undeclared is None:
        arms = f"other arms ({outside}) and units" if outside else "units"
        return f"outside the comparison: {arms} whose arm is missing or not declared"
    left_out = f"outside the comparison: {outside}; " if outside else ""
    return f"{left_out}a missing or undeclared arm counted as {treatment.label(treatment.undeclared)}"


def _plain(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:,g}"
