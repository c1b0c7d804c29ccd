"""Numbers in the texts that engines are sent are within their types, whatever the rows. Texts are as written down.

Of the warehouses PostgreSQL and ClickHouse are run in tests. A change of other texts is for a person to read.
"""

import csv
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest
import sqlglot
from sqlglot import expressions as sge

import dpcausal as dpc
from dpcausal.errors import EngineError
from dpcausal.queries import GRID
from dpcausal.queries.features import with_indicators
from dpcausal.schema.scale import Scale
from dpcausal.vault.coercion import Family, coerced, column_names
from dpcausal.vault.engines import TickExpression, expressions, ranges
from dpcausal.vault.readers.ibis_tables import query_of
from tests.support.slow import sampled
from tests.vault.sql_texts import (
    DIALECTS,
    GOLDEN,
    RULES,
    THREE_ARMS,
    TYPES,
    WAREHOUSES,
    Asked,
    Texts,
    corners,
    golden,
    hardest,
    texts_of_rules,
)

COSTLY = [each for each in WAREHOUSES if each != "postgres"]
"""What is sent to these is that for PostgreSQL in another spelling."""


@pytest.mark.parametrize(
    "dialect", [pytest.param(each, marks=pytest.mark.costly) if each in COSTLY else each for each in DIALECTS]
)
def test_texts_are_as_written_down(dialect: str) -> None:
    written = (GOLDEN / f"{dialect}.sql").read_bytes().decode()
    assert golden(dialect) == written, "read the difference after: python -m tests.vault.sql_texts"


@pytest.mark.costly
@pytest.mark.parametrize("dialect", COSTLY)
def test_ibis_passes_texts_on_as_they_are(dialect: str) -> None:
    table = ibis.table({"cell": "float64"}, name="visits", database="clinic")
    for rule, texts in texts_of_rules(dialect):
        for text in texts:
            sent = ibis.to_sql(query_of(table, text, ["place", "sum_0"]), dialect=dialect, pretty=False)
            assert str(sent).endswith(f") {text}"), rule


def check_ranges(texts: Texts, dialect: str, sums: Sequence[str]) -> None:
    """Raise if some number of a text may be beyond its type; all sums are in one text, and Ticks in another."""
    for each in (sums, [number for number in sums if isinstance(number, TickExpression)]):
        for text in texts.of_sums(Asked({}, each, whole=True), dialect) if each else []:
            if dialect not in WAREHOUSES:  # whose engine has done so
                texts.ranges(text, dialect)


SCALE = Scale([(0.25, -1), (1, 0), (math.nextafter(1, 2), 0.25), (4, 0.75)])
OUTCOMES: list[dpc.Real | dpc.Binary] = [
    dpc.Real("m", 0, 10),
    dpc.Binary("m"),
    dpc.Real("m", -1e70, 1e70),
    dpc.Real("m", 0, 1e-60),
    dpc.Real("m", 1e17, 1e17 + 64),
]
COVARIATES: list[list[dpc.Real | dpc.Binary | dpc.Category]] = [
    [dpc.Binary("a"), dpc.Real("z", -1, 1e9, indicator=True), dpc.Category("k", ["u", "v", "w"])],
    [dpc.Real("a", 18, 90, indicator=True), dpc.Binary("z"), dpc.Category("k", [-1, 0, 1, 2])],
    [dpc.Real("a", 0, 15, scale=SCALE, indicator=True), dpc.Binary("z"), dpc.Category("k", ["u", "v", "w"])],
]
TREATMENTS = [dpc.Treatment("t"), dpc.Treatment("t", arms=(1, 2, 3), compare=3)]
KINDS: tuple[Family, ...] = ("integer", "number")


@pytest.mark.costly  # what refuses mutants of sums and of texts stays in every run
@pytest.mark.parametrize(
    ("outcome", "covariates", "treatment", "family"),
    sampled(itertools.product(OUTCOMES, COVARIATES, TREATMENTS, KINDS), 13),
)
def test_no_number_of_any_query_is_beyond_its_type(
    outcome: dpc.Real | dpc.Binary, covariates: list[Any], treatment: dpc.Treatment, family: Family
) -> None:
    schema = with_indicators(dpc.Schema(treatment, outcome, covariates), [column.name for column in covariates])
    families = dict.fromkeys("tmaz", family)
    listed: Family = "text" if isinstance(covariates[2].values[0], str) else family
    texts, sums = Texts(schema, families | {"k": listed}), hardest(schema)
    assert len(sums) > 50
    for dialect in ("duckdb", "spark", "postgres"):  # other warehouses are sent the same in another spelling
        check_ranges(texts, dialect, sums)


def test_records_that_are_added_up_are_within_their_types() -> None:
    unit = dpc.Unit("who", by="when", sum=["y", "s"], count=["k"])
    covariates: list[Any] = [dpc.Binary("s"), dpc.Real("k", 0, 2), dpc.Category("c", [0, 1, 2])]
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", -3, 1e60), covariates, unit)
    texts = Texts(schema, dict.fromkeys(("t", "y", "s", "k", "c", "who", "when"), "number"))
    for dialect in ("duckdb", "spark"):
        check_ranges(texts, dialect, ["CAST(outcome AS BIGINT) * covariate_2", "covariate_0", "covariate_1"])


@pytest.mark.parametrize("scale", [None, Scale([(40, -0.5), (60, 0), (61, 1)]), Scale([(18, -1), (90, 1)])])
@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres"])
def test_coerced_columns_have_the_ranges_that_proofs_rest_on(dialect: str, scale: Scale | None) -> None:
    schema = THREE_ARMS.scaled({"age": scale} if scale else {})
    expected = {"outcome": (-GRID, GRID), "treatment": (0, 2), "arm": (0, 3), "covariate_0": (0, 1)}
    expected |= {
        "covariate_2": (int(scale.knots[0][1] * GRID), int(scale.knots[-1][1] * GRID)) if scale else (-GRID, GRID),
        "covariate_3": (0, 1),
        "covariate_4": (0, 2),
        "covariate_6": (-GRID, GRID),
        "covariate_7": (0, 1),
        "covariate_8": (0, 3),
        **{f"covariate_{place}": (0, 1) for place in (1, 5, 9)},
    }
    (text,) = Texts(schema, TYPES).of_sums(Asked({}, list(expected), whole=True), dialect)[:1]
    read = sqlglot.parse_one(text, dialect={"spark": "databricks"}.get(dialect, dialect)).args["from_"].this.unnest()
    found = Texts(schema, TYPES).ranges(read.sql(dialect="databricks" if dialect == "spark" else dialect), dialect)
    assert {name: found[name].ends for name in expected} == expected


def understated() -> list[str]:
    """Return the expressions that are beyond their range in some row of a table."""
    texts = Texts(THREE_ARMS, TYPES)
    inner = coerced(THREE_ARMS, TYPES)
    whole = sqlglot.parse_one(f"SELECT {', '.join(hardest(THREE_ARMS))} FROM ({inner})", dialect="duckdb")
    numbers = (sge.Add, sge.Sub, sge.Mul, sge.BitwiseRightShift, sge.Case, sge.Cast)
    parts = {each.sql(dialect="duckdb") for item in whole.expressions for each in item.find_all(*numbers)
             if each.find_ancestor(sge.Case) is None}  # fmt: skip
    names = {f"e_{at}": part for at, part in enumerate(sorted(parts | set(column_names(THREE_ARMS))))}
    listed = ", ".join(f"{part} AS {name}" for name, part in names.items())
    query = f"SELECT {listed} FROM ({inner})"
    found = texts.ranges(query, "duckdb")
    ends = ", ".join(f"MIN({name}), MAX({name})" for name in names)
    source = corners()  # noqa: F841 (read by its name below)
    made = duckdb.execute(f"SELECT {ends} FROM ({query.replace('dpcausal_source', 'source')})").fetchall()[0]
    rows = zip(names.items(), zip(made[::2], made[1::2], strict=True), strict=True)
    return [part for (name, part), (low, high) in rows if low < found[name].ends[0] or high > found[name].ends[1]]


def test_no_range_is_understated() -> None:
    assert understated() == []


def test_a_range_that_is_understated_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ranges._Expressions.floor

    def less(self: Any, node: Any, known: Any) -> ranges.ValueRange:
        return ranges.ValueRange("double", rule(self, node, known).ends[0] + 1, rule(self, node, known).ends[1])

    changed = tuple((kind, less if kind is sge.Floor else each) for kind, each in ranges._RULES)
    monkeypatch.setattr(ranges, "_RULES", changed)
    assert "outcome" in understated()


def refused(sums: Sequence[str], dialect: str, match: str) -> None:
    with pytest.raises(EngineError, match=match):
        check_ranges(Texts(THREE_ARMS, TYPES), dialect, sums)


SHIFTED = "(outcome >> 2)"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mutants_of_sums_are_refused(dialect: str) -> None:
    fourth = "CAST(outcome AS BIGINT) * outcome * outcome * outcome"
    refused([fourth], dialect, "within the wide type")
    refused(["LEAST(NULLIF(outcome, 0), 7)"], dialect, "NULL and NaN")
    refused(["outcome * 0.5"], dialect, "explicit type")
    if dialect != "spark":
        refused([SHIFTED], dialect, "at least 0 to shift")
    if dialect in RULES:  # elsewhere all is computed in 64 bits
        refused(["outcome * covariate_2"], dialect, "within the narrow type")
        refused(["CAST(outcome AS TINYINT)"], dialect, "within the")
    check_ranges(Texts(THREE_ARMS, TYPES), dialect, ["CAST(outcome AS BIGINT) * covariate_2"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mutants_of_texts_are_refused(dialect: str) -> None:
    texts = Texts(THREE_ARMS, TYPES)
    (text,) = texts.of_sums(Asked({}, ["outcome"], whole=True), dialect)
    constant = r"CAST\('([-\d.]+)' AS (?:DOUBLE PRECISION|DOUBLE|FLOAT64|Nullable\(Float64\))\)"
    between = rf"CASE WHEN (\S+) BETWEEN {constant} AND .*? END END"
    mutants = {
        "explicit type": re.sub(constant, r"\1", text),
        "FLOOR of a number between bounds|numbers between bounds": re.sub(between, r"\1", text),
        "shown to be one": re.sub(r"FLOOR\((.*)\)\) AS (BIGINT|INT64|INTEGER|Nullable\(Int64\))", r"(\1)) AS \2", text),
        "makes overflow": re.sub(r"DECIMAL\(38, 0\)|Decimal\(38, 0\)|BIGNUMERIC", "BIGINT", text),
    }
    if dialect in ("duckdb", "spark", "postgres"):  # which add up integers of 64 bits in wider ones, or in halves
        del mutants["makes overflow"]
    for match, mutant in mutants.items():
        assert mutant != text, match
        with pytest.raises(EngineError, match=match):
            texts.ranges(mutant, dialect)


@pytest.mark.parametrize("dialect", [each for each in WAREHOUSES if each != "bigquery"])  # which has 64 bits only
def test_a_warehouse_that_is_sent_no_casts_is_refused_before_it_runs(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer that drops casts which it believes redundant makes an int4 product of them on PostgreSQL."""
    product = ["CAST(outcome AS BIGINT) * covariate_2"]
    warehouse = Texts(THREE_ARMS, TYPES).warehouse(dialect)
    assert warehouse.query({}, product)

    def dropped(node: sge.Cast, _: str) -> sge.Expr:
        return node.this if node.to.is_type("BIGINT") and isinstance(node.this, sge.Column) else node

    monkeypatch.setitem(expressions._SPELLED, sge.Cast, dropped)
    with pytest.raises(EngineError, match="within the narrow type"):
        warehouse.query({}, product)


DOCUMENTED = Path(__file__).parents[2] / "docs" / "warehouse-functions.csv"
OPERATORS = {"CASE", "< <= = BETWEEN", "+ - *"}


def documented() -> dict[tuple[str, str], tuple[str, str]]:
    """What the documentation of warehouses says, and where, by dialect and function."""
    with DOCUMENTED.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = {(line["dialect"], line["function"]): (line["semantics"], line["address"]) for line in lines}
    assert len(found) == len(lines)
    return found


def functions_in(text: str) -> set[str]:
    """The functions in a text of SQL, and the shift that BigQuery has no function for."""
    sql = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return set(re.findall(r"\b([A-Z_]+)\(", sql)) | ({">>"} if ">>" in sql else set())


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "databricks", "trino"])
def test_every_function_that_no_server_ran_is_documented(dialect: str) -> None:
    used = functions_in((GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8"))
    known = {function for of, function in documented() if of == dialect}
    assert used | OPERATORS == known
    for (of, function), (semantics, address) in documented().items():
        assert of != dialect or address.startswith("https://") or "not found" in semantics, function


def test_a_function_without_a_line_would_be_found() -> None:
    assert functions_in("-- NO(1)\nSELECT SUM(ROUND(x) >> 3)") == {"SUM", "ROUND", ">>"}
