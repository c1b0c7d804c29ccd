"""Every engine that can be run here, each as what opens a table with it."""

import importlib
import os
import shutil
import sys
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.schema.schema import Schema
from dpcausal.vault.coercion import SOURCE
from dpcausal.vault.engines import Engine, ExactInts, with_schema
from dpcausal.vault.table import open_table
from tests.support.clickhouse import clickhouse
from tests.support.conformance.sums import OpenEngine
from tests.support.postgres import VARIABLE, fresh_database

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


_QUICK = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject",
    "spark.sql.shuffle.partitions": "1",
}
"""Tables here are so small that Spark would take longest to optimise and compile what it is asked."""


class NotHereError(Exception):
    """An engine that cannot be run here, and why."""


class Counting:
    """An engine that counts the sums which a warehouse did not add up itself, but sent rows for."""

    def __init__(self, engine: Engine, counts: Counter[str]) -> None:
        self.fold, self.collect = engine.fold, engine.collect
        self._engine, self._counts = engine, counts

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows; see `Engine.aggregate`."""
        streamed: Any = getattr(self._engine, "streamed", None)
        if streamed is None:
            return self._engine.aggregate(cells, sums, whole=whole)
        passes, read = streamed._passes, []

        def counted() -> Any:
            read.append(1)
            return passes()

        streamed._passes = counted
        try:
            found = self._engine.aggregate(cells, sums, whole=whole)
        finally:
            streamed._passes = passes
        self._counts["streamed"] += found.size if read else 0
        return found

    def with_schema(self, schema: Schema) -> "Counting":
        """Return the same table seen through another schema, with the same count."""
        return Counting(with_schema(self._engine, schema), self._counts)


def signed_integers(table: pa.Table) -> pa.Table:
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
                signed = signed_integers(table)
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
        settings: dict[str, Any] = SETTINGS | _QUICK
        builder = SparkSession.builder.master("local[1]").config(map=settings)
        session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        yield lambda table, schema: open_table(session.createDataFrame(signed_integers(table)), schema)
        session.stop()


@contextmanager
def _in_snowflake() -> Iterator[OpenEngine]:
    """Run the text for Snowflake in fakesnow, which is DuckDB under Snowflake's names."""
    try:
        fakesnow, connector = map(importlib.import_module, ("fakesnow", "snowflake.connector"))
    except ModuleNotFoundError as error:
        raise NotHereError(f"no {error.name}: pip install fakesnow 'snowflake-connector-python<5'") from None
    import ibis  # noqa: PLC0415 (an extra)

    from dpcausal.vault.engines.duckdb import DuckDBEngine, connect  # noqa: PLC0415
    from dpcausal.vault.engines.warehouse import Warehouse, WarehouseEngine  # noqa: PLC0415
    from dpcausal.vault.readers.ibis_tables import _family  # noqa: PLC0415

    with fakesnow.patch(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection = connector.connect(database="clinic", schema="public")

        def opened(table: pa.Table, schema: Schema) -> Engine:
            name, held = f"table_{uuid.uuid4().hex}", _in_64_bits(signed_integers(table))
            connection._duck_conn.register("held", held)
            connection._duck_conn.execute(f"CREATE TABLE clinic.public.{name} AS SELECT * FROM held")

            def run(text: str, _: Sequence[str]) -> list[Any]:
                query = f'WITH {SOURCE} AS (SELECT * FROM "{name}") {text}'
                found: list[Any] = connection.cursor().execute(query).fetchall()
                return found

            families = {name: _family(kind) for name, kind in ibis.Schema.from_pyarrow(held.schema).items()}
            served = Warehouse(families, "snowflake", run)
            return WarehouseEngine(served, schema, DuckDBEngine(connect().from_arrow(held), schema))

        yield opened


def _in_64_bits(table: pa.Table) -> pa.Table:
    """Return a table whose numbers in floating point have 64 bits, as Snowflake has no others."""
    kinds = {pa.float32(): pa.float64()}
    return table.cast(pa.schema([(field.name, kinds.get(field.type, field.type)) for field in table.schema]))


OPENED: dict[str, Callable[[], AbstractContextManager[OpenEngine]]] = {
    "duckdb": _in_duckdb,
    "postgresql": _in_postgres,
    "clickhouse": _in_clickhouse,
    "spark": _in_spark,
    "snowflake": _in_snowflake,
}
"""By name, what begins an engine and gives what opens a table with it."""
