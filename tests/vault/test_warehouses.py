"""Warehouses add up the integers that DuckDB does, send no rows for that, and tell nothing when they fail."""

import os
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from adbc_driver_postgresql import dbapi

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import EngineError, TableError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, ArmMoments, Query, RegressionMoments, seen_by
from dpcausal.testing import standard_schema
from dpcausal.vault.coercion import column_names
from dpcausal.vault.context import runs_kernel
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.duckdb import DuckDBEngine
from dpcausal.vault.engines.warehouse import Warehouse, WarehouseEngine
from dpcausal.vault.table import open_table
from tests.support.clickhouse import clickhouse
from tests.support.conformance import check_engine
from tests.support.engines import InOrder, without_draws
from tests.support.hostile import hostile
from tests.support.postgres import VARIABLE, fresh_database
from tests.vault.sql_texts import THREE_ARMS, corners, hardest

pytestmark = [pytest.mark.xdist_group("postgresql")]

Place = Callable[[pa.Table], object]
"""Puts a table into a warehouse, and returns what a vault opens."""

SCHEMA = standard_schema("outcome")
GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6, protects="outcome")
MARKER = "xyzzy-4711"


@pytest.fixture(scope="module")
def in_postgres() -> Iterator[Place]:
    if VARIABLE not in os.environ:
        pytest.skip(f"no PostgreSQL server: {VARIABLE} is not set")
    with fresh_database() as url:
        address = url.replace("+psycopg", "")

        def place(table: pa.Table) -> object:
            name = f"table_{uuid.uuid4().hex}"
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest(name, table)
                connection.commit()
            return f"{address}#{name}"

        yield place


@pytest.fixture(scope="module")
def in_clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    pytest.importorskip("chdb")
    folder = tmp_path_factory.mktemp("clickhouse")
    with clickhouse(folder) as port:
        server = ibis.clickhouse.connect(host="127.0.0.1", port=port, user="default", password="")

        def place(table: pa.Table) -> object:
            name = f"table_{uuid.uuid4().hex}"
            pq.write_table(table, folder / f"{name}.parquet")
            made = f"CREATE TABLE {name} ENGINE = Memory AS SELECT * FROM file('{folder / name}.parquet')"
            server.raw_sql(f"{made} SETTINGS schema_inference_make_columns_nullable = 1")
            return server.table(name)

        yield place


@pytest.fixture(params=["postgresql", "clickhouse"])
def put(request: pytest.FixtureRequest) -> Place:
    return cast("Place", request.getfixturevalue(f"in_{request.param.replace('postgresql', 'postgres')}"))


@pytest.mark.costly
def test_warehouses_conform(put: Place) -> None:
    # `testing/test_random_schemas` has the random schemas, on these engines too
    check_engine(lambda table, schema: open_table(put(table), schema), schemas=0)


def said(query: Query, engine: Engine, schema: dpc.Schema = SCHEMA) -> object:
    return exact_answer(query, schema, InOrder(engine), GUARANTEE)


@pytest.mark.costly
def test_every_query_has_the_same_answer_and_only_some_need_rows(put: Place) -> None:
    table = hostile()
    own, theirs = open_table(table, SCHEMA), open_table(put(table), SCHEMA)
    assert isinstance(theirs, WarehouseEngine)
    streams: list[int] = []
    read = theirs.streamed._passes

    def counted() -> Any:
        streams.append(1)
        return read()

    theirs.streamed._passes = counted
    with without_draws():
        for query in (each for kind in QUERIES.values() for each in kind.examples(SCHEMA)[-1:]):
            streams.clear()
            assert said(query, theirs) == said(query, own), query.name
            assert bool(streams) == runs_kernel(query, seen_by(query, SCHEMA), theirs), query.name


@pytest.mark.costly
def test_all_sums_of_cells_that_are_far_out_are_the_same_integers(put: Place) -> None:
    table, sums = corners(), hardest(THREE_ARMS)
    theirs = open_table(put(table), THREE_ARMS)
    assert isinstance(theirs, WarehouseEngine)
    assert theirs._here == set(column_names(THREE_ARMS))
    found, expected = (each.aggregate({"arm": 4}, sums, whole=True) for each in (theirs, open_table(table, THREE_ARMS)))
    assert [each for at, each in enumerate(sums) if (found[:, at] != expected[:, at]).any()] == []


def test_rows_without_what_is_required_are_in_no_arm(put: Place) -> None:
    table = hostile()
    placed = put(table)
    for required in ((), ("ward", "age", "smoker")):
        schema = replace(standard_schema(complete=False), required=required)
        own, theirs = open_table(table, schema), open_table(placed, schema)
        assert isinstance(theirs, WarehouseEngine)
        for cells in ({"treatment": 3}, {"arm": 3}):
            counts = [each.aggregate(cells, ["1", "outcome"], whole=True).tolist() for each in (own, theirs)]
            assert counts[0] == counts[1]
            assert counts[0][2][0] > 0
        assert own.aggregate({}, ["1"]).tolist() == theirs.aggregate({}, ["1"]).tolist()


def test_numbers_in_texts_are_streamed_by_their_type(put: Place) -> None:
    table = hostile(500)
    texts = pa.array([None if age is None else str(age) for age in table["age"].to_pylist()], pa.string())
    table = table.set_column(3, "age", texts)
    own, theirs = open_table(table, SCHEMA), open_table(put(table), SCHEMA)
    assert isinstance(theirs, WarehouseEngine)
    assert "covariate_1" not in theirs._here
    assert "outcome" in theirs._here
    for query in (RegressionMoments(["age"]), ArmMoments()):
        assert said(query, theirs) == said(query, own)


def test_other_types_of_numbers_are_the_same_integers(put: Place) -> None:
    numbers = [dpc.Real("d", 0, 1), dpc.Real("f", 0, 1), dpc.Real("i", 0, 9, missing_codes=[-9, 3], indicator=True)]
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), [dpc.Binary("b"), *numbers])
    random = np.random.default_rng(3)
    size = 1_000
    table = pa.table(
        {
            "t": pa.array(random.integers(0, 2, size) > 0),
            "y": pa.array(random.uniform(size=size).astype(np.float32)),
            "b": pa.array(random.integers(0, 3, size), mask=random.random(size) < 0.1),
            "d": pa.array([f"0.{each:05}" for each in random.integers(0, 10**5, size)]).cast(pa.decimal128(12, 5)),
            "f": pa.array([f"0.{each:019}" for each in random.integers(0, 2**63, size)]).cast(pa.decimal128(25, 19)),
            "i": pa.array(random.integers(-9, 9, size)),
        }
    )
    query = RegressionMoments(["b", "d", "f", "i", "i is missing"])
    engine = open_table(put(table), schema)
    assert said(query, engine, schema) == said(query, open_table(table, schema), schema)


def test_sums_of_64_bits_would_wrap_around(in_clickhouse: Place) -> None:
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1))
    engine = open_table(in_clickhouse(pa.table({"t": [0, 1] * 50, "y": [1.0] * 100})), schema)
    assert isinstance(engine, WarehouseEngine)
    wide = ["CAST(outcome AS BIGINT) * outcome * outcome"]
    assert engine.aggregate({}, wide)[0] == 100 * 2**60
    run = engine._warehouse.run

    def narrow(text: str, names: Sequence[str]) -> Sequence[Sequence[Any]]:
        assert "Decimal(38, 0)" in text
        return run(text.replace("Decimal(38, 0)", "Int64"), names)

    narrowed = Warehouse(engine._warehouse.families, "clickhouse", narrow)
    assert WarehouseEngine(narrowed, schema, engine.streamed).aggregate({}, wide)[0] != 100 * 2**60


def test_a_failing_postgresql_tells_nothing(in_postgres: Place) -> None:
    engine = open_table(in_postgres(hostile(50)), SCHEMA)
    assert isinstance(engine, WarehouseEngine)
    failing = f"SELECT CAST('{MARKER}' AS INTEGER) FROM dpcausal_source"
    check_withheld(lambda: engine._warehouse.run(failing, ["sum_0"]))
    assert engine.aggregate({}, ["1"], whole=True)[0] == 50  # and goes on


def test_a_failing_clickhouse_tells_nothing(in_clickhouse: Place, capfd: pytest.CaptureFixture[str]) -> None:
    table: Any = in_clickhouse(pa.table({"t": [0, 1], "y": [MARKER, "1"]}))
    cast_on_server = table.mutate(y=ibis.cases((table.y == "1", 1), else_=table.y.length()).cast("float64"))
    engine = open_table(cast_on_server, dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1)))
    assert engine.aggregate({}, ["1", "outcome"])[0] == 2
    table.get_backend().raw_sql(f"DROP TABLE {table.get_name()}")
    check_withheld(lambda: engine.aggregate({}, ["outcome"]), table.get_name())
    check_withheld(lambda: engine.collect(["outcome"], 2), table.get_name())
    assert table.get_name() not in "".join(capfd.readouterr())


def check_withheld(work: Callable[[], object], secret: str = MARKER) -> None:
    with pytest.raises(EngineError, match="withheld") as caught:
        work()
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_dates_of_an_expression_are_refused() -> None:
    table = ibis.memtable(pa.table({"t": [0, 1], "y": pa.array([0, 1], pa.date32())}))
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1, since="2020-01-01"))
    with pytest.raises(TableError, match="days since"):
        open_table(table, schema)


def test_an_expression_over_duckdb_is_read_by_our_own_engine() -> None:
    table = hostile()
    expression = ibis.memtable(table)
    engine = open_table(expression.filter(expression.treat == 1), SCHEMA)
    assert isinstance(engine, DuckDBEngine)
    own = open_table(table.filter(pc.equal(table["treat"], 1)), SCHEMA)
    assert said(ArmMoments(), engine) == said(ArmMoments(), own)
