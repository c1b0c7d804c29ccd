"""What columns must be: the outcome, those in which a unit's records are added up, and that of a unit's entry."""

from collections.abc import Sequence

from dpcausal.errors import SchemaError
from dpcausal.schema.columns import Binary, Column, Indicator, Real, Unit, check_name
from dpcausal.schema.treatment import TableColumn


def check_outcome(outcome: Real | Binary) -> None:
    """Raise where an outcome declares what only covariates have."""
    if outcome.indicator:
        raise SchemaError(
            problem=f"indicator=True is for covariates, and not for the outcome {outcome.name!r}",
            hint="leave it out: a unit without an outcome is outside the comparison.",
        )
    if isinstance(outcome, Real) and outcome != outcome.measured:
        raise SchemaError(
            problem=f"typical, transform and scale are for covariates, and not for the outcome {outcome.name!r}",
            hint="leave them out: an outcome is measured between its bounds; narrower bounds make it more precise.",
        )


def check_added(unit: Unit, columns: Sequence[Column]) -> None:
    """Raise unless columns that are added up over a unit's records have a total."""
    named = {column.name: column for column in columns}
    for name in unit.added:
        column = named.get(name)
        is_number = isinstance(column, Real) and not (
            column.since or column.indicator or (name in unit.count and column.missing_codes)
        )
        is_answer = isinstance(column, Binary) and not (isinstance(column, Indicator) or column.indicator)
        if not (is_number or (name in unit.sum and is_answer)):
            raise SchemaError(
                problem=f"{name!r} must be a Real without dates, indicator and, where it is counted, missing "
                "codes; or, "
                "where it is summed, a Binary. It is "
                f"{column or 'the name of no outcome or covariate'}",
                hint="only these have a total over a unit's records; a total is never missing.",
            )


def check_entry(entry: str, columns: Sequence[TableColumn], unit: Unit | None) -> None:
    """Raise where the column of entry is one whose value may change while the table grows.

    Args:
        columns: The treatment, the outcome and the covariates, in this order.
        unit: How several records of one unit become one.
    """
    check_name(entry)
    column = next((each for each in columns if each.name == entry), None)
    for changes, got in (
        (column in columns[:2], "the treatment or the outcome"),
        (isinstance(column, Indicator), "whether a covariate is missing"),
        (unit is not None and entry == unit.name, "the column that says whose a record is"),
        (unit is not None and entry in unit.added, "a total over a unit's records, which grows"),
        (unit is not None and unit.keep == "last", 'keep="last": a later record may say otherwise'),
    ):
        if changes:
            raise SchemaError(
                problem=f"The column of entry, {entry!r}, must have a value that never changes for a unit, "
                f"and it is {got}",
                hint='name the column with the day or week in which a unit entered, and use Unit(…, keep="first").',
            )
