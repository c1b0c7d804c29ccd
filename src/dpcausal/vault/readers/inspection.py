"""A look at a table for those who may see it: exact counts, and some cells. Nothing here is private.

This is for the custodian of the table, on the machine where it is stored. It touches no ledger, because nothing that
it shows may be released. Only the command `dpcausal check` reaches it.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from dpcausal.errors import TableError
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Binary, Category, Indicator, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn, Treatment, table_column
from dpcausal.vault.coercion import SOURCE, reading
from dpcausal.vault.engines.dialects import DUCKDB
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.parsing import either_comma, literal, text_literals
from dpcausal.vault.readers.files import mistakes_in_lines
from dpcausal.vault.table import PERSON, column_families, open_table

_SHOWN = 5
_SIGNS = ((".", ","), (",", "."), (".", " "), (",", " "))
"""Usual decimal and thousands signs, to compare with the declared ones."""

_DATES = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y")
"""Usual ways of writing dates that are not year first."""

_LONGEST = 40

_FAR, _ALONE, _APART = 10.0, 0.5, 0.5
"""Numbers are far from all others where nothing is next to them for so many distances between the quartiles, and for so
much of the way to the nearer quartile; a usual code is apart by more than so much of the distance between quartiles."""

_CODES = (-1, *(sign * int(digit * length) for sign in (-1, 1) for digit in "789" for length in (1, 2, 3, 4, 5)))
"""Numbers that usually mean missing, or the reason for it: -1, -9, 99, 888, 9999."""

_GROUPED = r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]*)?"
"""A number with dots that may be between thousands. Groups do not begin with 0: 0.125 has decimals."""

_UNSORTED = r"^[0-9]{1,2}[./ -][0-9]{1,2}[./ -][0-9]{2,4}|^[0-9]{4}[./-](?:[0-9][./-]|[0-9]{2}[./-][0-9](?:[^0-9]|$))"
"""A date in text that letters do not sort: not year first, or without the zeros before its month and day."""

_FEWEST = 0.02
"""A column with fewer different values than this, as a share of the records, names no persons."""


def inspect(place: str, schema: Schema) -> Iterator[str]:
    """Yield what whoever keeps a table should know before anybody asks it, line by line."""
    yield from mistakes_in_lines(place)
    engine = _opened(place, schema)
    ((size,),) = engine.look(f"SELECT COUNT(*) FROM {SOURCE}")  # noqa: S608
    yield f"records: {size:,}"
    for role, column in _roles(schema):
        if schema.unit and column.name in schema.unit.count:
            yield from _counted(role, column, engine, size)
        else:
            is_summed = schema.unit is not None and column.name in schema.unit.sum
            yield from _column(role, column, engine, size, is_summed=is_summed)
    yield from _units(schema, engine, size)
    if schema.unit is None:
        yield from _repeated(place, schema, size)


def _opened(place: str, schema: Schema) -> DuckDBEngine:
    engine = open_table(place, schema)
    engine = getattr(engine, "streamed", engine)  # a warehouse's rows, on this machine
    if not isinstance(engine, DuckDBEngine):
        raise TableError(expected="a file or a database", got="another table", hint="give the place of one.")
    return engine


def _roles(schema: Schema) -> Iterator[tuple[str, TableColumn]]:
    yield "treatment", schema.treatment
    yield "outcome", schema.outcome
    yield from (("covariate", column) for column in schema.covariates if not isinstance(column, Indicator))


def _counted(role: str, column: TableColumn, engine: DuckDBEngine, size: int) -> Iterator[str]:
    source = DUCKDB.column(column.name)
    ((missing,),) = engine.look(f"SELECT COUNT(*) FILTER (WHERE {source} IS NULL) FROM {SOURCE}")  # noqa: S608 (quoted)
    yield f"{role} {column.name}: {_share(missing, size)} absent; the others are counted for each unit"


def _column(
    role: str, column: TableColumn, engine: DuckDBEngine, size: int, *, is_summed: bool = False
) -> Iterator[str]:
    family = engine.families[table_column(column)]
    source = DUCKDB.column(table_column(column))
    codes = column.missing_codes if isinstance(column, Real) else ()
    cell, read = reading(replace(column, missing_codes=()) if isinstance(column, Real) else column, family)
    blank = f" OR {DUCKDB.folded(source)} = ''" if family == "text" else ""
    absent = f"({source} IS NULL{blank})"
    inner = f"(SELECT {source} AS source, {absent} AS absent, {cell} AS cell FROM {SOURCE})"  # noqa: S608 (quoted)
    values = f"(SELECT source, absent, {read} AS value FROM {inner})"  # noqa: S608
    coded = f"COALESCE(value IN ({', '.join(map(literal, codes))}), false)" if codes else "false"
    cells = f"(SELECT source, absent OR {coded} AS absent, value FROM {values})"  # noqa: S608
    known = _known(column)
    unread = f"NOT absent AND NOT COALESCE({known}, false)"
    present = (f"NOT absent AND {each}" for each in _wanted(column))
    counts = [f"COUNT(*) FILTER (WHERE {each})" for each in ("absent", unread, *present)]
    ((missing, strange, *others),) = engine.look(f"SELECT {', '.join(counts)} FROM {cells}")  # noqa: S608 (no outside text)
    name = f"{role} {column.name}"
    what = "not read as declared" if isinstance(column, Real) else "none of the declared values"
    yield f"{name}: {_share(missing, size)} absent, {_share(strange, size)} {what}"
    if isinstance(column, Real) and is_summed:
        yield f"{name}: added up for each unit; the bounds are those of the total"
    elif isinstance(column, Real):
        below, above = others
        yield f"{name}: {_share(below, size)} below {column.low:,g}, {_share(above, size)} above {column.high:,g}"
        yield from _far_values(name, column, cells, engine)
    else:
        listed = (f"{value} {_share(count, size)}" for value, count in zip(column.values, others, strict=True))
        yield f"{name}: {', '.join(listed)}"
        if isinstance(column, Treatment) and column.undeclared is not None:
            yield f"{name}: {_split(column, others, size)}"
    if strange:
        text = DUCKDB.text("source")
        often = f"SELECT {text}, COUNT(*) FROM {cells} WHERE {unread} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_SHOWN}"  # noqa: S608
        spelled = (f"{_shown(bytes(cell))} {count:,} times" for cell, count in engine.look(often))
        yield f"{name}: most often {', '.join(spelled)}"
    if isinstance(column, Real) and family == "text":
        if not column.since and column.reads_either_comma:
            yield from _commas(name, column, engine, size)
            yield from _dots(name, column, engine, size)
        if strange:
            yield from _other_readings(name, column, engine)


def _split(treatment: Treatment, counts: list[int], size: int) -> str:
    """Return how many records each arm has where missing and undeclared ones count as one of the arms."""
    others = size - sum(counts)
    listed = (
        f"{arm} {_share(count + (others if arm == treatment.undeclared else 0), size)}"
        for arm, count in zip(treatment.values, counts, strict=True)
    )
    return f"with missing and undeclared arms as {treatment.undeclared}: {', '.join(listed)}"


def _far_values(name: str, column: Real, cells: str, engine: DuckDBEngine) -> Iterator[str]:
    """Yield repeated numbers far from all others, which may be codes for missing; nothing where there are none."""
    numbers = f"(SELECT value FROM {cells} WHERE NOT absent AND {_known(column)})"  # noqa: S608 (no outside text)
    ((first, third),) = engine.look(f"SELECT quantile_disc(value, 0.25), quantile_disc(value, 0.75) FROM {numbers}")  # noqa: S608
    if first is None:
        return
    found = dict.fromkeys(each for end in _ends(numbers, engine) for each in _apart(end, float(first), float(third)))
    if found:
        listed = ", ".join(f"{value:,g} {count:,} times" for value, count in found)
        quartiles = f"half of the others are within {first:,g} and {third:,g}"
        yield f"{name}: far from all others: {listed} ({quartiles}). Declare codes for missing in missing_codes"


def _ends(numbers: str, engine: DuckDBEngine) -> Iterator[list[tuple[float, int]]]:
    """Yield the smallest and the largest numbers, each with how often it stands there, from the end inwards."""
    for order in ("ASC", "DESC"):
        ends = f"SELECT value, COUNT(*) FROM {numbers} GROUP BY 1 ORDER BY 1 {order} LIMIT {_SHOWN + 1}"  # noqa: S608
        yield engine.look(ends)


def _apart(end: list[tuple[float, int]], first: float, third: float) -> Iterator[tuple[float, int]]:
    """Yield the repeated numbers at one end that stand apart from all others."""
    gaps = [abs(outer - inner) for (outer, _), (inner, _) in itertools.pairwise(end)]
    rising = len(end) > 1 and end[0][0] < end[1][0]
    ways = [first - value if rising else value - third for value, _ in end[:-1]]
    far = (
        place
        for place, (gap, way) in enumerate(zip(gaps, ways, strict=True), start=1)
        if third > first and min(gap, way) > _FAR * (third - first) and gap > _ALONE * way
    )
    yield from (each for each in end[: max(far, default=0)] if each[1] > 1)
    if len(gaps) > 1 and end[0][0] in _CODES and end[0][1] > 1:
        (value, _), (following, _) = end[:2]
        if gaps[0] > max(_APART * (third - first), 2 * gaps[1]) or value < 0 <= following:
            yield end[0]


def _commas(name: str, column: Real, engine: DuckDBEngine, size: int) -> Iterator[str]:
    """Yield how many cells have a comma between thousands and how many before decimals; nothing where none has."""
    comma = DUCKDB.quoted(",")
    (cell, first), (_, other) = (reading(each, "text") for each in either_comma(column))
    cells = f"(SELECT cell, {first} AS value, {other} AS other FROM (SELECT {cell} AS cell FROM {SOURCE}))"  # noqa: S608
    thousands = f"{_known(column)} AND contains(cell, {comma})"
    decimals = f"NOT COALESCE({_known(column)}, false) AND other IS NOT NULL AND contains(cell, {comma})"
    counted = ", ".join(f"COUNT(*) FILTER (WHERE {each})" for each in (thousands, decimals))
    ((grouped, decimal),) = engine.look(f"SELECT {counted} FROM {cells}")  # noqa: S608
    if grouped:
        yield f"{name}: {_share(grouped, size)} with a comma between thousands, read as in 1,234 = 1234"
    if decimal:
        yield f"{name}: {_share(decimal, size)} with a comma before decimals, read as in 1,5 = 1.5"


def _dots(name: str, column: Real, engine: DuckDBEngine, size: int) -> Iterator[str]:
    """Yield how many cells have a dot that may be between thousands; nothing where any dot is before decimals."""
    cell, read = reading(column, "text")
    bare = r"^[^0-9.,]*{}[^0-9.,]*$"
    grouped, alone = (
        f"regexp_matches(cell, {DUCKDB.pattern(bare.format(each))})"
        for each in (_GROUPED, _GROUPED.partition("(?:,")[0].replace("+", ""))
    )
    cells = f"(SELECT cell, {read} AS value FROM (SELECT {cell} AS cell FROM {SOURCE}))"  # noqa: S608
    dotted = f"{_known(column)} AND contains(cell, {DUCKDB.quoted('.')})"
    counted = ", ".join(f"COUNT(*) FILTER (WHERE {dotted} AND {each})" for each in (alone, f"NOT {grouped}"))
    ((thousands, decimals),) = engine.look(f"SELECT {counted} FROM {cells}")  # noqa: S608
    if thousands and not decimals:
        signs = 'decimal = "," and thousands = "."'
        yield (
            f"{name}: {_share(thousands, size)} with a dot before exactly three digits, read as in 3.140 = 3.14. "
            f"If it is between thousands, declare {signs}"
        )


def _other_readings(name: str, column: Real, engine: DuckDBEngine) -> Iterator[str]:
    """Yield the usual way of writing numbers or dates by which most more cells would be read; nothing if none is."""
    ways = (
        {f'date_format = "{each}"': replace(column, date_format=each) for each in _DATES}
        if column.since
        else {
            f'decimal = "{decimal}" and thousands = "{thousands}"': replace(
                column, decimal=decimal, thousands=thousands
            )
            for decimal, thousands in _SIGNS
        }
    )
    declared = _readable(column, engine)
    others = {words: _readable(way, engine) for words, way in ways.items()}
    best = max(others, key=lambda words: others[words])
    if others[best] > declared:
        kind = "dates" if column.since else "numbers"
        yield f"{name}: {others[best] - declared:,} more cells are {kind} if you declare {best}"


def _readable(column: Real, engine: DuckDBEngine) -> int:
    """Return how many cells of text are numbers as a column declares them."""
    cell, read = reading(column, "text")
    inner = f"(SELECT {cell} AS cell FROM {SOURCE})"  # noqa: S608 (quoted)
    counted = f"COUNT(*) FILTER (WHERE {_known(column)})"
    ((count,),) = engine.look(f"SELECT {counted} FROM (SELECT {read} AS value FROM {inner})")  # noqa: S608
    return int(count)


def _known(column: TableColumn) -> str:
    """Return whether a cell reads as declared, as SQL."""
    if isinstance(column, Real):
        return f"value <= {literal(float('inf'))}"
    return f"{_compared(column)} IN ({', '.join(each for value in column.values for each in _spelled(column, value))})"


def _wanted(column: TableColumn) -> list[str]:
    """Return what else is counted, as SQL: numbers beyond either bound, or each of the declared values."""
    if isinstance(column, Real):
        infinity = literal(float("inf"))
        return [f"value < {literal(column.low)}", f"value > {literal(column.high)} AND value <= {infinity}"]
    return [f"{_compared(column)} IN ({', '.join(_spelled(column, value))})" for value in column.values]


def _compared(column: Binary | Category | Treatment) -> str:
    return "value" if isinstance(column.values[0], str) else "CAST(value AS DOUBLE)"


def _spelled(column: Binary | Category | Treatment, value: Value) -> list[str]:
    place = list(column.values).index(value)
    return text_literals(column, place, DUCKDB) if isinstance(value, str) else [literal(value)]


def _units(schema: Schema, engine: DuckDBEngine, size: int) -> Iterator[str]:
    if schema.unit is None:
        yield "unit: none is declared, so each record counts as a person of its own"
        return
    name, family = DUCKDB.column(schema.unit.name), engine.families[schema.unit.name]
    key = DUCKDB.text(name) if family == "text" else name
    groups = f"SELECT {key} AS unit, COUNT(*) AS size FROM {SOURCE} GROUP BY 1"  # noqa: S608 (quoted)
    counts = "COUNT(*), COUNT(*) FILTER (WHERE size > 1), MAX(size), SUM(size) FILTER (WHERE unit IS NULL)"
    ((units, several, most, nobody),) = engine.look(f"SELECT {counts} FROM ({groups})")  # noqa: S608
    yield (
        f"unit {schema.unit.name}: {units:,} units in {size:,} records; {several:,} units have several, at most "
        f"{most or 0:,}; {_share(nobody or 0, size)} of the records name nobody, and count as one unit"
    )
    yield from _order(schema.unit, engine, size)


def _order(unit: Unit, engine: DuckDBEngine, size: int) -> Iterator[str]:
    """Yield how many texts that order a unit's records are dates which letters do not sort; nothing where none is."""
    if unit.formats or engine.families[unit.by] != "text":
        return
    dates = f"regexp_matches({DUCKDB.folded(DUCKDB.column(unit.by))}, {DUCKDB.pattern(_UNSORTED)})"
    ((count,),) = engine.look(f"SELECT COUNT(*) FILTER (WHERE {dates}) FROM {SOURCE}")  # noqa: S608 (quoted)
    if count:
        yield (
            f"unit {unit.name}: {_share(count, size)} of {unit.by} are dates that are not sorted as text. Say how they "
            'are written, for instance date_format = "%d.%m.%Y"'
        )


def _repeated(place: str, schema: Schema, size: int) -> Iterator[str]:
    """Yield columns that seem to name persons, where one has several records although no unit is declared."""
    declared = {table_column(column) for column in schema.columns}
    try:
        names = [name for name in column_families(place) if name not in declared and PERSON.search(name)]
    except TableError:  # other columns may be called anything
        return
    for name in names:
        engine = _opened(place, replace(schema, unit=Unit(name, by=schema.outcome.name)))
        column = DUCKDB.column(name)
        ((known, persons),) = engine.look(f"SELECT COUNT({column}), COUNT(DISTINCT {column}) FROM {SOURCE}")  # noqa: S608
        if known > persons > size * _FEWEST:
            yield (
                f"unit: {_shown(name.encode())} has {persons:,} different values in {size:,} records. If it names "
                "persons, declare a Unit: the guarantee is otherwise for one record, and errors are too small"
            )


def _share(count: int, size: int) -> str:
    return f"{count:,} ({count / max(size, 1):.1%})"


def _shown(cell: bytes) -> str:
    """Return a cell so that it cannot steer a terminal."""
    text = cell.decode("utf-8", "replace")
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
