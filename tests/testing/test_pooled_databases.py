"""A used database is as good as a new one: nobody else's while a table is open, and empty afterwards."""

import gc

import duckdb
import pyarrow as pa
import pytest

from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect
from tests.support import pooled_databases
from tests.support.pooled_databases import pooled_connection

SETTINGS = "SELECT name, value FROM duckdb_settings() ORDER BY name"


@pytest.fixture(autouse=True)
def nothing_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled_databases, "_FREE", type(pooled_databases._FREE)(list))


def objects(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in connection.execute("SHOW TABLES").fetchall()]


def test_a_used_database_has_the_settings_of_a_new_one_and_nothing_of_the_table_before() -> None:
    table, schema = synthetic_table(standard_schema(), 50), standard_schema()
    connection = pooled_connection(threads=1)
    engine = DuckDBEngine(connection.from_arrow(table), schema, connection=connection)
    assert engine.aggregate({}, ["1"], whole=True).tolist() == [50]
    connection.from_arrow(pa.table({"treatment": [0]})).create("coerced")
    assert len(objects(connection)) == 2
    del connection, engine
    gc.collect()
    assert sum(map(len, pooled_databases._FREE.values())) == 1
    used = pooled_connection(threads=1)
    assert sum(map(len, pooled_databases._FREE.values())) == 0
    assert objects(used) == []
    assert used.execute(SETTINGS).fetchall() == connect(threads=1).execute(SETTINGS).fetchall()


def test_tables_that_are_open_at_once_have_databases_of_their_own() -> None:
    one, other = pooled_connection(threads=1), pooled_connection(threads=1)
    one.from_arrow(pa.table({"a": [1]})).create("coerced")
    assert objects(other) == []


def test_a_database_that_sees_no_files_any_more_is_not_used_again() -> None:
    connection = pooled_connection(threads=1)
    connection.execute("SET enable_external_access = false")
    del connection
    gc.collect()
    assert pooled_connection(threads=1).execute(pooled_databases._SEES_FILES).fetchall() == [(True,)]
