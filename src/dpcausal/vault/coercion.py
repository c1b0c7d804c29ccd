"""Any table forced into its schema, row by row, as one SQL text.

Every row becomes a few integers, each made from that row alone and held within public limits. No value can make this
fail: what does not read as declared counts as the declared missing value. Numbers are written as CAST('0.1' AS DOUBLE),
and rounding as FLOOR(x + 0.5), because engines agree on these to the last bit and on shorter spellings they do not.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from dpcausal.columns import Binary, Category, Column, Real, Value
from dpcausal.errors import TableError
from dpcausal.queries import GRID
from dpcausal.queries.profiles import grid, steps_of
from dpcausal.schema import Schema

Family = Literal["number", "boolean", "text", "key", "other"]
"""What a column's data type lets one do with it; a key only names or orders. Types are public, values are not."""

SOURCE = "dpcausal_source"
"""The name under which the SQL text knows the table."""


def column_names(schema: Schema) -> tuple[str, ...]:
    """What coerced columns are called: treatment, outcome, covariate_0, covariate_1 and so on."""
    return ("treatment", "outcome", *(f"covariate_{place}" for place in range(len(schema.covariates))))


def columns_used(schema: Schema) -> tuple[str, ...]:
    """The table's columns that the schema needs."""
    unit = (schema.unit.name, schema.unit.by) if schema.unit else ()
    return tuple(dict.fromkeys((*(column.name for column in schema.columns), *unit)))


def coerced(schema: Schema, families: Mapping[str, Family]) -> str:
    """The SQL text of the coerced table, with one row for each unit."""
    check_columns(columns_used(schema), list(families))
    read, steps = [], []
    for place, (column, name) in enumerate(zip(schema.columns, column_names(schema), strict=True)):
        read.append(f"{_read(column, families[column.name])} AS read_{place}")
        code = _real_steps(column, f"read_{place}") if isinstance(column, Real) else _code(column, f"read_{place}")
        if name == "outcome" and not isinstance(column, Real):
            code = f"{2 * GRID} * ({code}) - {GRID}"
        steps.append(f"CAST({code} AS BIGINT) AS {name}")  # products of two columns must not overflow
    if schema.unit is None:
        return f"SELECT {', '.join(steps)} FROM (SELECT {', '.join(read)} FROM {SOURCE})"  # noqa: S608
    by = schema.unit.by
    number = f"TRY_CAST({_quoted(by)} AS DOUBLE)" if families[by] == "text" else "CAST(NULL AS DOUBLE)"
    keys = f"{_key(schema.unit.name, families)} AS unit, {number} AS number_by, {_key(by, families)} AS place_by"
    rows = f"SELECT {', '.join(steps)}, unit, number_by, place_by FROM (SELECT {', '.join(read)}, {keys} FROM {SOURCE})"  # noqa: S608
    names = ", ".join(column_names(schema))
    # The outcome comes last, so that where it alone is protected it does not decide on anything public.
    ties = ", ".join(sorted(column_names(schema), key="outcome".__eq__))
    direction = f"{'ASC' if schema.unit.keep == 'first' else 'DESC'} NULLS LAST"
    order = f"number_by {direction}, place_by {direction}, {ties}"
    numbered = f"SELECT {names}, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY {order}) AS place FROM ({rows})"  # noqa: S608
    return f"SELECT {names} FROM ({numbered}) WHERE place = 1"  # noqa: S608


def _key(name: str, families: Mapping[str, Family]) -> str:
    """A column that names or orders units; text as its bytes, since DuckDB corrupts rows when it sorts broken text."""
    if families[name] == "other":
        raise TableError(
            expected=f"a column {name!r} of numbers, text, dates or times",
            got="another type",
            hint="convert the column to one of these.",
        )
    return f"encode(CAST({_quoted(name)} AS VARCHAR))" if families[name] == "text" else _quoted(name)


def check_columns(needed: Sequence[str], present: Sequence[str]) -> None:
    """Raise unless the table has each needed column exactly once, capitals aside."""
    folded = [str(name).casefold() for name in present]
    for name in needed:
        if name not in present or folded.count(name.casefold()) != 1:
            raise TableError(
                expected=f"one column named {name!r}",
                got=f"columns {', '.join(map(repr, present))}",
                hint="correct the name in the schema, or rename columns that differ only in capitals.",
            )


def _read(column: Column, family: Family) -> str:
    """A column as DOUBLE, or as text where text is declared; NULL where it does not read so."""
    source = _quoted(column.name)
    numeric = isinstance(column, Real) or not isinstance(column.values[0], str)
    if family in ("key", "other") or not (numeric or family == "text"):
        raise TableError(
            expected=f"a column {column.name!r} of {'numbers or text' if numeric else 'text'}",
            got="dates, lists or another type" if family in ("key", "other") else f"a {family} type",
            hint="convert the column, or declare its values as they stand in the table.",
        )
    if not numeric:
        return f"CAST({source} AS VARCHAR)"
    if family == "boolean":
        return f"CAST(CAST({source} AS INTEGER) AS DOUBLE)"
    return f"TRY_CAST({source} AS DOUBLE)" if family == "text" else f"CAST({source} AS DOUBLE)"


def _real_steps(column: Real, value: str) -> str:
    """Steps from the middle of the range, from -GRID to GRID whatever floating point does on the way."""
    middle, per_step = grid(column)
    missing = steps_of(column, column.missing_value)
    clipped = f"LEAST(GREATEST({value}, {_literal(column.low)}), {_literal(column.high)})"
    rounded = f"FLOOR(({clipped} - {_literal(middle)}) * {_literal(per_step)} + {_literal(0.5)})"
    bounded = f"LEAST(GREATEST({rounded}, {_literal(float(-GRID))}), {_literal(float(GRID))})"
    return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN {missing} ELSE {bounded} END"


def _code(column: Binary | Category, value: str) -> str:
    """The place of a value in the declared list."""
    cases = " ".join(f"WHEN {value} = {_literal(each)} THEN {code}" for code, each in enumerate(column.values))
    return f"CASE {cases} ELSE {list(column.values).index(column.missing_value)} END"


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
