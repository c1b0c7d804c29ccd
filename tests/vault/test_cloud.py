"""Parquet files in an object store on loopback, and lazy frames."""

from collections.abc import Iterator

import polars as pl
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import dpcausal as dpc
from dpcausal.errors import EngineError, TableError
from dpcausal.vault.table import column_families, open_table
from tests.support.hostile import hostile

SCHEMA = dpc.Schema(dpc.Treatment("treat"), dpc.Real("score", 0, 10), [dpc.Real("age", 18, 90)])
SUMS = ["1", "outcome", "covariate_0"]
MARKER = "xyzzy-4711"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An S3 server with parquet files in two folders."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", MARKER)
        patch.setenv("AWS_REGION", "us-east-1")
        store = fs.S3FileSystem(
            endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True, background_writes=False
        )
        store.create_dir("clinic")
        table = hostile(3_000)
        for place in range(3):
            with store.open_output_stream(f"clinic/visits/2026-{place}.parquet") as file:
                pq.write_table(table.slice(1_000 * place, 1_000), file)
        with store.open_output_stream("clinic/visits/_unfinished/part.parquet") as file:
            pq.write_table(table, file)
        for name in ("a1", "a*"):
            with store.open_output_stream(f"clinic/patterns/{name}.parquet") as file:
                pq.write_table(table.slice(0, 10), file)
        yield "s3://clinic"
    server.stop()


@pytest.mark.parametrize(
    ("place", "part"),
    [
        ("visits/", slice(0, 3_000)),
        ("visits/2026-*.parquet", slice(0, 3_000)),
        ("visits/2026-1.parquet", slice(1_000, 2_000)),
    ],
)
def test_files_of_an_object_store_are_read_as_local_ones(bucket: str, place: str, part: slice) -> None:
    engine = open_table(f"{bucket}/{place}", SCHEMA)
    own = open_table(hostile(3_000).slice(part.start, part.stop - part.start), SCHEMA)
    for cells in ({}, {"treatment": 3}):
        assert (engine.aggregate(cells, SUMS, whole=True) == own.aggregate(cells, SUMS, whole=True)).all()
    assert column_families(f"{bucket}/{place}")["ward"] == "text"


@pytest.mark.parametrize("place", ["absent/", "absent.parquet", "visits/*.csv"])
def test_what_is_not_there_is_refused(bucket: str, place: str) -> None:
    with pytest.raises(TableError) as caught:
        open_table(f"{bucket}/{place}", SCHEMA)
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize("place", ["patterns/", "patterns/a*.parquet"])
def test_a_file_named_like_a_pattern_is_refused(bucket: str, place: str) -> None:
    with pytest.raises(TableError, match="which would be read as a pattern"):
        open_table(f"{bucket}/{place}", SCHEMA)


@pytest.mark.parametrize(
    "place", [f"s3://key:{MARKER}@clinic/visits/", f"s3://clinic/visits/?secret={MARKER}", "gs://clinic"]
)
def test_credentials_have_no_place_in_an_address(place: str) -> None:
    with pytest.raises(TableError, match="not shown") as caught:
        open_table(place, SCHEMA)
    assert MARKER not in str(caught.value)


def test_a_lazy_frame_is_computed_once() -> None:
    table = hostile(500)
    lazy = pl.from_arrow(table).lazy().filter(pl.col("treat") == 1).with_columns(other=pl.lit(1))  # type: ignore[union-attr]
    engine, own = (open_table(each, SCHEMA) for each in (lazy, lazy.collect()))
    assert (engine.aggregate({}, SUMS) == own.aggregate({}, SUMS)).all()


def test_a_lazy_frame_that_fails_tells_nothing() -> None:
    frame = pl.LazyFrame({"treat": [0, 1], "score": [MARKER, "1"], "age": [1.0, 2.0]}).with_columns(
        pl.col("score").cast(pl.Float64)
    )
    with pytest.raises(EngineError, match="withheld") as caught:
        open_table(frame, SCHEMA)
    assert MARKER not in str(caught.value)
    with pytest.raises(TableError, match="'age'"):
        open_table(frame.select("treat", "score"), SCHEMA)
