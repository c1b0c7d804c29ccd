import gzip
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
from dpcausal.vault.engines import Batch
from dpcausal.vault.table import open_table


def test_every_way_in_gives_the_same_integers(table: pa.Table, schema: dpc.Schema, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "table.parquet")
    table.to_pandas().to_csv(tmp_path / "table.csv", index=False)
    with gzip.open(tmp_path / "table.csv.gz", "wt", encoding="utf-8") as file:
        table.to_pandas().to_csv(file, index=False)
    ways = [
        table,
        table.to_pandas(),
        table.to_pandas().astype(object),
        pl.from_arrow(table),
        duckdb.connect().from_arrow(table),
        tmp_path / "table.parquet",
        str(tmp_path / "table.csv"),
        tmp_path / "table.csv.gz",
    ]
    sums = [open_table(way, schema).aggregate({"treatment": 2}, column_names(schema)).tolist() for way in ways]
    assert all(each == sums[0] for each in sums)


def test_no_line_of_a_csv_can_stop_it(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 1))
    file = tmp_path / "hostile.csv"
    file.write_bytes(
        b't,y,note\n0,1,fine\n1,abc,text\n1\n,,\n0,1,2,3,4,5\n1,0.5,"two\nlines"\n0,\xff\xfe,x\n1,\'1\',"open\n0,1,z\n'
    )
    assert 4 <= open_table(file, schema).aggregate({}, ["1"])[0] <= 9


def test_undeclared_columns_of_a_csv_may_be_called_anything(tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 1))
    for header in (",t,y", "a,t,y", "Unnamed,t,y"):
        (tmp_path / "odd.csv").write_text(f"{header}\n7,0,1\n8,1,0\n", encoding="utf-8")
        arms = open_table(tmp_path / "odd.csv", schema).aggregate({"treatment": 2}, ["outcome", "1"])
        assert arms.tolist() == [[2**20, 1], [-(2**20), 1]]
    (tmp_path / "odd.csv").write_text("a,a,t,,y\n7,7,0,7,1\n8,8,1,8,0\n", encoding="utf-8")
    arms = open_table(tmp_path / "odd.csv", schema).aggregate({"treatment": 2}, ["outcome", "1"])
    assert arms.tolist() == [[2**20, 1], [-(2**20), 1]]


@pytest.mark.parametrize("header", ["t,t,y", "T,t,y", "y", ""])
def test_a_declared_column_of_a_csv_must_stand_there_once(header: str, tmp_path: Path) -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 1))
    (tmp_path / "odd.csv").write_text(f"{header}\n0,1,1\n", encoding="utf-8")
    with pytest.raises(TableError, match="one column named 't'"):
        open_table(tmp_path / "odd.csv", schema)


@pytest.mark.parametrize("name", ["absent.parquet", "table.xlsx", "broken.parquet", ""])
def test_files_that_cannot_be_read_are_refused(name: str, schema: dpc.Schema, tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_text("t,y", encoding="utf-8")
    (tmp_path / "broken.parquet").write_text("not parquet", encoding="utf-8")
    with pytest.raises(TableError):
        open_table(tmp_path / name, schema)


@pytest.mark.parametrize("thing", [None, 3, {"t": [0]}, [1, 2], pl.LazyFrame({"t": [0]})])
def test_things_that_are_no_table_are_refused(thing: object, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="expected a pandas, polars or pyarrow table"):
        open_table(thing, schema)


def test_an_absent_column_is_named(schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="one column named 'score'"):
        open_table(pd.DataFrame({"treat": [0]}), schema)


def test_columns_without_names_are_passed_over() -> None:
    schema = dpc.Schema(treatment=dpc.Binary("t"), outcome=dpc.Real("y", 0, 1))
    assert open_table(pd.DataFrame({"t": [0, 1], "y": [0, 1], 7: [0, 1]}), schema).aggregate({}, ["1"])[0] == 2


def test_columns_that_differ_only_in_capitals_are_refused(table: pa.Table, schema: dpc.Schema) -> None:
    with pytest.raises(TableError, match="'age'"):
        open_table(table.append_column("AGE", table["age"]), schema)


def test_odd_column_names_are_read() -> None:
    names = ['"; DROP TABLE x; --', "größe (cm)"]
    schema = dpc.Schema(treatment=dpc.Binary(names[0]), outcome=dpc.Real(names[1], 0, 300))
    table = pa.table({names[0]: [0, 1], names[1]: [150.0, 150.0]})
    assert open_table(table, schema).aggregate({"treatment": 2}, ["outcome", "1"]).tolist() == [[0, 1], [0, 1]]


def test_a_fold_adds_up_over_batches_what_sql_adds_up(table: pa.Table, schema: dpc.Schema) -> None:
    engine = open_table(pa.concat_tables([table] * 200), schema)
    names = column_names(schema)[:3]

    def second_moments(batch: Batch) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        values = np.stack([batch[name] for name in names])
        return values @ values.T

    by_sql = engine.aggregate({}, [f"{one} * {other}" for one in names for other in names])
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
    assert caught.value.__suppress_context__
