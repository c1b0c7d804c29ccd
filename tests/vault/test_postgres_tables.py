"""Tables of a PostgreSQL server, read where they lie. One test at a time: they share the server's connections."""

import gc
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.vault.engines import Batch
from dpcausal.vault.readers import postgres
from dpcausal.vault.table import open_table
from tests.support.postgres import VARIABLE, fresh_database
from tests.support.slow import sampled

pytestmark = [
    pytest.mark.xdist_group("postgresql"),
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no PostgreSQL server: {VARIABLE} is not set"),
]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), covariates=[dpc.Real("place", 0, 2**20)]
)
OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
nan, inf = float("nan"), float("inf")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a database of our own, as PostgreSQL's own programs write it."""
    with fresh_database() as url:
        yield url.replace("+psycopg", "")


@pytest.fixture
def server(address: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the database, with nothing in it."""
    gc.collect()  # an error that was caught may have kept an engine, and that its lock
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET lock_timeout = 10000")
        connection.execute('DROP SCHEMA IF EXISTS "Cli""nic" CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public')
        yield connection


def fill(server: psycopg.Connection[Any], kinds: dict[str, str], columns: dict[str, list[Any]]) -> None:
    """A table `visits` of these columns; a cell is text as PostgreSQL reads it."""
    names = [sql.Identifier(name) for name in columns]
    declared = [sql.SQL("{} {}").format(name, sql.SQL(kind)) for name, kind in zip(names, kinds.values(), strict=True)]
    server.execute("DROP TABLE IF EXISTS visits")
    server.execute(sql.SQL("CREATE TABLE visits ({})").format(sql.SQL(", ").join(declared)))
    casts = sql.SQL(", ").join(sql.SQL("%s::text::{}").format(sql.SQL(kind)) for kind in kinds.values())
    with server.cursor() as cursor:
        cells = [[None if cell is None else str(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
        cursor.executemany(sql.SQL("INSERT INTO visits VALUES ({})").format(casts), cells)


def ticks(table: object, schema: dpc.Schema) -> list[tuple[int, ...]]:
    """The coerced rows, in the order of `place`."""
    batch = open_table(table, schema).collect(("covariate_0", "treatment", "outcome"), 10_000, whole=True)
    return sorted(zip(*(values.tolist() for values in batch.values()), strict=True))


NUMBERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "smallint": (pa.int16(), [0, 1, 7, -(2**15), 2**15 - 1, None]),
    "integer": (pa.int32(), [0, 1, 7, -(2**31), 2**31 - 1, None]),
    "bigint": (pa.int64(), [0, 1, 7, -(2**63), 2**63 - 1, 2**53 + 1, None]),
    "real": (pa.float32(), [0.1, 7.3, nan, inf, -inf, 1e-45, 3.4e38, -0.0, None]),
    "double precision": (pa.float64(), [0.1, 7.3, nan, inf, -inf, 5e-324, 1.7e308, -1.7e308, -0.0, None]),
    "numeric(30, 4)": (pa.decimal128(30, 4), [Decimal("0.1000"), Decimal("7.3333"), Decimal("9" * 26), None]),
    "numeric": (pa.string(), ["0.1", "7.30", "NaN", "Infinity", "-Infinity", "1e300", "-1e-300", "1e9000", None]),
    "text": (pa.string(), ["7.3", "", "abc", "NaN", "-inf", "1e400", "½", "x" * 100_000, "'; DROP TABLE visits", None]),
    "varchar(9)": (pa.string(), ["7.3", "NULL", " 4 ", "ﬁve", None]),
    "char(9)": (pa.string(), ["7.3", "6", "x", None]),
    "name": (pa.string(), ["7.3", "", None]),
    "score": (pa.string(), ["7.3", "high", None]),
    "share": (pa.float64(), [0.1, 0.9, None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
def test_hostile_values_become_the_integers_that_arrow_makes_of_them(
    kind: str, address: str, server: psycopg.Connection[Any]
) -> None:
    server.execute("CREATE TYPE score AS ENUM ('7.3', 'high')")
    server.execute("CREATE DOMAIN half AS double precision CHECK (VALUE < 1); CREATE DOMAIN share AS half")
    arrow, values = NUMBERS[kind]
    columns = {"place": list(range(len(values))), "t": [0] * len(values), "y": values}
    fill(server, {"place": "integer", "t": "smallint", "y": kind}, columns)
    expected = pa.table({"place": columns["place"], "t": columns["t"], "y": pa.array(values, arrow)})
    assert ticks(f"{address}#visits", SCHEMA) == ticks(expected, SCHEMA)


@pytest.mark.parametrize("cell", [5e-324, -5e-324, 1e-310, 40.0, -200.0])
def test_a_cell_near_0_does_not_underflow(cell: float, address: str, server: psycopg.Connection[Any]) -> None:
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", -1e7, 1e7))
    columns: dict[str, list[Any]] = {"t": [0, 1], "y": [cell, 1000.0]}
    fill(server, {"t": "smallint", "y": "double precision"}, columns)
    sums = [
        open_table(table, schema).aggregate({"treatment": 2}, ["1", "outcome"]).tolist()
        for table in (f"{address}#visits", pa.table(columns))
    ]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("kind", ["numeric(5, -2)", "numeric(2, 4)"])
def test_numbers_with_fewer_or_more_places_than_digits_are_read(
    kind: str, address: str, server: psycopg.Connection[Any]
) -> None:
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1000, missing=500))
    fill(server, {"t": "smallint", "y": kind}, {"t": [0, 1], "y": [0, None]})
    assert open_table(f"{address}#visits", schema).aggregate({"treatment": 2}, ["1"]).tolist() == [[1], [1]]


def test_odd_names_and_listed_values_are_read(address: str, server: psycopg.Connection[Any]) -> None:
    names = ['t"; DROP TABLE visits; --', "größe {cm}"]
    arm = dpc.Treatment(names[0], arms=("no", 'ye"s'), undeclared="no")
    schema = dpc.Schema(treatment=arm, outcome=dpc.Real(names[1], 0, 10), covariates=[dpc.Real("place", 0, 2**20)])
    columns: dict[str, list[Any]] = {
        "place": [0, 1, 2, 3],
        names[0]: ["no", 'ye"s', "NO", None],
        names[1]: [1, 2, 3, None],
        "other": ["{}"] * 4,
    }
    kinds = {"place": "integer", names[0]: "text", names[1]: "integer", "other": "json"}
    fill(server, kinds, columns)
    server.execute('CREATE SCHEMA "Cli""nic"; CREATE VIEW "Cli""nic"."se.en" AS SELECT * FROM visits')
    del columns["other"]
    assert ticks(f'{address}#Cli"nic.se.en', schema) == ticks(pa.table(columns), schema)


@pytest.mark.parametrize("kind", ["date", "timestamp", "text"])
def test_dates_become_days_however_far_off(kind: str, address: str, server: psycopg.Connection[Any]) -> None:
    outcome = dpc.Real("y", -1000, 1000, missing=0, since="2020-01-01")
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=outcome, covariates=[dpc.Real("place", 0, 2**20)]
    )
    far = ["0044-03-15 BC", "5874897-12-31" if kind == "date" else "294276-12-31", "infinity", "-infinity"]
    cells = ["2020-01-02", "2019-12-31", None, *(far if kind != "text" else ["x"] * 4)]
    fill(
        server,
        {"place": "integer", "t": "smallint", "y": kind},
        {"place": list(range(7)), "t": [0] * 7, "y": cells},
    )
    days = [1, -1, None, *([-1000, 1000, 1000, -1000] if kind != "text" else [None] * 4)]
    plain = dpc.Schema(
        dpc.Treatment("t", undeclared=0), dpc.Real("y", -1000, 1000, missing=0), [dpc.Real("place", 0, 2**20)]
    )
    expected = pa.table({"place": list(range(7)), "t": [0] * 7, "y": pa.array(days, pa.float64())})
    assert ticks(f"{address}#visits", schema) == ticks(expected, plain)


@pytest.mark.parametrize("kind", ["timestamptz", "integer"])
def test_times_with_a_time_zone_and_numbers_are_no_dates(
    kind: str, address: str, server: psycopg.Connection[Any]
) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, since="2020-01-01"))
    server.execute(f"CREATE TABLE visits (t integer, y {kind})")
    with pytest.raises(TableError, match="without time zone"):
        open_table(f"{address}#visits", schema)


FAR = [
    ("date", ["4713-01-01 BC", "0001-01-01", "2024-02-29", "5874897-12-31", "infinity"]),
    ("date", ["-infinity", "4713-01-01 BC", "5874897-12-31"]),
    ("timestamp", ["-infinity", "4713-01-01 BC", "2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "294276-12-31"]),
    ("timestamptz", ["4713-01-02 BC", "1969-12-31", "1970-01-02", "294276-12-31 23:59:59.999999+00", "infinity"]),
    ("numeric", ["-Infinity", "-1e300", "-2", "1.50", "10", "1e20", "1e300", "Infinity"]),
    ("text", ["-inf", "-2", "1.50", "10"]),
    ("bigint", ["-9223372036854775808", "-1", "0", "9223372036854775807"]),
    ("double precision", ["-Infinity", "-1", "0", "1e308", "Infinity", "NaN"]),
    ("uuid", ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
]


@pytest.mark.parametrize(
    ("kind", "rising", "keep"),
    sampled([(*far, ("first", "last")[(at + place) % 2]) for at, far in enumerate(FAR) for place in (0, 1)], 2),
)
def test_units_are_told_apart_and_ordered_by_any_time_or_number(
    kind: str, rising: list[str], keep: Any, address: str, server: psycopg.Connection[Any]
) -> None:
    arm, outcome = dpc.Treatment("t", undeclared=0), dpc.Real("y", -(2.0**20), 2.0**20)
    whens, size = [*rising[::-1], None], len(rising) + 1
    columns: dict[str, list[Any]] = {"who": [1] * size, "when": whens, "y": list(range(size)), "t": [0] * size}
    fill(server, {"who": "integer", "when": kind, "y": "integer", "t": "integer"}, columns)
    ordered = dpc.Schema(treatment=arm, outcome=outcome, unit=dpc.Unit("who", by="when", keep=keep))
    kept = open_table(f"{address}#visits", ordered).collect(["outcome"], 1)["outcome"]
    assert kept.tolist() == [whens.index(rising[0 if keep == "first" else -1])]
    named = dpc.Schema(treatment=arm, outcome=outcome, unit=dpc.Unit("when", by="who", keep=keep))
    assert open_table(f"{address}#visits", named).aggregate({}, ["1"])[0] == size


@pytest.mark.parametrize(("kind", "rising"), [FAR[0], FAR[2], FAR[3]])
def test_times_sent_as_they_are_would_be_caught(
    kind: str, rising: list[str], address: str, server: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver gives far-off times as others: its integers overflow."""
    monkeypatch.setattr(postgres, "_SENT", {name: (family, "{}") for name, (family, _) in postgres._SENT.items()})
    with pytest.raises(AssertionError):
        test_units_are_told_apart_and_ordered_by_any_time_or_number(kind, rising, "last", address, server)


def test_a_number_names_one_unit_however_it_is_written(address: str, server: psycopg.Connection[Any]) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10), unit=dpc.Unit("who", by="y")
    )
    fill(server, {"who": "numeric", "t": "integer", "y": "integer"}, {"who": ["1", "1.00"], "t": [0, 0], "y": [1, 2]})
    assert open_table(f"{address}#visits", schema).aggregate({}, ["1"])[0] == 1


@pytest.mark.parametrize(
    "kind", ["json", "bytea", '"char"', "interval", "integer[]", "time", "inet", "money", "bit(3)"]
)
def test_other_types_are_refused_by_name(kind: str, address: str, server: psycopg.Connection[Any]) -> None:
    server.execute(f"CREATE TABLE visits (place integer, t integer, y {kind})")
    with pytest.raises(TableError, match="'y'") as caught:
        open_table(f"{address}#visits", SCHEMA)
    assert kind.partition("(")[0] in str(caught.value)


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "uuid"])
def test_times_only_name_or_order(kind: str, address: str, server: psycopg.Connection[Any]) -> None:
    server.execute(f"CREATE TABLE visits (place integer, t integer, y {kind})")
    with pytest.raises(TableError, match="'y' must hold numbers or text"):
        open_table(f"{address}#visits", SCHEMA)


@pytest.mark.parametrize("name", ["absent", "absent.visits", "public.absent", "Visits", "denied"])
def test_a_table_that_is_not_there_is_refused(name: str, address: str, server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE TABLE visits (place integer, t integer, y integer); CREATE VIEW denied AS TABLE visits")
    user = f"reader_{uuid.uuid4().hex}"
    server.execute(f"CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA public TO {user}".encode())
    server.execute(f"GRANT SELECT ON visits TO {user}".encode())
    theirs = address.replace("postgres@", f"{user}@")
    try:
        assert open_table(f"{theirs}#visits", SCHEMA).aggregate({}, ["1"])[0] == 0
        with pytest.raises(TableError, match=name) as caught:
            open_table(f"{theirs}#{name}", SCHEMA)
        assert caught.value.__cause__ is None
    finally:
        server.execute(f"DROP OWNED BY {user}; DROP ROLE {user}".encode())


def test_a_table_that_others_change_stays_as_it_was(address: str, server: psycopg.Connection[Any]) -> None:
    fill(
        server, {"place": "integer", "t": "integer", "y": "integer"}, {"place": [*range(9)], "t": [0] * 9, "y": [1] * 9}
    )
    engine = open_table(f"{address}#visits", SCHEMA)
    before = engine.aggregate({"treatment": 2}, ["1", "outcome"]).tolist()
    server.execute(
        "UPDATE visits SET y = 9, t = 1; DELETE FROM visits WHERE place = 3; INSERT INTO visits VALUES (1, 1, 1)"
    )
    assert engine.aggregate({"treatment": 2}, ["1", "outcome"]).tolist() == before
    assert engine.fold(["outcome"], added)[0] == before[0][1]
    now = open_table(f"{address}#visits", SCHEMA)
    assert now.aggregate({"treatment": 2}, ["1", "outcome"]).tolist() != before
    with pytest.raises(psycopg.errors.LockNotAvailable):
        server.execute("SET lock_timeout = 100; TRUNCATE visits")
    del engine, now
    server.execute("TRUNCATE visits")


def test_a_table_is_opened_to_read(address: str, server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE TABLE visits (place integer, t integer, y integer)")
    table = postgres.PostgresTable(f"{address}#visits", SCHEMA)
    with pytest.raises(Exception, match="read-only transaction"):
        table._execute("INSERT INTO visits VALUES (1, 1, 1)")


def added(batch: Batch) -> Any:
    return np.array([batch["outcome"].sum()])


def connections(server: psycopg.Connection[Any], wanted: int) -> bool:
    """Whether there are so many connections beside this one, soon: a server takes a moment to notice that one ended."""
    for _ in range(100):
        ((count,),) = server.execute(f"SELECT count(*) {OTHERS}".encode()).fetchall()
        if count == wanted:
            return True
        server.execute("SELECT pg_sleep(0.05)")
    return False


def test_a_pass_that_ends_early_leaves_the_next_one_whole(address: str, server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE TABLE visits AS SELECT i AS place, 0 AS t, 1.0 AS y FROM generate_series(1, 300000) i")
    engine = open_table(f"{address}#visits", SCHEMA)

    def kernel(batch: Batch) -> Any:
        if len(batch["outcome"]):
            raise RuntimeError("stop")
        return np.zeros(1)

    for _ in range(3):
        with pytest.raises(RuntimeError, match="stop"):
            engine.fold(["outcome"], kernel)
        assert engine.aggregate({}, ["1"])[0] == 300_000
    assert (
        engine.collect(["covariate_0"], 300_000, lambda batch: {"place": batch["covariate_0"]})["place"].size == 300_000
    )


def test_a_table_that_is_let_go_is_closed(address: str, server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE TABLE visits AS SELECT i AS place, 0 AS t, 1.0 AS y FROM generate_series(1, 3) i")
    assert connections(server, 0)
    vault = dpc.Vault(f"{address}#visits", SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    assert connections(server, 1)
    assert dpc.DifferenceInMeans().estimate(vault, epsilon=1.0).n == 3
    del vault
    assert connections(server, 0)


QUOTING = """
CREATE VIEW visits AS
SELECT i AS place, 0 AS t, CASE WHEN i = 90000 THEN 'canary' ELSE '1' END::integer AS y FROM generate_series(1, 99999) i
"""


def test_no_failure_says_what_the_server_said(address: str, server: psycopg.Connection[Any]) -> None:
    server.execute(QUOTING)
    engine = open_table(f"{address}#visits", SCHEMA)
    verbs: list[Callable[[], object]] = [
        lambda: engine.aggregate({}, ["outcome"]),
        lambda: engine.fold(["outcome"], added),
    ]
    for verb in verbs:
        with pytest.raises(EngineError) as caught:
            verb()
        assert "canary" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    server.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}".encode())
    with pytest.raises(EngineError, match="open the vault again") as caught:
        engine.aggregate({}, ["1"])
    assert caught.value.__cause__ is None


def test_a_failure_that_is_not_silenced_would_be_caught(
    address: str, server: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute(QUOTING)
    engine = open_table(f"{address}#visits", SCHEMA)
    monkeypatch.setattr("dpcausal.vault.engines.duckdb._silenced", nullcontext)
    with pytest.raises(Exception, match="canary"):
        engine.fold(["outcome"], added)
    monkeypatch.setattr(postgres, "_silenced", nullcontext)
    with pytest.raises(Exception, match="canary"):
        engine.aggregate({}, ["outcome"])


def test_the_users_own_encoding_does_not_decide(address: str, server: psycopg.Connection[Any]) -> None:
    """A letter that another encoding lacks would make the server fail, and say so."""
    fill(server, {"place": "integer", "t": "integer", "y": "text"}, {"place": [0, 1], "t": [0, 0], "y": ["ł€", "7"]})
    name = address.rpartition("/")[2]
    server.execute(sql.SQL("ALTER DATABASE {} SET client_encoding TO 'latin1'").format(sql.Identifier(name)))
    try:
        with psycopg.connect(address) as latin, pytest.raises(psycopg.errors.UntranslatableCharacter):
            latin.execute("SELECT y FROM visits")
        assert [row[2] for row in ticks(f"{address}#visits", SCHEMA)] == [0, round(2 / 5 * 2**20)]
    finally:
        server.execute(sql.SQL("ALTER DATABASE {} RESET client_encoding").format(sql.Identifier(name)))


def test_a_server_in_another_encoding_is_refused(address: str, server: psycopg.Connection[Any]) -> None:
    name = f"latin_{uuid.uuid4().hex}"
    server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0".encode())
    try:
        with pytest.raises(TableError, match="LATIN1"):
            open_table(f"{address.rpartition('/')[0]}/{name}#pg_class", SCHEMA)
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(TableError, match=r"dpcausal\[postgres\]"):
        open_table("postgresql://nobody@127.0.0.1:1/nothing#visits", SCHEMA)


def test_a_vault_opens_a_table_of_postgresql(
    address: str, server: psycopg.Connection[Any], schema: dpc.Schema, table: pa.Table
) -> None:
    columns = {name: table[name].to_pylist() for name in table.column_names}
    kinds = {"treat": "integer", "score": "double precision", "age": "double precision", "race": "text"}
    fill(server, kinds, columns)
    vault = dpc.Vault(f"{address}#visits", schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10))
    assert vault.n == 1000
    effect = dpc.Stratification(by=["race"]).estimate(vault, epsilon=5.0)
    assert abs(effect.estimate - 2) < 1
