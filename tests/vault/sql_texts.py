"""The SQL texts that engines are sent: of every coercion rule, and of the sums of every query.

`python -m tests.vault.sql_texts` writes them to `tests/vault/golden`, one file for each dialect; a person reads the
difference.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError, TableError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, ChangeMoments, CutoffMoments, Query
from dpcausal.queries.change_moments import widest_change
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.real import Real
from dpcausal.schema.scale import Scale
from dpcausal.schema.treatment import table_column
from dpcausal.vault.coercion import SOURCE, Family, coerced
from dpcausal.vault.context import KERNELS
from dpcausal.vault.engines import Batch, ExactInts, TickExpression, exact_ints, no_rows
from dpcausal.vault.engines.dialects import SPARK
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect, may_be_floating
from dpcausal.vault.engines.ranges import Columns, Rules, query_ranges, source_columns
from dpcausal.vault.engines.spark import sums_query
from dpcausal.vault.engines.warehouse import Warehouse, WarehouseEngine

GOLDEN = Path(__file__).parent / "golden"
WAREHOUSES = ("postgres", "clickhouse", "bigquery", "snowflake", "databricks", "trino")
DIALECTS = ("duckdb", "spark", *WAREHOUSES)
RULES = {
    # DuckDB adds integers up in 128 bits, and 2^33 doubles of at most 2^20 without error.
    "duckdb": Rules({"narrow": 2**31 - 1, "wide": 2**62, "double": 2**20}),
    # Spark adds up in 64 bits: 2^41 halves, of which each is at most 2^21 in size.
    "spark": Rules({"wide": 2**21}, signed_shifts=True),
}
_TYPES: dict[Family, str] = {
    "integer": "INTEGER",
    "number": "DOUBLE",
    "wide number": "DECIMAL(38, 0)",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
}


class Asked(NamedTuple):
    """What an answer asks an engine to add up."""

    cells: Mapping[str, int]
    sums: Sequence[str]
    whole: bool


class Recorder:
    """An engine over no rows that writes down what it is asked to add up."""

    most_sql_features = math.inf

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        self.asked.append(Asked(cells, sums, whole))
        return np.zeros((*cells.values(), len(sums)), dtype=object)

    def with_schema(self, schema: dpc.Schema) -> "Recorder":
        del schema  # there are no rows to see through it
        return self

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        return exact_ints(kernel(no_rows(columns)))

    def collect(self, columns: Sequence[str], limit: int, kernel: Any = None, *, whole: bool = False) -> Batch:
        del limit, whole
        return kernel(no_rows(columns)) if kernel else no_rows(columns)


def examples(schema: dpc.Schema) -> list[Query]:
    """Return every example of every query that is added up as SQL."""
    return [query for kind in QUERIES.values() if KERNELS[kind] is not True for query in kind.examples(schema)]


def extremes(schema: dpc.Schema) -> Iterator[SummingQuery]:
    """Yield queries whose parameters make numbers as large as they can be."""
    column = next((each for each in schema.covariates if isinstance(each, Real) and each.scale is None), None)
    if column is None:
        return
    low, high = widest_change(column, schema.outcome)
    if low < low + (high - low) / 999:  # otherwise so narrow a change cannot be asked for
        yield ChangeMoments(column.name, "", low, low + (high - low) / 999)
    width = column.high - column.low
    for share in (0.01, 0.99):
        yield CutoffMoments(column.name, column.low + share * width, width / 999)


def asked(schema: dpc.Schema, queries: Iterable[Query]) -> list[Asked]:
    """Return all that queries ask an engine to add up, of a schema with an indicator for each of its numbers."""
    recorder = Recorder()
    for query in queries:
        with suppress(QueryError):  # of bounds between which a query finds no room
            exact_answer(query, schema, recorder, Guarantee(epsilon=1.0, delta=1e-6, protects=schema.protects))
    return recorder.asked


class Texts:
    """What each engine is sent for a table of some types, seen through a schema."""

    def __init__(self, schema: dpc.Schema, families: Mapping[str, Family]) -> None:
        self.schema, self.families = schema, families
        columns = ", ".join(f'CAST(NULL AS {_TYPES[family]}) AS "{name}"' for name, family in families.items())
        self._duckdb = DuckDBEngine(_connection().sql(f"SELECT {columns}"), schema)

    def of_sums(self, ask: Asked, dialect: str) -> list[str]:
        """Return the queries for some sums; none where the warehouse does not read the columns itself."""
        if dialect == "duckdb":
            ways = (False, True) if may_be_floating(ask.sums) else (False,)
            return [self._duckdb.query(ask.cells, ask.sums, whole=ask.whole, floating=way) for way in ways]
        if dialect == "spark":
            inner = coerced(self.schema, self.families, SPARK)
            return [sums_query(ask.cells, ask.sums).replace("{coerced}", f"({inner})").replace(SPARK.source, SOURCE)]
        return self.warehouse(dialect).texts(ask)

    def warehouse(self, dialect: str) -> "AskedWarehouse":
        return AskedWarehouse(Warehouse(self.families, dialect, lambda *_: []), self.schema, self._duckdb)

    def ranges(self, text: str, dialect: str) -> Columns:
        """Return what the columns of a query can be; raise where the engine might overflow or fail."""
        name = SPARK.column if dialect == "spark" else str
        source = source_columns({name(column): family for column, family in self.families.items()})
        # sqlglot reads what Spark casts as what it tries to cast, but not so for Databricks.
        read = sqlglot.parse_one(text, dialect={"spark": "databricks"}.get(dialect, dialect))
        rules = RULES.get(dialect) or Rules({"wide" if dialect == "postgres" else "decimal": 2**62})
        return query_ranges(read, source, rules)


class AskedWarehouse(WarehouseEngine):
    """An engine that shows its texts."""

    def texts(self, ask: Asked) -> list[str]:
        if self._schema.unit is not None or not self._behind(ask.cells, ask.sums, whole=ask.whole) <= self._here:
            return []
        return [self.query(ask.cells, ask.sums, whole=ask.whole)]


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return connect(threads=1)


COLUMNS: list[dpc.Real | dpc.Binary | dpc.Category] = [
    dpc.Real("cell", 0, 10),
    dpc.Real("cell", 0.1, 0.3, missing=0.30000000000000004 - 0.1),
    dpc.Real("cell", -1e70, 1e70),
    dpc.Real("cell", 1e17, 1e17 + 64),
    dpc.Real("cell", 0, 9, missing_codes=[-9, 3], indicator=True),
    dpc.Real("cell", 0, 9, since="2020-01-31"),
    dpc.Real("cell", 0, 9, decimal=",", strip=["kg"]),
    dpc.Real("cell", 0, 15, scale=Scale([(0.25, -1), (1, 0), (4, 0.75)])),
    dpc.Real("cell", -1e70, 1e70, 7, scale=Scale([(-1e70, -0.5), (0, 0), (1, 2**-21), (1 + 2**-52, 0.5)])),
    dpc.Binary("cell"),
    dpc.Binary("cell", values=("no", "yes"), missing="no"),
    dpc.Category("cell", [-1, 0, 1, 2], missing=0, indicator=True),
    dpc.Category("cell", [0.1, -7.5, 0]),
    dpc.Category("cell", ["a", "it's", "back\\slash"], strict=True),
    dpc.Category("cell", ["a", "É"], aliases={"a": ["A+"]}, indicator=True),
]
TREATMENTS = [
    dpc.Treatment("cell"),
    dpc.Treatment("cell", arms=("old", "new", "none"), compare="new"),
    dpc.Treatment("cell", arms=(1, 2, 3), compare=3, undeclared=1),
]
FAMILIES: tuple[Family, ...] = ("integer", "number", "wide number", "boolean", "text", "date")


@cache
def rules() -> list[tuple[str, str, Texts]]:
    """Return every coercion rule for every family that it reads: what it is, the coerced column, and the texts."""
    usual, outcome, found = dpc.Treatment("arm"), dpc.Real("y", 0, 1, missing=0.5), []
    schemas = [(_shown(each), "covariate_0", dpc.Schema(usual, outcome, [each])) for each in COLUMNS]
    schemas += [
        (f"missing {_shown(each)}", "covariate_1", dpc.Schema(usual, outcome, [each]))
        for each in COLUMNS
        if each.indicator
    ]
    schemas += [(_shown(each), "outcome", dpc.Schema(usual, each)) for each in COLUMNS if isinstance(each, dpc.Binary)]
    schemas += [(_shown(each), name, dpc.Schema(each, outcome)) for each in TREATMENTS for name in ("treatment", "arm")]
    schemas += [
        (f"with required {_shown(each)}", "treatment", dpc.Schema(usual, outcome, [each], required=["cell"]))
        for each in COLUMNS
        if each.missing is None
    ]
    schemas += [
        (f"{_shown(each)} with a required outcome", name, dpc.Schema(each, replace(outcome, missing=None)))
        for each in TREATMENTS[-1:]
        for name in ("treatment", "arm")
    ]
    for rule, name, schema in schemas:
        for family in FAMILIES:
            families: dict[str, Family] = {"arm": "integer", "y": "number", "cell": family}
            try:
                texts = Texts(schema, {column: families[column] for column in map(table_column, schema.columns)})
            except TableError:  # the rule does not read this family
                continue
            found.append((f"{name}: {rule} of {family}", name, texts))
    return found


@cache
def texts_of_rules(dialect: str) -> list[tuple[str, list[str]]]:
    """Return the texts that add up the coerced column of every rule, none where the warehouse does not read it."""
    return [(rule, texts.of_sums(Asked({}, [name], whole=True), dialect)) for rule, name, texts in rules()]


THREE_ARMS = dpc.Schema(
    dpc.Treatment("arm", arms=("old", "new", "none"), compare="new"),
    dpc.Real("spend", 0, 100),
    [
        dpc.Binary("bought", indicator=True),  # which some queries see in any case
        dpc.Real("age", 18, 90, indicator=True),
        dpc.Category("ward", ["a", "b", "c"], indicator=True),
        dpc.Real("before", 0, 100, indicator=True),
        dpc.Category("stage", [-1, 0, 1, 2], missing=0, indicator=True),
    ],
)
TYPES: dict[str, Family] = {
    "arm": "text",
    "spend": "number",
    "bought": "integer",
    "age": "number",
    "ward": "text",
    "before": "number",
    "stage": "number",
}


def corners() -> pa.Table:
    """Return a table for the schema of three arms with every combination of cells that are far out."""
    cells: dict[str, list[Any]] = {
        "arm": ["old", "new", None],
        "spend": [0.0, 100.0, 50.0, math.nan],
        "bought": [0, 1],
        "age": [18.0, 90.0, math.inf, None],
        "ward": ["a", "C "],
        "before": [-math.inf, 1e300, 51.0],
    }
    rows = list(itertools.product(*cells.values()))
    stages = [-1.0, 2.0, 1.5, math.nan, math.inf, -math.inf, 3e9, -0.0, 5e-324, None, 1.0]
    columns = dict(zip(cells, zip(*rows, strict=True), strict=True))
    return pa.table(columns | {"stage": [stages[place % len(stages)] for place in range(len(rows))]})


def distinct(schema: dpc.Schema, queries: Iterable[Query]) -> list[str]:
    """Return all that queries add up or group by."""
    asks = asked(schema, queries)
    return list(dict.fromkeys(each for ask in asks for each in (*ask.sums, *ask.cells) if each != "1"))


def hardest(schema: dpc.Schema) -> list[str]:
    """Return what examples of all queries add up or group by, and queries whose numbers are as large as can be."""
    return distinct(schema, [*examples(schema), *extremes(schema)])


def golden(dialect: str) -> str:
    """Return the texts of every coercion rule, and each number that is added up or grouped by, for one dialect."""
    lines = ["-- Written by: python -m tests.vault.sql_texts", "", "-- Coercion rules"]
    for rule, texts in texts_of_rules(dialect):
        for text in texts[:1]:
            lines += ["", f"-- {rule}", text]
    lines += ["", "-- Sums of all queries"]
    sums = distinct(THREE_ARMS, examples(THREE_ARMS))
    for each in (sums, [number for number in sums if isinstance(number, TickExpression)]):
        *_, text = Texts(THREE_ARMS, TYPES).of_sums(Asked({"arm": 4}, each, whole=True), dialect)
        lines += ["", *dict.fromkeys(_selected(text))]
        if dialect != "duckdb":  # which alone adds these up in floating point
            break
    return "\n".join([*lines, ""])


def _selected(text: str) -> Iterator[str]:
    """Yield what a query selects, without the names that sums are given."""
    depth, start = 0, len("SELECT ")
    for at, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        ends = text.startswith(" FROM (SELECT", at)
        if (ends or sign == ",") and not depth:
            yield re.sub(r" AS .sum_\d+.$", "", text[start:at].strip())
            start = at + 1
        if ends and not depth:
            return


def _shown(column: Any) -> str:
    """Return a column as it is declared."""
    given = [(each, getattr(column, each.name)) for each in fields(column) if each.name != "name"]
    shown = ", ".join(f"{each.name}={value!r}" for each, value in given if value != each.default)
    return f"{type(column).__name__}({shown})"


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for dialect in DIALECTS:
        (GOLDEN / f"{dialect}.sql").write_bytes(golden(dialect).encode())


if __name__ == "__main__":
    main()
