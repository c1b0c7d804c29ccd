import gzip
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.vault.coercion import column_names
from dpcausal.vault.engines import Batch, Engine
from dpcausal.vault.readers.headers import has_bare_returns
from dpcausal.vault.readers.inspection import inspect
from dpcausal.vault.table import column_families, open_table

nan = float("nan")


def write_folder(table: pa.Table, folder: Path) -> None:
    """The table in three files, in the one order of columns or the other, beside files that are none of it."""
    inner = folder / "age=7" / "race=other"
    for each in (inner, folder / "_temporary", folder / ".hidden"):
        each.mkdir(parents=True)
    pq.write_table(table.slice(0, 400), folder / "a.parquet")
    pq.write_table(table.slice(400, 500).select(table.column_names[::-1]), folder / "odd[1]*, {b}?.parquet")
    pq.write_table(table.slice(900).append_column("more", table["age"].slice(900)), inner / "c.parquet")
    pq.write_table(table, folder / "_temporary" / "unfinished.parquet")
    pq.write_table(table, folder / ".hidden" / "d.parquet")
    (folder / "_SUCCESS").touch()


def write_database(table: pa.Table, file: Path) -> None:
    with duckdb.connect(file) as connection:
        connection.from_arrow(table).create("visits")
        connection.execute("CREATE SCHEMA clinic; CREATE VIEW clinic.seen AS SELECT * FROM visits")


def test_every_way_in_gives_the_same_integers(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "table.parquet")
    table.to_pandas().to_csv(tmp_path / "table.csv", index=False)
    with gzip.open(tmp_path / "table.csv.gz", "wt", encoding="utf-8") as file:
        table.to_pandas().to_csv(file, index=False)
    table.slice(0, 300).to_pandas().to_csv(tmp_path / "part_1.csv", index=False)
    table.slice(300).to_pandas().to_csv(tmp_path / "part_2.csv", index=False)
    write_folder(table, tmp_path / "folder")
    write_database(table, tmp_path / "warehouse's.duckdb")
    ways = [
        table,
        table.to_pandas(),
        table.to_pandas().astype(object),
        pl.from_arrow(table),
        duckdb.connect().from_arrow(table),
        tmp_path / "table.parquet",
        str(tmp_path / "table.csv"),
        tmp_path / "table.csv.gz",
        tmp_path / "folder",
        f"{tmp_path}/fol*/**/[aco]*.parquet",
        f"{tmp_path}/part_?.csv",
        tmp_path / "warehouse's.duckdb#visits",
        f"{tmp_path}/warehouse's.duckdb#clinic.seen",
    ]
    sums = [open_table(way, schema).aggregate({"treatment": 2}, column_names(schema)).tolist() for way in ways]
    assert all(each == sums[0] for each in sums)


@pytest.mark.parametrize(
    "reading",
    [
        "SELECT 0 AS t, (SELECT length(content) FROM read_text('{file}')) AS y",
        "SELECT 0 AS t, y FROM read_csv('{file}')",
        "SELECT 0 AS t, y FROM '{file}'",
        "SELECT 0 AS t, count(*) AS y FROM glob('{folder}/*')",
        "SELECT 0 AS t, y FROM macro_of_the_file('{file}')",
    ],
)
def test_views_of_a_duckdb_file_read_nothing_outside_of_it(reading: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("y\n1\n", encoding="utf-8")
    with duckdb.connect(tmp_path / "foreign.duckdb") as connection:
        connection.execute("CREATE MACRO macro_of_the_file(name) AS TABLE SELECT y FROM read_csv(name)")
        connection.execute(f"CREATE VIEW visits AS {reading.format(file=tmp_path / 'other.csv', folder=tmp_path)}")
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    with pytest.raises(TableError, match="reads other files is not followed"):
        open_table(tmp_path / "foreign.duckdb#visits", schema)
    with pytest.raises(TableError, match="reads other files is not followed"):
        column_families(f"{tmp_path}/foreign.duckdb#visits")


def test_macros_of_a_duckdb_file_replace_no_function(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    write_database(table, tmp_path / "foreign.duckdb")
    with duckdb.connect(tmp_path / "foreign.duckdb") as connection:
        named = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name SIMILAR TO '[a-z_0-9]+'"
        names = connection.execute(named).fetchall()
        connection.begin()
        for (name,) in names:
            with suppress(duckdb.ParserException):  # some names are reserved
                connection.execute(f'CREATE MACRO "{name}"(a) AS 0, (a, b) AS 0, (a, b, c) AS 0')
        connection.commit()
        made = connection.execute("SELECT function_name FROM duckdb_functions() WHERE NOT internal").fetchall()
    assert {"greatest", "least", "sum", "round"} <= {name for (name,) in made}
    for place in ("visits", "clinic.seen"):
        engines = open_table(tmp_path / f"foreign.duckdb#{place}", schema), open_table(table, schema)
        first, second = (engine.aggregate({"treatment": 2}, column_names(schema)).tolist() for engine in engines)
        assert first == second


def test_no_line_of_a_csv_can_stop_it(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0))
    file = tmp_path / "hostile.csv"
    file.write_bytes(
        b't,y,note\n0,1,fine\n1,abc,text\n1\n,,\n0,1,2,3,4,5\n1,0.5,"two\nlines"\n0,\xff\xfe,x\n1,\'1\',"open\n0,1,z\n'
    )
    assert 4 <= open_table(file, schema).aggregate({}, ["1"])[0] <= 9


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_quoted_line_breaks_of_a_csv_belong_to_their_cell(end: str, place: int, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    sums = []
    for cell in ("plain", "two\nlines", "two\r\nlines", "two\rlines", "\n", '\n""0"",1\n', "\n" * 3_000):
        cells = [["t", "y"], *([str(number % 2), "1"] for number in range(2_000))]
        for number, line in enumerate(cells):
            line.insert(place, "note" if number == 0 else f'"{cell}"' if number % 500 == 7 else "x")
        file = tmp_path / "notes.csv"
        file.write_bytes(end.join([*map(",".join, cells), ""]).encode())
        sums.append(open_table(file, schema).aggregate({"treatment": 2}, ["outcome", "1"]).tolist())
        assert not has_bare_returns(str(file))
    assert all(each == sums[0] for each in sums)
    assert sum(count for _, count in sums[0]) == 2_000


def test_check_tells_of_records_that_a_carriage_return_ends(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    file, words = tmp_path / "notes.csv", "lines: carriage returns without quotation marks end records"
    for content, is_told in (
        (b"t,y,note\n0,1,a\rb\n1,1,c\n", True),
        (b't,y,"a\rb"\n0,1,"a ""quoted"" \r b"\n1,1,c\n', False),
        (b"t,y,note\r\n0,1,a\r\n1,1,c\r\n", False),
        (b"t,y,note\r0,1,a\r1,1,c\r", False),
        (b"t,y,note\n" + b"0,1,x\r\n" * 200_000, False),  # the pieces in which it is read end between the two
    ):
        file.write_bytes(content)
        assert (words in list(inspect(str(file), schema))) == is_told


def test_undeclared_columns_of_a_csv_may_be_called_anything(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    for header in (",t,y", "a,t,y", "Unnamed,t,y", "\ufeffa, t\t,y ", 'a,"t\u00a0",y'):
        (tmp_path / "odd.csv").write_text(f"{header}\n7,0,1\n8,1,0\n", encoding="utf-8")
        arms = open_table(tmp_path / "odd.csv", schema).aggregate({"treatment": 2}, ["outcome", "1"])
        assert arms.tolist() == [[2**20, 1], [-(2**20), 1]]
    (tmp_path / "odd.csv").write_text("a,a,t,,y\n7,7,0,7,1\n8,8,1,8,0\n", encoding="utf-8")
    arms = open_table(tmp_path / "odd.csv", schema).aggregate({"treatment": 2}, ["outcome", "1"])
    assert arms.tolist() == [[2**20, 1], [-(2**20), 1]]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("arms", "y"), "is not in the table"),
        (("ARM", "y"), "is in the table with other capitals or blanks"),
        (("arm ", "y"), "is in the table with other capitals or blanks"),
        (("arm", "Arm", "y"), "is in the table several times"),
    ],
)
def test_an_absent_column_is_told_without_the_names_of_others(names: tuple[str, ...], told: str) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1))
    with pytest.raises(TableError, match=told) as raised:
        open_table(pa.table({name: [0, 1] for name in names}), schema)
    assert "dpcausal init" in str(raised.value)
    assert not any(repr(name) in str(raised.value) for name in names if name != "arm")


@pytest.mark.parametrize("records", [["41.5,0,Smith", "1,1,Jones"], ["a,b,c", "1,1,x"], ["", "0"], ['"x', "y,z"]])
def test_a_csv_without_a_header_does_not_tell_its_first_record(records: list[str], tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("score", 0, 1))
    (tmp_path / "a.csv").write_text("\n".join(records), encoding="utf-8")
    (tmp_path / "b.csv").write_text("\n".join(records[::-1]), encoding="utf-8")
    for place in ("a.csv", "b.csv", "*.csv"):
        with pytest.raises(TableError) as raised:
            open_table(tmp_path / place, schema)
        assert not any(cell in str(raised.value) for cell in ("41.5", "Smith", "Jones", "'a'", "'x'"))


def test_a_message_that_names_what_was_found_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def telling(needed: Sequence[str], present: Sequence[str]) -> None:
        raise TableError(expected=f"one column named {needed[0]!r}", got=f"columns {', '.join(present)}", hint="")

    monkeypatch.setattr("dpcausal.vault.readers.files.check_columns", telling)
    with pytest.raises(AssertionError):
        test_a_csv_without_a_header_does_not_tell_its_first_record(["41.5,0,Smith", "1,1,Jones"], tmp_path)


def test_the_first_record_of_csv_files_without_a_header_does_not_decide_what_is_told(tmp_path: Path) -> None:
    """Neither one that looks like names, nor whether two files begin alike, nor one that csv cannot read."""
    schema = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("score", 0, 1))
    told = set()
    for first in ("1,2,3", "a,b,c", "7,7,7", f"{'x' * 200_000},1,2"):
        (tmp_path / "a.csv").write_text(f"{first}\n4,5,6\n", encoding="utf-8")
        (tmp_path / "b.csv").write_text("7,7,7\n4,5,6\n", encoding="utf-8")
        for place in ("a.csv", "*.csv"):
            with pytest.raises(TableError) as raised:
                open_table(tmp_path / place, schema)
            told.add(str(raised.value))
    assert len(told) == 1


def test_a_dict_is_told_how_to_become_a_table() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    for rows, made in (([{"t": 0}], r"DataFrame\(records\)"), (np.zeros((2, 2)), r"DataFrame\(array, columns=")):
        with pytest.raises(TableError, match=f"make a table of it: pandas.{made}"):
            open_table(rows, schema)
    with pytest.raises(TableError, match=r"cannot open a dict\.\n\nHint: .*pandas.DataFrame"):
        open_table({"t": [0, 1], "y": [0, 1]}, schema)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_sign_between_columns_is_that_of_the_declared_names(sign: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 10, decimal=","))
    lines = [sign.join(cells) for cells in (("note", "t", "y"), ('"a"', "0", '"1,5"'), ('"b,;"', "1", '"2,5"'))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    vault = dpc.Vault(tmp_path / "table.csv", schema, ledger="sqlite://", budget=dpc.Budget(epsilon=20))
    effect = dpc.DifferenceInMeans(with_interval=False).estimate(vault, epsilon=10.0)
    assert vault.n == 2
    assert effect.receipts
    relation = open_table(tmp_path / "table.csv", schema)
    total = relation.aggregate({}, ["outcome"])
    with_commas = tmp_path / "commas.csv"
    with_commas.write_text('t,y\n0,"1,5"\n1,"2,5"\n', encoding="utf-8")
    assert (total == open_table(with_commas, schema).aggregate({}, ["outcome"])).all()


@pytest.mark.parametrize("header", ["t,t,y", "T,t,y", "y"])
def test_a_declared_column_of_a_csv_must_stand_there_once(header: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    (tmp_path / "odd.csv").write_text(f"{header}\n0,1,1\n", encoding="utf-8")
    with pytest.raises(TableError, match="column 't' is "):
        open_table(tmp_path / "odd.csv", schema)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n0,77\n", "is not in the table"),
        ("", "is not in the table"),
        ("t,y;z\n0,77\n", "column 'y' is not in"),
    ],
)
def test_a_csv_without_the_declared_columns_is_told(text: str, told: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    (tmp_path / "odd.csv").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=told) as raised:
        open_table(tmp_path / "odd.csv", schema)
    assert "77" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("absent.parquet", "no file"),
        ("absent/*.csv", "no file"),
        ("empty", "folder/[*].csv"),
        ("table.xlsx", "table.xlsx"),
        ("broken.parquet", "cannot be read"),
        ("", "cannot be read"),
        ("broken.duckdb", "warehouse.duckdb#visits"),
        ("broken.duckdb#visits", "visits"),
        ("absent.duckdb#visits", "no file"),
        ("good.duckdb#visit", "visit"),
        ("good.duckdb#", "that can be read"),
    ],
)
def test_files_that_cannot_be_read_are_refused(
    name: str, told: str, table: pa.Table, schema: dpc.Schema, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "table.xlsx").write_text("t,y", encoding="utf-8")
    (tmp_path / "broken.parquet").write_text("not parquet", encoding="utf-8")
    (tmp_path / "broken.duckdb").write_text("not a database", encoding="utf-8")
    write_database(table, tmp_path / "good.duckdb")
    with pytest.raises(TableError, match=told):
        open_table(tmp_path / name, schema)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.decimal128(9, 2), pa.date32(), pa.list_(pa.float64())])
def test_a_column_of_two_types_in_two_files_is_named(kind: pa.DataType, tmp_path: Path) -> None:
    """DuckDB would cast to the first file's type, and whether that works is for the rows to say."""
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0))
    for name, other in (("a", pa.float64()), ("b", kind)):
        pq.write_table(pa.table({"t": [0], "y": pa.nulls(1, other), name: [0]}), tmp_path / f"{name}.parquet")
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(TableError, match="The column 'y' has the type"):
            open_table(place, schema)
    (tmp_path / "b.parquet").unlink()
    assert open_table(tmp_path, schema).aggregate({}, ["1"])[0] == 1


def test_a_file_without_a_declared_column_is_refused(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    pq.write_table(pa.table({"t": [0], "y": [0.5]}), tmp_path / "a.parquet")
    for others in ({"t": [0]}, {"t": [0], "y": [0.5], "Y": [0.5]}):
        pq.write_table(pa.table(others), tmp_path / "b.parquet")
        with pytest.raises(TableError, match="The column 'y' is "):
            open_table(tmp_path, schema)


def test_times_in_milliseconds_are_refused_in_any_file(tmp_path: Path) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), unit=dpc.Unit("who", by="when")
    )
    when = pa.array([0], pa.timestamp("ms"))
    pq.write_table(pa.table({"t": [0], "y": [0.5], "who": [1], "when": when}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="microseconds"):
        open_table(tmp_path, schema)


def test_texts_may_be_written_in_several_ways(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", arms=("no", "yes"), undeclared="no"), outcome=dpc.Real("y", 0, 1))
    for place, kind in enumerate((pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))):
        arms = pa.array(["no", "yes"], pa.string()).cast(kind)
        pq.write_table(pa.table({"t": arms, "y": [0.5, 0.5]}), tmp_path / f"{place}.parquet")
    assert open_table(tmp_path, schema).aggregate({"treatment": 2}, ["1"]).tolist() == [[3], [3]]


def test_csv_files_with_other_headers_are_refused(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    (tmp_path / "a.csv").write_text("t,y\n0,1\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("y,t\n0,1\n", encoding="utf-8")
    with pytest.raises(TableError, match="other columns than the first one"):
        open_table(tmp_path / "*.csv", schema)


def test_a_database_that_is_being_written_to_is_refused(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    write_database(table, tmp_path / "warehouse.duckdb")
    with duckdb.connect(tmp_path / "warehouse.duckdb"), pytest.raises(TableError, match="open to write"):
        open_table(tmp_path / "warehouse.duckdb#visits", schema)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://user:hunter2@host/database#visits",
        Path("postgresql://user:hunter2@host/database#visits"),
        "postgresql://user:hunter2@host/database",
        "postgresql://user:hunter2@host/database#clinic.",
        "postgresql://user:hunter2@127.0.0.1:1/database#visits",
        "postgresql://user:hunter2@127.0.0.1:x/database#visits",
        "s3://user:hunter2@bucket/visits.parquet",
        "jdbc:postgresql://host/database?user=u&password=hunter2",
        "host=host dbname=database user=u password=hunter2",
        "postgresql:user:hunter2@host",
        "mysql:user:hunter2@host/visits.parquet",
    ],
)
def test_an_address_is_never_printed(address: str | Path, schema: dpc.Schema) -> None:
    with pytest.raises(TableError) as caught:
        open_table(address, schema)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("driver", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_table_may_have_the_address_that_a_ledger_has(driver: str, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="no connection to the PostgreSQL server"):
        open_table(f"{driver}://user@127.0.0.1:1/database#visits", schema)


@pytest.mark.parametrize("thing", [None, 3, {"t": [0]}, [1, 2]])
def test_things_that_are_no_table_are_refused(thing: object, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="cannot open"):
        open_table(thing, schema)


def test_an_absent_column_is_named(schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="The column 'score' is not in"):
        open_table(pd.DataFrame({"treat": [0]}), schema)


def test_columns_without_names_are_passed_over() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    assert open_table(pd.DataFrame({"t": [0, 1], "y": [0, 1], 7: [0, 1]}), schema).aggregate({}, ["1"])[0] == 2


def test_columns_that_differ_only_in_capitals_are_refused(table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="'age'"):
        open_table(table.append_column("AGE", table["age"]), schema)


def test_odd_column_names_are_read() -> None:
    names = ['"; DROP TABLE x; --', "größe (cm)"]
    schema = dpc.Schema(treatment=dpc.Treatment(names[0], undeclared=0), outcome=dpc.Real(names[1], 0, 300))
    table = pa.table({names[0]: [0, 1], names[1]: [150.0, 150.0]})
    assert open_table(table, schema).aggregate({"treatment": 2}, ["outcome", "1"]).tolist() == [[0, 1], [0, 1]]


def test_a_fold_adds_up_over_batches_what_sql_adds_up(table: pa.Table, schema: dpc.Schema) -> None:
    engine = open_table(pa.concat_tables([table] * 200), schema)
    names = column_names(schema)[:3]

    def second_moments(batch: Batch) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        values = np.stack([batch[name] for name in names])
        return values @ values.T

    by_sql = engine.aggregate({}, [f"CAST({one} AS BIGINT) * {other}" for one in names for other in names])
    assert engine.fold(names, second_moments).ravel().tolist() == by_sql.tolist()


def test_absent_cells_are_zero_and_empty_tables_add_up(schema: dpc.Schema, table: pa.Table) -> None:
    empty = open_table(table.slice(0, 0), schema)
    assert empty.aggregate({"treatment": 2, "covariate_1": 3}, ["outcome", "1"]).tolist() == [[[0, 0]] * 3] * 2
    assert empty.fold(["outcome"], lambda batch: np.array([batch["outcome"].sum()])).tolist() == [0]


def test_collecting_has_a_public_limit(schema: dpc.Schema, table: pa.Table) -> None:
    engine = open_table(table, schema)
    assert len(engine.collect(["outcome"], limit=1000)["outcome"]) == 1000
    with pytest.raises(TableError, match="at most 999 units"):
        engine.collect(["outcome"], limit=999)


def test_a_kernel_brings_only_what_it_makes(schema: dpc.Schema, table: pa.Table) -> None:
    whole = pa.concat_tables([table] * 200)
    sizes: list[int] = []

    def kernel(batch: Batch) -> Batch:
        sizes.append(len(batch["outcome"]))
        return {"sum": batch["outcome"] + batch["covariate_0"], "arm": batch["treatment"]}

    names = ("treatment", "outcome", "covariate_0")
    engine = open_table(whole, schema)
    brought, rows = engine.collect(names, 200_000, kernel), engine.collect(names, 200_000)
    assert len(sizes) > 3
    assert max(sizes) <= 65_536
    assert set(brought) == {"sum", "arm"}
    assert {values.dtype for values in brought.values()} == {np.dtype(np.int64)}
    for name, wanted in kernel(rows).items():
        assert sorted(brought[name].tolist()) == sorted(wanted.tolist())
    with pytest.raises(TableError, match="at most 199,999 units"):
        engine.collect(names, 199_999, kernel)
    nothing = open_table(table.slice(0, 0), schema).collect(names, 10, kernel)
    assert {name: values.tolist() for name, values in nothing.items()} == {"sum": [], "arm": []}


def test_a_kernel_that_fails_leaves_an_engine_that_works(schema: dpc.Schema, table: pa.Table) -> None:
    engine = open_table(table, schema)
    with pytest.raises(OSError, match="of the kernel"):
        engine.fold(["outcome"], lambda batch: np.array([_fails(len(batch["outcome"]))]))
    assert engine.aggregate({}, ["1"])[0] == 1000


def _fails(size: int) -> int:
    if size:
        raise OSError("of the kernel")
    return 0


def test_a_connection_that_cannot_be_set_up_is_refused(schema: dpc.Schema, table: pa.Table) -> None:
    connection = duckdb.connect()
    relation = connection.from_arrow(table)
    connection.execute("SET lock_configuration = true")
    with pytest.raises(TableError, match="locked"):
        open_table(relation, schema).aggregate({}, ["1"])


def test_a_failing_engine_does_not_say_what_it_saw(tmp_path: Path, schema: dpc.Schema, table: pa.Table) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(table, path)
    engine = open_table(path, schema)
    path.write_bytes(path.read_bytes()[:200] + b"canary" * 2000)
    with pytest.raises(EngineError) as caught:
        engine.aggregate({}, ["outcome"])
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


VERBS: dict[str, Callable[[Engine], object]] = {
    "aggregate": lambda engine: engine.aggregate({}, ["outcome"]),
    "fold": lambda engine: engine.fold(["outcome"], lambda batch: np.array([batch["outcome"].sum()])),
    "collect": lambda engine: engine.collect(["outcome"], 10**6),
    "collect with a kernel": lambda engine: engine.collect(["outcome"], 10**6, lambda batch: batch),
}


def quoting() -> Engine:
    """A table one of whose rows, far from the first, makes DuckDB fail and quote it."""
    outcome = "CASE WHEN range = 900000 THEN error('canary') ELSE 0.5 END AS y"
    relation = duckdb.connect().sql(f"SELECT range % 2 AS t, {outcome} FROM range(1000000)")
    return open_table(relation, dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1)))


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_says_what_made_it_fail(verb: str) -> None:
    with pytest.raises(EngineError) as caught:
        VERBS[verb](quoting())
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_not_silenced_would_be_caught(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.vault.engines.duckdb._silenced", nullcontext)
    with pytest.raises(Exception, match="canary") as caught:
        VERBS[verb](quoting())
    assert not isinstance(caught.value, EngineError)


OUTSIDE_OR_MIDDLE = [(0, 0), (0, 1)] * 4


def nan_in_a_folder(last: float | None, pieces: int, folder: Path) -> list[tuple[int, ...]]:
    """What becomes of an outcome of NaN, and of its unit. A file without empty cells says that it holds none."""
    table = pa.table({"t": [0, 1, 1, 1], "y": pa.array([nan, 5.0, 7.0, last], pa.float64())})
    for place in range(pieces):
        pq.write_table(table.slice(place * 4 // pieces, 4 // pieces), folder / f"{place}.parquet")
    with duckdb.connect(folder / "files.duckdb") as connection:
        connection.execute(f"CREATE OR REPLACE TABLE held AS SELECT * FROM read_parquet('{folder}/?.parquet')")
    relation = duckdb.connect().read_parquet(f"{folder}/?.parquet")
    ways = (folder, folder / "*.parquet", folder / "files.duckdb#held", relation)
    outcomes = (dpc.Real("y", 0, 10), dpc.Real("y", 0, 10, missing=5))
    schemas = [dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=outcome) for outcome in outcomes]
    engines = [open_table(way, schema) for way in ways for schema in schemas]
    return [tuple(map(int, engine.aggregate({"treatment": 2}, ["outcome", "1"])[0])) for engine in engines]


@pytest.mark.parametrize("pieces", [1, 2])
def test_not_a_number_counts_as_missing_wherever_it_lies(pieces: int, tmp_path: Path) -> None:
    assert nan_in_a_folder(None, pieces, tmp_path) == nan_in_a_folder(6.0, pieces, tmp_path) == OUTSIDE_OR_MIDDLE


def test_a_folder_taken_at_its_word_would_be_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the mutant other rows decide whether a NaN counts as something else, or stops everything."""
    monkeypatch.setattr("dpcausal.vault.engines.duckdb._WITHOUT_STATISTICS", "SET disabled_optimizers = ''")
    try:
        seen = nan_in_a_folder(6.0, 1, tmp_path)
    except EngineError:
        return
    assert seen != OUTSIDE_OR_MIDDLE


def test_a_folder_that_is_not_there_is_missed_as_such(schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="no file at 'nowhere/'"):
        open_table("nowhere/", schema)


def test_no_path_is_no_table(schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="is empty"):
        open_table("", schema)


def test_a_column_may_be_called_what_an_undeclared_one_is_called_inside(tmp_path: Path) -> None:
    schema = dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("not t 1", 0, 1))
    (tmp_path / "odd.csv").write_text("t,foo,bar,not t 1\n1,0,0,1\n", encoding="utf-8")
    assert open_table(tmp_path / "odd.csv", schema).aggregate({}, ["outcome"])[0] == 2**20


@pytest.mark.parametrize(
    "frame", [pa.table, pd.DataFrame, pl.DataFrame, lambda columns: duckdb.from_arrow(pa.table(columns))]
)
def test_columns_that_seem_to_name_persons_are_noted_where_no_unit_is_declared(
    frame: Callable[[dict[str, list[float]]], object],
) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))

    def notes(other: str, declared: dpc.Schema = schema) -> tuple[str, ...]:
        table = frame({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50, other: [at // 2 for at in range(100)]})
        vault = dpc.Vault(table, declared, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
        return dpc.DifferenceInMeans().estimate(vault, epsilon=1.0).notes

    for name in ("patient_id", "UserKey", "membership"):
        assert any("no Unit is declared" in note for note in notes(name))
        assert not any(name in note for note in notes(name))  # nobody declared that this name is public
    assert not any("no Unit" in note for note in notes("ward"))
    per_person = dpc.Schema(treatment=schema.treatment, outcome=schema.outcome, unit=dpc.Unit("person", by="y"))
    assert not any("no Unit" in note for note in notes("person", per_person))


def test_misspelt_column_of_a_file_with_semicolons_is_the_one_that_is_named(tmp_path: Path) -> None:
    """A separator that gave no name at all was chosen, and the first column was said to be absent."""
    (tmp_path / "table.csv").write_text("treat;score;age\n1;2,5;60\n0;3;50\n", encoding="utf-8")
    schema = dpc.Schema(dpc.Treatment("treat"), dpc.Real("score", 0, 10), [dpc.Real("agee", 18, 90)])
    with pytest.raises(TableError, match="The column 'agee' is not in the table"):
        open_table(tmp_path / "table.csv", schema)
