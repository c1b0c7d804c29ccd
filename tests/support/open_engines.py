"""Every engine that can be run here, each as what opens a table with it."""

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.schema import Schema
from dpcausal.testing.sums import OpenEngine
from dpcausal.vault.engines import Engine
from dpcausal.vault.table import open_table
from tests.support.clickhouse import clickhouse
from tests.support.postgres import VARIABLE, fresh_database

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Tables here are so small that Spark would take longest to compile its own code for each."""


class NotHereError(Exception):
    """An engine that cannot be run here, and why."""


def _signed(table: pa.Table) -> pa.Table:
    """Return a table whose integers have a sign, for engines without others; the next wider type holds them."""
    return table.cast(pa.schema([(field.name, _SIGNED.get(field.type, field.type)) for field in table.schema]))


@contextmanager
def _in_duckdb() -> Iterator[OpenEngine]:
    yield open_table


@contextmanager
def _in_postgres() -> Iterator[OpenEngine]:
    if VARIABLE not in os.environ:
        raise NotHereError(f"{VARIABLE} is not set")
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 (an extra)

    with fresh_database() as url:
        address = url.replace("+psycopg", "")

        def opened(table: pa.Table, schema: Schema) -> Engine:
            name = f"table_{uuid.uuid4().hex}"
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                signed = _signed(table)
                cursor.adbc_ingest(name, signed)
                for field in signed.schema:
                    if pa.types.is_decimal(field.type):  # which the driver makes numbers of any length
                        kind, column = field.type, field.name.replace('"', '""')
                        cursor.execute(
                            f'ALTER TABLE {name} ALTER "{column}" TYPE numeric({kind.precision}, {kind.scale})'
                        )
                connection.commit()
            return open_table(f"{address}#{name}", schema)

        yield opened


@contextmanager
def _in_clickhouse() -> Iterator[OpenEngine]:
    import ibis  # noqa: PLC0415 (an extra)

    with tempfile.TemporaryDirectory() as folder, clickhouse(Path(folder)) as port:
        server = ibis.clickhouse.connect(host="127.0.0.1", port=port, user="default", password="")

        def opened(table: pa.Table, schema: Schema) -> Engine:
            name = f"table_{uuid.uuid4().hex}"
            file = Path(folder) / f"{name}.parquet"
            pq.write_table(table, file)
            made = f"CREATE TABLE {name} ENGINE = Memory AS SELECT * FROM file('{file}')"
            server.raw_sql(f"{made} SETTINGS schema_inference_make_columns_nullable = 1")
            file.unlink()
            return open_table(server.table(name), schema)

        yield opened


@contextmanager
def _in_spark() -> Iterator[OpenEngine]:
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise NotHereError("no Java, which Spark runs on")
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    from tests.vault.on_spark import SETTINGS  # noqa: PLC0415 (imports pytest)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[1]").config(map=SETTINGS | _INTERPRETED)
        session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        yield lambda table, schema: open_table(session.createDataFrame(_signed(table)), schema)
        session.stop()


OPENED: dict[str, Callable[[], AbstractContextManager[OpenEngine]]] = {
    "duckdb": _in_duckdb,
    "postgresql": _in_postgres,
    "clickhouse": _in_clickhouse,
    "spark": _in_spark,
}
"""By name, what begins an engine and gives what opens a table with it."""
