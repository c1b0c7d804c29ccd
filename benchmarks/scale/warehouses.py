"""Whether warehouses add up the integers that DuckDB does, query by query, on a million hostile rows; and at what cost.

PostgreSQL is the server that DPCAUSAL_POSTGRES names; ClickHouse is chdb behind its HTTP interface.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.options import Options
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, ArmMoments, Query, RegressionMoments
from dpcausal.testing import standard_schema
from dpcausal.vault.context import runs_kernel
from dpcausal.vault.engines import Engine
from dpcausal.vault.table import open_table
from tests.support.clickhouse import clickhouse
from tests.support.engines import without_draws
from tests.support.hostile import hostile
from tests.support.postgres import VARIABLE, fresh_database

ROWS = 1_000_000
TARGET = 0.05
"""The most processor seconds that this machine may spend on sums that the server adds up."""

SCHEMA = standard_schema("outcome")
GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6, protects="outcome")
TIMED: dict[str, Query] = {"arm moments": ArmMoments(), "regression on one covariate": RegressionMoments(["age"])}


def measure(options: Options) -> dict[str, Any]:
    """Ask every query that needs no rows of each warehouse, and time some of them beside streaming."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    table = hostile(rows)
    own = open_table(table, SCHEMA)
    result: dict[str, Any] = {"rows": rows, "repeats": repeats, "target": TARGET}
    with ExitStack() as stack, without_draws():
        for name, opened in (("postgresql", in_postgres), ("clickhouse", in_clickhouse)):
            if (why := _absent(name)) is not None:
                result[name] = {"absent": why}
                continue
            engine: Any = stack.enter_context(opened(table, options.folder))
            asked = [query for query in _examples() if not runs_kernel(query, SCHEMA, engine)]
            differ = [query.name for query in asked if _said(query, engine) != _said(query, own)]
            result[name] = {"queries": sorted({query.name for query in asked}), "differ": differ}
            result[name]["timed"] = {
                label: _beside(query, engine, repeats, name == "postgresql") for label, query in TIMED.items()
            }
    return result


def _absent(name: str) -> str | None:
    if name == "postgresql":
        return None if VARIABLE in os.environ else f"{VARIABLE} is not set"
    return None if importlib.util.find_spec("chdb") else "chdb is not installed"


def _examples() -> list[Query]:
    """Return each query once or twice."""
    examples = [kind.examples(SCHEMA) for kind in QUERIES.values()]
    return [query for each in examples for query in dict.fromkeys((each[0], each[-1]))]


def _said(query: Query, engine: Engine) -> object:
    return exact_answer(query, SCHEMA, engine, GUARANTEE)


def _beside(query: Query, engine: Any, repeats: int, servers: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return the median cost of sums in the warehouse and of streaming, taken in turns."""
    ways = {"pushed down": engine, "streamed": engine.streamed}
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(repeats + 1):
        for way, each in ways.items():
            runs[way].append(_clocked(lambda each=each: _said(query, each), servers))  # type: ignore[misc]
    # The first one of each warms up.
    return {
        way: {key: round(sorted(run[key] for run in taken[1:])[repeats // 2], 4) for key in taken[0]}
        for way, taken in runs.items()
    }


def _clocked(work: Callable[[], object], servers: bool) -> dict[str, float]:
    client, server, wall = time.process_time(), _postgres_seconds() if servers else 0.0, time.perf_counter()
    work()
    found = {"client_cpu": time.process_time() - client, "wall": time.perf_counter() - wall}
    return found | ({"server_cpu": _postgres_seconds() - server} if servers else {})


def _postgres_seconds() -> float:
    """Return processor seconds of all of PostgreSQL's processes on this machine, those that ended included."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
        except OSError:  # gone by now
            continue
        if "(postgres" in name:
            total += sum(map(int, rest.split()[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


@contextmanager
def in_postgres(table: pa.Table, _: Path | None) -> Iterator[Engine]:
    """Put a table into PostgreSQL, and open it there."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 (an extra)

    with fresh_database() as url:
        address = url.replace("+psycopg", "")
        with dbapi.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("hostile", table)
            cursor.execute("ANALYZE hostile")
        yield open_table(f"{address}#hostile", SCHEMA)


@contextmanager
def in_clickhouse(table: pa.Table, folder: Path | None) -> Iterator[Engine]:
    """Put a table into ClickHouse, and open it there."""
    import ibis  # noqa: PLC0415 (an extra)

    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=folder) as place:
        pq.write_table(table, Path(place, "hostile.parquet"))
        with clickhouse(Path(place)) as port:
            server = ibis.clickhouse.connect(host="127.0.0.1", port=port, user="default", password="")
            yield open_table(server.table("hostile"), SCHEMA)
