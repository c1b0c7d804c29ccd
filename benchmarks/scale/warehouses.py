"""Whether other engines add up the integers that DuckDB does, on a million hostile rows; and at what cost.

Every query that needs no rows is asked of PostgreSQL, ClickHouse and Spark, and of four sites, one for each engine,
whose answers are added up. PostgreSQL is the server that DPCAUSAL_POSTGRES names; ClickHouse is chdb behind its HTTP
interface.
"""

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.agreement import session
from benchmarks.scale.clock import clocked
from benchmarks.scale.options import Options
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import QUERIES, ArmMoments, LookMoments, MetricMoments, Query, RegressionMoments, StratumContrasts
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.testing import standard_schema
from dpcausal.vault.context import KERNELS, runs_kernel
from dpcausal.vault.engines import Engine, with_schema
from dpcausal.vault.table import open_table
from tests.support.clickhouse import clickhouse
from tests.support.engines import without_draws
from tests.support.hostile import hostile
from tests.support.postgres import VARIABLE, fresh_database

ROWS = 1_000_000
TARGET = 0.1
"""The most processor time that this machine may spend on sums that the server adds up, as a share of streaming."""

SCHEMA = standard_schema("outcome")
THREE_ARMS = replace(standard_schema(), treatment=Treatment("treat", arms=(0, 1, 2), compare=1))
GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6, protects="outcome")
TIMED: dict[str, Query] = {"arm moments": ArmMoments(), "regression on one covariate": RegressionMoments(["age"])}

Case = tuple[Query, Schema]


def measure(options: Options) -> dict[str, Any]:
    """Ask every query that needs no rows of each engine and of four sites, and time some of them beside streaming."""
    rows, repeats = options.rows or ROWS, options.repeats or 3
    table = hostile(rows)
    asked = cases()
    result: dict[str, Any] = {"rows": rows, "repeats": repeats, "answers": len(asked)}
    result["queries"] = sorted({query.name for query, _ in asked})
    with ExitStack() as stack, without_draws():
        own = answers_of(asked, open_table(table, SCHEMA))
        sites = {"duckdb": open_table(table.slice(0, rows // 4), SCHEMA)}
        for place, (name, opened) in enumerate(ENGINES.items(), start=1):
            if (why := _absent(name)) is not None:
                result[name] = {"absent": why}
                continue
            engine: Any = stack.enter_context(opened(table, options.folder))
            result[name] = {"differ": differing(own, answers_of(asked, engine))}
            if name != "spark":
                result[name]["timed"] = {
                    label: _beside(query, engine, repeats, name == "postgresql") for label, query in TIMED.items()
                }
            part = table.slice(place * (rows // 4), rows // 4 if place < len(ENGINES) else None)
            sites[name] = stack.enter_context(opened(part, options.folder))
        if len(sites) > len(ENGINES):
            result["sites"] = {"engines": list(sites), "differ": differing(own, summed_answers(asked, sites))}
    if _absent("spark") is None:
        result["ten covariates"] = ten_covariates(rows, options.folder)
    return result


def ten_covariates(rows: int, folder: Path | None) -> dict[str, Any]:
    """Ask Spark for all products of ten covariates and an outcome, as SQL, and compare with DuckDB."""
    columns = [Real(f"before_{place}", 18, 90) for place in range(10)]
    schema = Schema(Treatment("treat"), Real("score", 0, 10), columns)
    table = hostile(rows)
    ages = table["age"].combine_chunks()
    for place, column in enumerate(columns):
        table = table.append_column(column.name, pa.concat_arrays([ages[place:], ages[:place]]))
    query = RegressionMoments([column.name for column in columns])
    own, on_duckdb = clocked(lambda: exact_answer(query, schema, open_table(table, schema), GUARANTEE))
    with in_spark(table, folder) as opened:
        engine = with_schema(opened, schema)
        engine.aggregate({}, ["1"])  # so that starting up is not counted
        theirs, on_spark = clocked(lambda: exact_answer(query, schema, engine, GUARANTEE))
    return {
        "as_sql": not runs_kernel(query, schema, engine),
        "identical": theirs == own,
        "duckdb": {key: round(value, 2) for key, value in on_duckdb.items()},
        "spark": {key: round(value, 2) for key, value in on_spark.items()},
    }


def cases() -> list[Case]:
    """Return each query that needs no rows in a warehouse once or twice, and all examples of those for several arms."""
    two = [
        (query, SCHEMA)
        for kind in QUERIES.values()
        if KERNELS[kind] is not True
        for query in dict.fromkeys((*kind.examples(SCHEMA)[:1], *kind.examples(SCHEMA)[-1:]))
    ]
    several = (MetricMoments, LookMoments)
    return [*two, *((query, THREE_ARMS) for kind in several for query in kind.examples(THREE_ARMS))]


Said = Mapping[str, Mapping[str, int]]
"""The integers of each answer, by the query and its place among the cases."""


def answers_of(asked: Sequence[Case], engine: Engine) -> Said:
    """Return an engine's answers."""
    engines = {SCHEMA: engine, THREE_ARMS: with_schema(engine, THREE_ARMS)}
    return {
        f"{place} {query.name}": exact_answer(query, schema, engines[schema], GUARANTEE).ticks
        for place, (query, schema) in enumerate(asked)
    }


def summed_answers(asked: Sequence[Case], sites: Mapping[str, Engine]) -> Said:
    """Return the sums of all sites' answers, as a federation adds them up; contrasts are of each site's own strata."""
    kept = [
        (place, case)
        for place, case in enumerate(asked)
        if case[0].adds_up and not isinstance(case[0], StratumContrasts)
    ]
    said = [list(answers_of([case for _, case in kept], engine).values()) for engine in sites.values()]
    return {
        f"{place} {case[0].name}": {name: sum(each[name] for each in answers) for name in answers[0]}
        for (place, case), answers in zip(kept, zip(*said, strict=True), strict=True)
    }


def differing(own: Said, theirs: Said) -> list[str]:
    """Return the answers that differ from DuckDB's."""
    return [name for name, ticks in theirs.items() if ticks != own[name]]


def _absent(name: str) -> str | None:
    if name == "postgresql":
        return None if VARIABLE in os.environ else f"{VARIABLE} is not set"
    module = {"clickhouse": "chdb", "spark": "pyspark"}[name]
    return None if importlib.util.find_spec(module) else f"{module} is not installed"


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


@contextmanager
def in_spark(table: pa.Table, folder: Path | None) -> Iterator[Engine]:
    """Open a table on Spark, in three partitions."""
    from dpcausal.vault.engines.spark import SparkEngine  # noqa: PLC0415 (an extra)

    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=folder) as place:
        pq.write_table(table, Path(place, "hostile.parquet"))
        yield SparkEngine(session().read.parquet(place).repartition(3), SCHEMA)


ENGINES: dict[str, Callable[[pa.Table, Path | None], Any]] = {
    "postgresql": in_postgres,
    "clickhouse": in_clickhouse,
    "spark": in_spark,
}
"""Where a table is opened, other than in DuckDB."""
