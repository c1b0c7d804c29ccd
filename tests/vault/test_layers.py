"""Units in other buckets of a layer than the experiment's are not in its table, on every engine."""

import math
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.schema.layer import LayerClaim
from dpcausal.vault import coercion
from dpcausal.vault.coercion import column_names
from dpcausal.vault.table import open_table
from tests.support.open_engines import OPENED, NotHereError

CLAIM = dpc.Layer("bucket", 8).claim("page", [1, 2, 5])
SCHEMA = dpc.Schema(dpc.Treatment("arm"), dpc.Real("y", 0, 1), [dpc.Real("x", -1, 1)], claim=CLAIM)
UNIT = dpc.Unit("who", by="day", sum=["y"])
NUMBERS: list[Any] = [None, 0, 1, 2, 3, 5, 7, 8, -1, 127]
HOSTILE: list[Any] = [math.nan, math.inf, -math.inf, 1.5, 4.999, 1e300, -0.0, 5e-324, 2.0000000000000004, 2.0]
WRITTEN: list[Any] = ["1", " 2 ", "5.0", "1.5", "nan", "inf", "", "zwei", "-1", "1e0", "٢", "0x1"]
COLUMNS = {
    "integers": pa.array(NUMBERS * 4, pa.int8()),
    "numbers": pa.array((NUMBERS + HOSTILE) * 2, pa.float64()),
    "wide numbers": pa.array(NUMBERS * 4, pa.decimal128(25, 3)),
    "texts": pa.array(WRITTEN * 4, pa.string()),
}


def bucket_of(cell: Any, claim: LayerClaim = CLAIM) -> int | None:
    """Return which bucket a cell names, in plain Python; None where it names none."""
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    if isinstance(cell, str) and not cell.isascii():
        return None
    return int(number) if number in range(claim.layer.buckets) else None


def table_of(buckets: pa.Array, seed: int = 0) -> pa.Table:
    draw, size = np.random.default_rng(seed), len(buckets)
    cells = {"arm": draw.integers(0, 3, size), "y": draw.uniform(-0.5, 1.5, size), "x": draw.normal(size=size)}
    return pa.table({**cells, "bucket": buckets})


def found(table: pa.Table, schema: dpc.Schema) -> list[tuple[int, ...]]:
    names = column_names(schema)
    engine = open_table(table, schema)
    units = engine.collect(names, 10**4, whole=True)
    assert int(engine.aggregate({}, ["1"], whole=True)[0]) == len(units["treatment"])
    return sorted(zip(*(units[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize("kind", COLUMNS)
def test_table_holds_the_claimed_buckets_only(kind: str) -> None:
    table = table_of(COLUMNS[kind])
    kept = [bucket_of(cell) in CLAIM.buckets for cell in table["bucket"].to_pylist()]
    assert 0 < sum(kept) < len(kept)
    assert found(table, SCHEMA) == found(table.filter(pa.array(kept)), replace(SCHEMA, claim=None))


@pytest.mark.parametrize("engine", ["postgresql", "clickhouse"])
def test_warehouses_add_up_the_claimed_buckets_only(engine: str) -> None:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(OPENED[engine]())
        except NotHereError as error:
            pytest.skip(str(error))
        for kind in ("integers", "numbers", "texts"):
            table = table_of(COLUMNS[kind])
            here, there = open_table(table, SCHEMA), opened(table, SCHEMA)
            for whole in (False, True):
                sums = [each.aggregate({"treatment": 3}, ["1", "covariate_0"], whole=whole) for each in (here, there)]
                assert sums[0].tolist() == sums[1].tolist()


def records(buckets: list[list[Any]]) -> pa.Table:
    rows = [
        (who, day, who % 2, 0.25, 0.5, bucket) for who, each in enumerate(buckets) for day, bucket in enumerate(each)
    ]
    return pa.table(
        dict(zip(("who", "day", "arm", "y", "x", "bucket"), map(list, zip(*rows, strict=True)), strict=True))
    )


def test_unit_whose_records_name_several_buckets_is_in_none() -> None:
    people: list[list[Any]] = [[1, 1], [1, 2], [2], [3], [None, 1], [5, 5, 5], [1, 3], [None]]
    schema = replace(SCHEMA, unit=UNIT)
    assert len(found(records(people), schema)) == 3
    assert found(records(people), schema) == found(
        records([each if at in (0, 2, 5) else [None] for at, each in enumerate(people)]), schema
    )


def neighbours_agree(schema: dpc.Schema) -> bool:
    """Whether nothing that the engine finds depends on the cells of a unit in a bucket that is not claimed."""
    table = table_of(COLUMNS["integers"])
    other = [bucket_of(cell) not in CLAIM.buckets for cell in table["bucket"].to_pylist()]
    moved = {name: np.where(other, -table[name].to_numpy() + 1, table[name].to_numpy()) for name in ("arm", "y", "x")}
    return found(table, schema) == found(pa.table({**moved, "bucket": table["bucket"]}), schema)


def test_cells_of_other_buckets_change_nothing() -> None:
    assert neighbours_agree(SCHEMA)


def test_a_table_that_lets_others_in_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coercion, "_is_claimed", lambda _: "(bucket BETWEEN -1 AND 7)")
    assert not neighbours_agree(SCHEMA)
