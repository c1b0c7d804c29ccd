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
from tests.support.conformance.sums import OpenEngine
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


ENDS: list[Any] = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, None, 0.5]
"""What a cell may be moved to: the ends of its type, and what is no number."""


KINDS = (pa.int64(), pa.float64(), pa.float64())


def neighbours_agree(opened: OpenEngine = open_table, unit: dpc.Unit | None = None) -> bool:
    """Whether nothing that the engine finds depends on the cells of units in buckets that are not claimed.

    With a unit there are two records of each, and some whose records name a claimed bucket and another one.
    """
    schema, buckets = replace(SCHEMA, unit=unit), NUMBERS * 4
    named = [[bucket] if unit is None else [bucket, 1 if at % 3 == 0 else bucket] for at, bucket in enumerate(buckets)]
    claimed = [len({*each}) == 1 and each[0] in CLAIM.buckets for each in named]
    rows = [(who, day, bucket) for who, each in enumerate(named) for day, bucket in enumerate(each)]
    who, day, bucket = (pa.array(each, pa.int64()) for each in zip(*rows, strict=True))
    tables = []
    for moved in ((), *((None, end, end) for end in ENDS)):
        cells = [(at % 2, at / 40, at / 20 - 1) if claimed[at] or not moved else moved for at, *_ in rows]
        arm, y, x = (pa.array(each, kind) for each, kind in zip(zip(*cells, strict=True), KINDS, strict=True))
        tables.append(pa.table({"who": who, "day": day, "arm": arm, "y": y, "x": x, "bucket": bucket}))
    sums = ["1", "CAST(outcome AS BIGINT)", "CAST(covariate_0 AS BIGINT)"]
    totals = [opened(table, schema).aggregate({"treatment": 3}, sums, whole=True).tolist() for table in tables]
    return all(each == totals[0] for each in totals)


@pytest.mark.parametrize("unit", [None, UNIT])
def test_cells_of_other_buckets_change_nothing(unit: dpc.Unit | None) -> None:
    assert neighbours_agree(unit=unit)


@pytest.mark.parametrize("engine", ["postgresql", "clickhouse"])
def test_cells_of_other_buckets_change_nothing_in_warehouses(engine: str) -> None:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(OPENED[engine]())
        except NotHereError as error:
            pytest.skip(str(error))
        assert neighbours_agree(opened)
        assert neighbours_agree(opened, UNIT)


@pytest.mark.parametrize("unit", [None, UNIT])
def test_a_table_that_lets_others_in_is_caught(unit: dpc.Unit | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coercion, "_is_claimed", lambda _: "(bucket BETWEEN -1 AND 7)")
    assert not neighbours_agree(unit=unit)


def test_a_table_that_takes_any_bucket_of_a_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = "MAX(bucket) OVER (PARTITION BY unit)"
    monkeypatch.setattr(coercion, "_UNIT_BUCKET", (f"{largest} AS bucket", f"-({largest}) AS opposite_bucket"))
    assert not neighbours_agree(unit=UNIT)
