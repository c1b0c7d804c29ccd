"""Any table forced into its schema, row by row, as one SQL text.

Every row becomes a few integers, each made from that row alone and held within public limits. No value can make this
fail: what does not read as declared counts as the declared missing value, and a row that lacks what is required counts
in no arm. Numbers are written as CAST('0.1' AS DOUBLE), rounding as FLOOR(x + 0.5) and texts as their bytes, because
engines agree on these to the last bit and on shorter spellings they do not.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal

from dpcausal.errors import TableError
from dpcausal.queries import GRID
from dpcausal.schema.columns import Binary, Category, Column, Indicator, Unit
from dpcausal.schema.layer import LayerClaim
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import EveryArm, TableColumn, Treatment, table_column
from dpcausal.vault.engines import OUTSIDE
from dpcausal.vault.engines.dialects import DUCKDB, Dialect
from dpcausal.vault.parsing import days_in_text, literal, number_in_text, since, text_literals, value_in_text
from dpcausal.vault.ticks import as_ticks, without_underflow

Family = Literal["integer", "number", "wide number", "boolean", "text", "date", "key", "other"]
"""What a column's data type lets one do with it; a key only names or orders, an integer has at most 64 bits, a wide
number may be a whole number of more, and a date may have a time of day but no time zone. Types are public, values are
not."""

SOURCE = DUCKDB.source
"""The name under which DuckDB's SQL text knows the table."""


def column_names(schema: Schema) -> tuple[str, ...]:
    """Return what coerced columns are called: treatment, outcome, covariate_0, covariate_1 and so on, and arm."""
    return ("treatment", "outcome", *(f"covariate_{place}" for place in range(len(schema.covariates))), "arm")


def columns_used(schema: Schema) -> tuple[str, ...]:
    """Return the table's columns that the schema needs."""
    unit = (schema.unit.name, schema.unit.by) if schema.unit else ()
    claim = (schema.claim.layer.column,) if schema.claim else ()
    return tuple(dict.fromkeys((*map(table_column, schema.columns), *unit, *claim)))


def columns_behind(schema: Schema, coerced_columns: Collection[str]) -> frozenset[str]:
    """Return the coerced columns whose cells decide on some: who is in an arm depends on what is required of units."""
    names = dict(zip([column.name for column in schema.columns], column_names(schema), strict=False))
    arms = not {"treatment", "arm"}.isdisjoint(coerced_columns)
    required = {names[column.name] for column in schema.required_columns} if arms else set()
    return frozenset(coerced_columns) | required


def dated_columns(schema: Schema) -> frozenset[str]:
    """Return the table's columns that are declared to hold dates."""
    held = (column.of if isinstance(column, Indicator) else column for column in schema.columns)
    return frozenset(column.name for column in held if isinstance(column, Real) and column.since)


def coerced(
    schema: Schema,
    families: Mapping[str, Family],
    dialect: Dialect = DUCKDB,
    only: Collection[str] | None = None,
    *,
    floating: bool = False,
) -> str:
    """Return the SQL text of the coerced table, with one row for each unit.

    Args:
        families: What its columns' types let one do with them.
        only: Coerced columns to which the text may be cut, if nothing decides on units.
        floating: Whether numbers in ticks are left as DOUBLE. Codes are integers in any case.
    """
    check_columns(columns_used(schema), list(families))
    cells, read, ticks, events, totals = {}, {}, {}, {}, {}
    unit = schema.unit
    columns = (*schema.columns, schema.treatment.every_arm)
    for place, (column, name) in enumerate(zip(columns, column_names(schema), strict=True)):
        family, held = families[table_column(column)], column.of if isinstance(column, Indicator) else column
        value, is_counted = f"read_{place}", unit is not None and column.name in unit.count
        cell = dialect.column(column.name) if is_counted else _cell(held, family, dialect)
        cells[name] = f"{cell} AS cell_{place}"
        made = _is_present(f"cell_{place}", family) if is_counted else _read(held, family, dialect, f"cell_{place}")
        read[name] = f"{made} AS {value}"
        if unit is not None and column.name in unit.added:
            event, total = _added(column, value, f"event_{place}", family, dialect)
            events[name], totals[name] = f"{event} AS event_{place}", f"{total} AS total_{place}"
            value = f"total_{place}"
        code = value if name in events and not isinstance(column, Real) else _ticks(column, value, family, dialect)
        if name == "outcome" and not isinstance(column, Real):
            code = f"{2 * GRID} * ({code}) - {GRID}"
        if isinstance(column, Treatment):
            code = _among_compared(column, code, schema, families, dialect)
        ticks[name] = f"{code if floating and isinstance(column, Real) else f'CAST({code} AS INTEGER)'} AS {name}"
    claim = schema.claim
    if claim is not None:
        cells["bucket"], read["bucket"], ticks["bucket"] = _bucket(claim, families, dialect)
    if unit is None:
        kept = [name for name in read if only is None or name in only] or ["treatment"]
        used = [name for name in read if name in (*columns_behind(schema, kept), "bucket")]
        first, then = (", ".join(each[name] for name in used) for each in (cells, read))
        last = ", ".join(ticks[name] for name in dict.fromkeys((*kept, *(["bucket"] if claim else []))))
        text = f"SELECT {last} FROM (SELECT {then} FROM (SELECT {first} FROM {dialect.source}))"  # noqa: S608
        return f"SELECT {', '.join(kept)} FROM ({text}) WHERE {_is_claimed(claim)}" if claim else text  # noqa: S608
    by = unit.by
    number = _order(unit, dialect) if families[by] == "text" else "CAST(NULL AS DOUBLE)"
    who, when = (_key(name, families[name], dialect) for name in (unit.name, by))
    keys = f"{who} AS unit, {number} AS number_by, {when} AS place_by"
    keyed = f"SELECT {', '.join(cells.values())}, {keys} FROM {dialect.source}"  # noqa: S608
    read_cells = f"SELECT {', '.join(read.values())}, unit, number_by, place_by FROM ({keyed})"  # noqa: S608
    one_of_them = [name for name in ticks if name not in events and name != "bucket"]
    coded = ", ".join([*(ticks[name] for name in one_of_them), *events.values(), *([ticks["bucket"]] if claim else [])])
    rows = f"SELECT {coded}, unit, number_by, place_by FROM ({read_cells})"  # noqa: S608
    # Arms come first and the outcome last, so that nothing protected decides on anything that may be public.
    ties = ", ".join(sorted(one_of_them, key=lambda name: (name not in ("treatment", "arm"), name == "outcome")))
    direction = f"{'ASC' if unit.keep == 'first' else 'DESC'} NULLS LAST"
    order = f"number_by {direction}, place_by {direction}, {ties}"
    chosen = ", ".join([*one_of_them, *totals.values(), *(_UNIT_BUCKET if claim else ())])
    numbered = f"SELECT {chosen}, ROW_NUMBER() OVER (PARTITION BY unit ORDER BY {order}) AS place FROM ({rows})"  # noqa: S608
    last = ", ".join(ticks[name] if name in events else name for name in ticks if name != "bucket")
    kept_rows = f"place = 1 AND {_is_claimed(claim)} AND bucket = -(opposite_bucket)" if claim else "place = 1"
    return f"SELECT {last} FROM ({numbered}) WHERE {kept_rows}"  # noqa: S608


_UNIT_BUCKET = (
    "MAX(bucket) OVER (PARTITION BY unit) AS bucket",
    "MAX(-(bucket)) OVER (PARTITION BY unit) AS opposite_bucket",
)
"""The largest bucket of a unit's records, and the least with the sign turned: whose differ is in no bucket."""


def _bucket(claim: LayerClaim, families: Mapping[str, Family], dialect: Dialect) -> tuple[str, str, str]:
    """Return the bucket of a record as it stands, as it is read, and as its number; -1 where it is none."""
    most = claim.layer.buckets - 1
    column = Real(claim.layer.column, 0, most)
    family = families[column.name]
    cell, value = _cell(column, family, dialect), "read_bucket"
    none, ends = literal(-1.0), f"{literal(0.0)} AND {literal(float(most))}"
    whole = f"CASE WHEN {value} = FLOOR({value}) THEN FLOOR({value}) ELSE {none} END"
    number = f"CAST(CASE WHEN {value} BETWEEN {ends} THEN {whole} ELSE {none} END AS INTEGER)"
    read = _read(column, family, dialect, "cell_bucket")
    return f"{cell} AS cell_bucket", f"{read} AS {value}", f"{number} AS bucket"


def _is_claimed(claim: LayerClaim) -> str:
    """Return whether a unit is in one of the claimed buckets: all that may keep it out of the table."""
    return f"({' OR '.join(f'bucket BETWEEN {first} AND {last}' for first, last in claim.ranges)})"


_EVENT_BITS, _EXACT_BITS = 40, 52


def _added(column: TableColumn, value: str, event: str, family: Family, dialect: Dialect) -> tuple[str, str]:
    """Return what one record adds to its unit's total, as an integer, and the total of what is called `event`.

    A number is rounded to a multiple of a power of two, 2^40 of which are no less than the larger bound, so that sums
    are exact, and no order of records and no engine makes a difference. A record counts for at most 2^12 to 2^13
    times that bound, and one that is no number for nothing. The sums of 2^40 records of these fit into a DECIMAL.

    Before this, nothing bounds how many records a unit has: only the total is moved to the column's bounds, later.
    """
    over = "OVER (PARTITION BY unit)"
    if not isinstance(column, Real):
        yes = _spelled(column, family, dialect)[1]
        return f"CASE WHEN {value} IN ({yes}) THEN 1 ELSE 0 END", f"MAX({event}) {over}"
    size = math.frexp(max(abs(column.low), abs(column.high)))[1]
    to_one, most = 2.0 ** (_EVENT_BITS - size), 2.0 ** (_EXACT_BITS - _EVENT_BITS + size)
    low, high = literal(-most), literal(most)
    within = (
        f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} WHEN {value} < {low} THEN {low} "
        f"WHEN {value} <= {literal(math.inf)} THEN {high} ELSE {literal(0.0)} END"
    )
    number = without_underflow(within, to_one)
    one = f"CAST(CAST(FLOOR(({number}) * {literal(to_one)} + {literal(0.5)}) AS BIGINT) AS DECIMAL(18, 0))"
    least, greatest = (f"CAST({sign}{2**_EXACT_BITS} AS DECIMAL(18, 0))" for sign in ("-", ""))
    total = f"CAST(LEAST(GREATEST(SUM({event}) {over}, {least}), {greatest}) AS BIGINT)"
    return one, f"CAST({total} AS DOUBLE) / {literal(to_one)}"


def _is_present(cell: str, family: Family) -> str:
    """Return 1 where a cell is not empty and 0 where it is, as DOUBLE."""
    present = f"CAST({cell} AS DOUBLE) <= {literal(math.inf)}" if family == "number" else f"{cell} IS NOT NULL"
    return f"CASE WHEN {present} THEN {literal(1.0)} ELSE {literal(0.0)} END"


def _order(unit: Unit, dialect: Dialect) -> str:
    """Return the day or the number that a text is by which a unit's records are ordered, as DOUBLE; NULL if none."""
    column = dialect.column(unit.by)
    return days_in_text(unit, dialect.folded(column), dialect) if unit.formats else dialect.number(column)


def _key(name: str, family: Family, dialect: Dialect) -> str:
    """Return a column that names or orders units; text as bytes: DuckDB corrupts rows when it sorts broken text."""
    if family == "other":
        raise TableError(
            problem=f"The column {name!r} holds neither numbers, text, dates nor times",
            hint="convert the column to one of these.",
        )
    return dialect.text(dialect.column(name)) if family == "text" else dialect.column(name)


def check_columns(needed: Sequence[str], present: Sequence[str]) -> None:
    """Raise unless the table has each needed column exactly once, capitals aside.

    Names that are not declared are never shown: what is taken for names may be a record, in a file without a header.
    """
    folded = [str(name).casefold() for name in present]
    for name in needed:
        if name not in present or folded.count(name.casefold()) != 1:
            trimmed = [each.strip() for each in folded]
            alike = name not in present and trimmed.count(name.casefold().strip()) == 1
            several = name.casefold() in folded
            raise TableError(
                problem=f"The column {name!r} is in the table "
                + ("with other capitals or blanks" if alike else "several times, capitals aside")
                if alike or several
                else f"The column {name!r} is not in the table",
                hint="correct the name in the schema, or rename columns that differ only in capitals or blanks; "
                "the first line of a .csv file must hold names, in UTF-8. Whoever may see the table lists them with: "
                "dpcausal init TABLE.",
            )


def reading(column: TableColumn, family: Family, dialect: Dialect = DUCKDB) -> tuple[str, str]:
    """Return a column as its cells stand in the table, and, where these are called `cell`, as they are read."""
    return _cell(column, family, dialect), _read(column, family, dialect, "cell")


def _cell(column: TableColumn, family: Family, dialect: Dialect) -> str:
    """Return a column as it stands in the table, texts folded where declared: once, since the SQL of it is long."""
    source = dialect.column(column.name)
    return dialect.folded(source) if family == "text" and (isinstance(column, Real) or not column.strict) else source


def _read(column: TableColumn, family: Family, dialect: Dialect, cell: str) -> str:
    """Return a cell as DOUBLE, or as the bytes of text where text is declared; NULL where it does not read so."""
    _check_family(column, family)
    if isinstance(column, Real) and column.missing_codes:
        value = _read(replace(column, missing_codes=()), family, dialect, cell)
        return reduce(lambda read, code: f"NULLIF({read}, {literal(code)})", column.missing_codes, value)
    if isinstance(column, Real) and column.since:
        return since(column, days_in_text(column, cell, dialect) if family == "text" else dialect.days(cell))
    if isinstance(column, Real) and family == "text":
        return number_in_text(column, cell, dialect)
    if not isinstance(column, Real) and family == "text":
        return dialect.text(cell) if isinstance(column.values[0], str) else value_in_text(column, cell, dialect)
    if family == "integer" and not isinstance(column, Real) and _is_whole(column):
        return f"CAST({cell} AS BIGINT)"  # differences of narrower integers may overflow
    return _double(cell, family)


def _double(cell: str, family: Family) -> str:
    """Return a cell of numbers or booleans as DOUBLE."""
    if family == "boolean":  # which some engines do not cast
        return f"CASE WHEN {cell} THEN {literal(1.0)} WHEN NOT {cell} THEN {literal(0.0)} END"
    # DuckDB gives the nearest DOUBLE of the text of a number beyond 64 bits, but not always of the number.
    return f"CAST(CAST({cell} AS STRING) AS DOUBLE)" if family == "wide number" else f"CAST({cell} AS DOUBLE)"


_CALLED: dict[Family, str] = {
    **dict.fromkeys(("integer", "number", "wide number"), "a number type"),
    "boolean": "a boolean type",
    "date": "dates or times",
    "text": "text",
}


def _check_family(column: TableColumn, family: Family) -> None:
    """Raise unless a column's type can be read as declared."""
    hint = "convert the column, or declare its values as they stand in the table."
    allowed: tuple[Family, ...]
    if isinstance(column, Real) and column.since:
        wanted, allowed = "dates, times without time zone, or text", ("date", "text")
        hint = "convert the column to dates, or leave since out if it holds numbers."
    elif isinstance(column, Real) and column.percent:
        wanted, allowed = "text, each cell with a percent sign", ("text",)
        hint = "leave percent out: a column of numbers has no percent signs."
    elif isinstance(column, Real) or not isinstance(column.values[0], str):
        wanted, allowed = "numbers or text", ("integer", "number", "wide number", "boolean", "text")
        if family == "date" and isinstance(column, Real):
            hint = 'to count days, declare the day 0: since="2020-01-31".'
    else:
        wanted, allowed = "text", ("text",)
    if family not in allowed:
        raise TableError(
            problem=f"The column {column.name!r} must hold {wanted}, and it holds "
            f"{_CALLED.get(family, 'another type')}",
            hint=hint,
        )


def _ticks(column: TableColumn, value: str, family: Family, dialect: Dialect) -> str:
    """Return a value as a small integer: ticks, the place of an arm or the place of a declared value."""
    if isinstance(column, Real):
        return as_ticks(column, value)
    if isinstance(column, EveryArm):
        return _every_arm(column, value, family, dialect)
    if isinstance(column, Treatment):
        return _arm(column, value, family, dialect)
    if isinstance(column, Indicator):
        return f"CASE WHEN {_is_readable(column.of, value, family, dialect)} THEN 0 ELSE 1 END"
    return _code(column, value, family, dialect)


def _arm(column: Treatment, value: str, family: Family, dialect: Dialect) -> str:
    """Return the arm of a row: 0 for the reference, 1 for the other compared arm, OUTSIDE for any other."""
    places = dict(zip(column.compared, (0, 1), strict=True))
    rest = OUTSIDE if column.undeclared is None else places.get(column.undeclared, OUTSIDE)
    codes = [places.get(arm, OUTSIDE) for arm in column.arms]
    cells = zip(_spelled(column, family, dialect), codes, strict=True)
    cases = " ".join(f"WHEN {_is_spelled(value, each)} THEN {code}" for each, code in cells if code != rest)
    return f"CASE {cases} ELSE {rest} END"


def _every_arm(column: EveryArm, value: str, family: Family, dialect: Dialect) -> str:
    """Return the place of a row's arm among all declared ones; one place more for an arm that is not declared."""
    rest = len(column.arms) if column.undeclared is None else list(column.arms).index(column.undeclared)
    cells = enumerate(_spelled(column, family, dialect))
    cases = " ".join(f"WHEN {_is_spelled(value, each)} THEN {code}" for code, each in cells if code != rest)
    return f"CASE {cases} ELSE {rest} END"


def _among_compared(
    column: Treatment, code: str, schema: Schema, families: Mapping[str, Family], dialect: Dialect
) -> str:
    """Return the code of an arm, or that of no arm for a row that lacks what is required."""
    none = len(column.arms) if isinstance(column, EveryArm) else OUTSIDE
    places = {each.name: place for place, each in enumerate(schema.columns)}
    for each in schema.required_columns:
        there = _is_readable(each, f"read_{places[each.name]}", families[each.name], dialect)
        code = f"CASE WHEN {there} THEN {code} ELSE {none} END"
    return code


def _is_readable(column: Column, value: str, family: Family, dialect: Dialect) -> str:
    """Return whether a value is a number, or one of those that are listed. NaN is above infinity."""
    if isinstance(column, Real):
        return f"{value} <= {literal(math.inf)}"
    spelled = _spelled(column, family, dialect)
    if isinstance(column.values[0], str):
        return f"{value} IN ({', '.join(spelled)})"
    # ClickHouse looks a number up in a list by its bits, does not find -0.0 there as 0, and makes a list of equalities.
    return " OR ".join(f"{value} BETWEEN {each} AND {each}" for each in spelled)


def _spelled(column: Binary | Category | Treatment, family: Family, dialect: Dialect) -> list[str]:
    """Return each declared value as SQL literals to compare with."""
    if isinstance(column.values[0], str):
        return [", ".join(text_literals(column, code, dialect)) for code in range(len(column.values))]
    whole = family == "integer" and _is_whole(column)
    return [str(int(each)) if whole else literal(each) for each in column.values]


def _is_spelled(value: str, spelled: str) -> str:
    """Return whether a value is one of some literals; DuckDB is faster with an equality than with a list of one."""
    return f"{value} IN ({spelled})" if ", " in spelled else f"{value} = {spelled}"


def _code(column: Binary | Category, value: str, family: Family, dialect: Dialect) -> str:
    """Return the place of a value in the declared list."""
    whole = family == "integer" and _is_whole(column)
    values, missing = column.values, list(column.values).index(column.missing_value)
    spelled = _spelled(column, family, dialect)
    if isinstance(values[0], str):
        others = [f"WHEN {value} IN ({each}) THEN {code}" for code, each in enumerate(spelled) if code != missing]
        return f"CASE {' '.join(others)} ELSE {missing} END"
    if len(values) > 2 and _is_whole(column) and all(int(b) == int(a) + 1 for a, b in itertools.pairwise(values)):
        rest = f"ELSE {spelled[missing]} END"
        listed = value if whole else f"CASE WHEN {value} = FLOOR({value}) THEN FLOOR({value}) {rest}"
        return f"CASE WHEN {value} BETWEEN {spelled[0]} AND {spelled[-1]} THEN {listed} {rest} - {spelled[0]}"
    others = [f"WHEN {value} = {each} THEN {code}" for code, each in enumerate(spelled) if code != missing]
    return f"CASE {' '.join(others)} ELSE {missing} END"


def _is_whole(column: Binary | Category | Treatment) -> bool:
    """Return whether all declared values are integers of moderate size."""
    return all(not isinstance(each, str) and float(each).is_integer() and abs(each) < 2**31 for each in column.values)
